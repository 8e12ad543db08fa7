/** Erasures of `rep_7`, whose name is sealed with the key k7, in the live generation g1. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PartitionTime,
  type PositionDocument,
  positionId,
  timesId,
} from '../../../schemas/stored/documents.ts'
import { OWN_PRIVILEGES_PATH } from '../../../schemas/stored/hiding-roles.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { exitCodes } from '../../../tools/exit-codes.ts'
import { type EraseSubjectOptions, eraseSubject } from '../../../tools/subjects/subjects.ts'
import { proxied, sending } from '../../support/answering.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'
import type { Scope } from '../../support/scope.ts'
import { createKeys, seal } from '../../support/seal.ts'
import { answerIds, recordedIds } from '../../support/shard-answers.ts'

const org = 'org_1'
const rep = 'rep_7'
const sealed = seal('Ines', { org, record: rep, field: 'name', keyId: 'k7' })
const source = { cluster_id: 'c', partitions: 1, rules_version: 1 }
const position = { position: 9, last: null, at: 1, time: 2, serve_from: 0 }

const world = (t: Scope, texts: readonly string[]) => {
  const engine = new MemoryElasticsearch()
  const put = {
    live: (body: LiveDocument['body']) => engine.put('p-control', LIVE_ID, 1, { kind: 'live', body }),
    generation: (body: object, generation = 'g1') =>
      engine.put('p-control', generationId(generation), 1, {
        kind: 'generation',
        body: { ...source, generation, topic: 'events', ...body },
      }),
    position: (body: Partial<PositionDocument['body']>, generation = 'g1', partition = 0) =>
      engine.put('p-control', positionId(generation, partition), 1, {
        kind: 'position',
        body: { ...position, ...body },
      }),
    times: (time: PartitionTime) =>
      engine.put('p-control', timesId('g1'), 1, { kind: 'times', body: { partitions: { 0: time } } }),
    text: (seq: number, name: string, id = rep) => {
      const { _index, _id } = layoutOf('p', { generation: 'g1', topic: 'events' }).addressOf('reps', `${id}@${seq}`)
      engine.put(_index, _id, seq, { org_id: org, seq, body_bytes: 9, body: { id, name, email: null } })
    },
    parked: (offset: number, value: string) => {
      const body = { key: null, value: Buffer.from(value).toString('base64'), headers: [] }
      engine.put('p-g1-parked', `events:0:${offset}`, offset, { org_id: org, offset, at: 1, body_bytes: 9, body })
    },
  }
  put.live({ generation: 'g1' })
  put.generation({})
  for (const [name, topic] of [['g2', 'events'] as const, ['api-keys', 'keys'] as const]) {
    put.generation({ topic }, name)
    // No projector publishes a time of API keys.
    put.position({ time: name === 'g2' ? 2 : 0 }, name)
  }
  put.position({})
  for (const [at, name] of texts.entries()) put.text(at, name)
  const { directory, sources } = createKeys(t, ['k7'])
  const out: string[] = []
  const said: string[] = []
  let searches = 0
  const ranges: object[] = []
  const clock = { now: 0, elapsed: 0 }
  const steps = {
    /** Called before each search of the reps of g1, with the number of those before. */
    onSearch: (_: number): void => undefined,
    /** The same, once the search has its view. */
    afterSearch: (_: number): void => undefined,
    /** Called when the command waits. */
    onSleep: (): void => undefined,
    /** Shards whose ids Elasticsearch does not tell. */
    hidden: [] as readonly string[],
    /** A proxy answers in place of Elasticsearch which documents a role hides. */
    isProxied: false,
    /** Answers about roles by path, others are 400; by default no role hides anything. */
    told: undefined as Readonly<Record<string, object>> | undefined,
  }
  const context = {
    send: sending(async (request, signal) => {
      if (request.path === OWN_PRIVILEGES_PATH && steps.isProxied) return proxied(request.isOptional ?? false)
      if (request.path.startsWith('/_security/') && steps.told) {
        const body = steps.told[request.path]
        return body ? { status: 200, body } : { status: 400, body: {} }
      }
      if (request.path.startsWith('/_resolve/index/p-sandbox')) return { status: 404, body: {} }
      if (request.path.startsWith('/_resolve/'))
        return { status: 200, body: { indices: ['p-g1-reps', 'p-g1-parked', 'p-g2-reps'].map(name => ({ name })) } }
      const ids = answerIds(request.path, ['p-control', ...recorded.map(({ index }) => index)], steps.hidden)
      if (ids !== undefined) return ids
      if (request.path === '/p-g1-reps/_pit') {
        steps.onSearch(searches)
        const opened = await engine.send(request, signal)
        steps.afterSearch(searches++)
        return opened
      }
      if (request.path === '/_search') ranges.push(...rangesIn(request.body))
      return engine.send(request, signal)
    }),
    ...{ prefix: 'p', out: (text: string | Buffer) => void out.push(String(text)), draw: undefined, keys: sources },
    ...{ say: (line: string) => void said.push(line), now: () => clock.now, elapsed: () => clock.elapsed },
    sleep: async (milliseconds: number) => {
      clock.elapsed += milliseconds
      steps.onSleep()
    },
    signal: new AbortController().signal,
  }
  return {
    ...{ put, steps, clock, ranges, out, said, directory },
    isKeyThere: () => existsSync(join(directory, 'k7.key')),
    isReceiptThere: () => existsSync(join(directory, 'k7.erased.json')),
    erase: (given: Partial<Pick<EraseSubjectOptions, 'confirm' | 'shared' | 'completeUpTo'>> = {}) =>
      eraseSubject({ org, rep, confirm: rep, shared: false, json: true, ...given }, context),
  }
}
type World = ReturnType<typeof world>
const rangesIn = (body: unknown): object[] => {
  const { query, _source } = body as { query: { bool?: { filter: { range?: object }[] } }; _source?: unknown }
  return _source ? (query.bool?.filter ?? []).flatMap(({ range }) => range ?? []) : []
}

const recorded = [
  { what: 'of the live copy', generation: 'g1', index: 'p-g1-reps' },
  { what: 'of parked records of API keys', generation: 'api-keys', index: 'p-api-keys-parked' },
  { what: 'of a spare generation', generation: 'g2', index: 'p-g2-reps' },
]

test('no key is destroyed while a proxy does not tell whether a role hides documents', async t => {
  const { erase, steps, isKeyThere } = world(t, [sealed])
  steps.isProxied = true
  await expect(erase()).rejects.toThrow(/whether a role hides documents.*Nothing was destroyed/)
  expect(isKeyThere()).toBe(true)
  steps.isProxied = false
  expect(await erase()).toBe(exitCodes.done)
})

const keyToldWith = (...indices: readonly object[]) => ({
  '/_security/_authenticate': { api_key: { id: 'k1' } },
  '/_security/api_key?id=k1': { api_keys: [{ role_descriptors: { subjects: { indices } } }] },
})
const reading = { names: ['*'], privileges: ['read'] }

test.for([
  ['that does not tell the roles', { '/_security/_authenticate': { api_key: { id: 'k1' } } }, /Nothing was destroyed/],
  ['whose role got a query', keyToldWith({ ...reading, query: '{"match_none":{}}' }), /API key has query/],
  ['whose own roles hide nothing', keyToldWith(reading), undefined],
  ['of an Elasticsearch without security', {}, undefined],
] as const)('no key is destroyed by an API key %s: %#', async ([, told, refusal], t) => {
  const { erase, steps, isKeyThere } = world(t, [sealed])
  steps.told = told
  if (refusal) await expect(erase()).rejects.toThrow(refusal)
  else expect(await erase()).toBe(exitCodes.done)
  expect(isKeyThere()).toBe(refusal !== undefined)
})

test.for(recorded)(
  'no key is destroyed while a shard $what cannot be compared, and without --confirm an erasure warns',
  async ({ generation, index }, t) => {
    const { erase, put, steps, said, isKeyThere, isReceiptThere } = world(t, [sealed])
    put.generation(recordedIds([index]), generation)
    const what = `the shard ${index}/0 cannot be compared with the recorded one, and documents may be missing`
    steps.hidden = [`${index}/0`]
    await expect(erase()).rejects.toThrow(new RegExp(`^${what}.* Nothing was destroyed$`))
    expect(await erase({ confirm: undefined })).toBe(exitCodes.done)
    expect(said[0]).toContain(what)
    // Its node goes away during the searches.
    steps.hidden = []
    steps.onSearch = () => {
      steps.hidden = [`${index}/0`]
    }
    await expect(erase()).rejects.toThrow('Nothing was destroyed')
    expect([isKeyThere(), isReceiptThere()]).toEqual([true, false])
    steps.hidden = []
    steps.onSearch = () => undefined
    expect(await erase()).toBe(exitCodes.done)
    expect(isKeyThere()).toBe(false)
  },
)

const meanwhile: Readonly<Record<string, (put: World['put']) => void>> = {
  'another generation was made live': put => put.live({ generation: 'g2' }),
  'its indices were restored and taken over': put => put.position({ taken_back: 1 }),
  'its indices are read again': put => put.position({ serve_from: 12 }),
  'another copy of a shard was taken over': put => put.generation({ shards: { 'p-g1-reps': ['another'] } }),
}

test.for(Object.entries(meanwhile))('no key is destroyed if %s during the last search', async ([, change], t) => {
  const { erase, steps, put, isKeyThere, isReceiptThere } = world(t, [sealed])
  steps.onSearch = before => {
    if (before === 1) change(put)
  }
  await expect(erase()).rejects.toThrow(/nothing was destroyed|records could be missing/)
  expect([isKeyThere(), isReceiptThere()]).toEqual([true, false])
})

test('no key is destroyed if another generation was made live during the search directly before', async t => {
  const { erase, steps, put, isKeyThere } = world(t, [sealed])
  steps.onSearch = before => (before === 2 ? put.live({ generation: 'g2' }) : put.position({ position: 10 + before }))
  await expect(erase()).rejects.toThrow('another generation was made live meanwhile')
  expect(isKeyThere()).toBe(true)
})

test('a key is destroyed if the live copies stay during the searches, also while projectors publish and start', async t => {
  const { erase, steps, put, isKeyThere } = world(t, [sealed])
  steps.onSearch = before => {
    put.position({ position: 12 + before, time: 3, serve_from: before })
    put.position({ position: 12, serve_from: 12 }, 'api-keys')
  }
  expect(await erase()).toBe(exitCodes.done)
  expect(isKeyThere()).toBe(false)
})

const DAY = 24 * 3_600_000

test('no key is destroyed while the documents include only the events of until yesterday', async t => {
  const { erase, put, clock, isKeyThere, isReceiptThere } = world(t, [sealed])
  clock.now = 2 * DAY
  put.position({ time: DAY })
  const refusal =
    'the documents include only what was published up to 1970-01-02T00:00:00.000Z: nothing was destroyed. ' +
    'Is the projector running? To leave out what was published later: --complete-up-to 1970-01-02T00:00:00.000Z'
  await expect(erase()).rejects.toThrow(refusal)
  await expect(erase({ completeUpTo: DAY + 1 })).rejects.toThrow(refusal)
  expect([isKeyThere(), isReceiptThere()]).toEqual([true, false])
  expect(await erase({ completeUpTo: DAY })).toBe(exitCodes.done)
  expect(isKeyThere()).toBe(false)
})

test('an erasure waits until the documents include what was published before it began, also at rest', async t => {
  const { erase, put, steps, clock, isKeyThere } = world(t, [sealed])
  clock.now = DAY
  steps.onSleep = () => {
    if (clock.elapsed >= 1_000) put.times({ position: 9, time: DAY })
  }
  expect(await erase()).toBe(exitCodes.done)
  expect([isKeyThere(), clock.elapsed]).toEqual([false, 1_000])
})

const later = seal('Ines D', { org, record: rep, field: 'name', keyId: 'k8' })
const late = {
  ofOther: {
    what: 'somebody else gets a text with it',
    put: (put: World['put']) =>
      put.text(9, seal('Bela', { org, record: 'rep_8', field: 'name', keyId: 'k7' }), 'rep_8'),
    says: 'k7 also seals 1 texts of 1 others, for example of rep_8 of org_1: nothing was destroyed',
  },
  ofPerson: {
    what: 'the person gets a text with another one',
    put: (put: World['put']) => put.text(9, later),
    says: 'a sealed text of rep_7 was published meanwhile: nothing was destroyed. Run the same command again',
  },
}

test.for(Object.values(late))('no key is destroyed if $what after the search for it', async (change, t) => {
  const { erase, steps, put, isKeyThere } = world(t, [sealed])
  // The last search of the whole has a view from before the text.
  steps.afterSearch = before => {
    if (before !== 1) return
    change.put(put)
    put.position({ position: 10 })
  }
  await expect(erase()).rejects.toThrow(change.says)
  expect(isKeyThere()).toBe(true)
})

test('with --shared a text of somebody else does not count, and one of the person does', async t => {
  const { erase, steps, put, isKeyThere } = world(t, [sealed])
  const { ofPerson, ofOther } = late
  steps.afterSearch = before => {
    ofOther.put(put)
    put.position({ position: 10 + before })
  }
  const another = world(t, [sealed])
  another.steps.afterSearch = () => {
    ofPerson.put(another.put)
    another.put.position({ position: 10 })
  }
  await expect(another.erase({ shared: true })).rejects.toThrow(ofPerson.says)
  expect(another.isKeyThere()).toBe(true)
  expect(await erase({ shared: true })).toBe(exitCodes.done)
  expect(isKeyThere()).toBe(false)
})

test('an erasure does not search again from the beginning because a partition stands still', async t => {
  const { erase, steps, put, ranges } = world(t, [sealed])
  put.generation({ partitions: 2 })
  put.position({ position: 0 }, 'g1', 1)
  steps.onSearch = () => put.position({ position: 12 })
  expect(await erase()).toBe(exitCodes.done)
  expect(ranges).toEqual([{ seq: { gte: 9 } }, { offset: { gte: 9 } }])
})

test('an erasure says which texts stay readable, also if the key was destroyed before', async t => {
  const { erase, put, out, said } = world(t, [sealed])
  const shown = () => out.splice(0).map(line => JSON.parse(line))
  expect(await erase()).toBe(exitCodes.done)
  expect(shown()).toMatchObject([{ key_id: 'k7', texts_in_the_open: 0, parked_to_look_at: 0 }])
  // A publisher that does not know of the erasure records the person again.
  put.text(8, 'Ines')
  expect(await erase({ confirm: undefined })).toBe(exitCodes.done)
  expect(shown()).toMatchObject([{ key_id: 'k7', erased_at: null, texts_in_the_open: 1 }])
  said.length = 0
  expect(await erase()).toBe(exitCodes.notAll)
  expect(shown()).toMatchObject([{ key_id: 'k7', texts_in_the_open: 1, parked_to_look_at: 0 }])
  expect(said).toEqual([
    'erased before: k7. Remove them from all copies of the directory, too.',
    '1 texts were published in the open: they stay readable (docs/privacy.md)',
  ])
})

test('without --confirm, an erasure shows the command that destroys the key under the same conditions', async t => {
  const { erase, said, put, isKeyThere } = world(t, [sealed])
  put.position({ time: DAY })
  const command = 'npx commission subjects erase org_1 rep_7 --confirm rep_7'
  expect(await erase({ confirm: undefined })).toBe(exitCodes.done)
  expect(said.at(-1)).toMatch(new RegExp(`${command}$`))
  expect(await erase({ confirm: undefined, shared: true, completeUpTo: DAY })).toBe(exitCodes.done)
  expect(said.at(-1)).toMatch(new RegExp(`${command} --shared --complete-up-to 1970-01-02T00:00:00.000Z$`))
  expect(isKeyThere()).toBe(true)
})

test('the first erasure says which texts stay readable, and which parked records may have some', async t => {
  const { erase, put, out, said } = world(t, [sealed, 'Ines'])
  put.parked(3, '{"org_id":"org_1","rep_id":"rep_7","destination":{"label":"Ines"}}')
  put.parked(4, `{"org_id":"org_1","rep_id":"rep_7","destination":{"label":"${sealed}"}}`)
  expect(await erase()).toBe(exitCodes.notAll)
  expect(out.map(line => JSON.parse(line))).toMatchObject([{ texts_in_the_open: 1, parked_to_look_at: 1 }])
  expect(said.slice(-2)).toEqual([
    '1 texts were published in the open: they stay readable (docs/privacy.md)',
    '1 parked records may have texts that stay readable: report names them',
  ])
})
