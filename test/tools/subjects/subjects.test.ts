/** Erasures of `rep_7`, whose name is sealed with the key k7, in the live generation g1. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { exitCodes } from '../../../tools/exit-codes.ts'
import { eraseSubject } from '../../../tools/subjects/subjects.ts'
import { sending } from '../../support/answering.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'
import type { Scope } from '../../support/scope.ts'
import { createKeys, seal } from '../../support/seal.ts'

const org = 'org_1'
const rep = 'rep_7'
const sealed = seal('Ines', { org, record: rep, field: 'name', keyId: 'k7' })
const source = { cluster_id: 'c', partitions: 1, rules_version: 1 }
const position = { position: 9, last: null, at: 1, time: 2, serve_from: 0 }

const world = (t: Scope, texts: readonly string[]) => {
  const engine = new MemoryElasticsearch()
  const put = {
    live: (body: LiveDocument['body']) => engine.put('p-control', LIVE_ID, 1, { kind: 'live', body }),
    generation: (body: object) =>
      engine.put('p-control', generationId('g1'), 1, {
        kind: 'generation',
        body: { ...source, generation: 'g1', topic: 'events', ...body },
      }),
    position: (body: Partial<PositionDocument['body']>, generation = 'g1') =>
      engine.put('p-control', positionId(generation, 0), 1, { kind: 'position', body: { ...position, ...body } }),
    text: (seq: number, name: string) => {
      const { _index, _id } = layoutOf('p', { generation: 'g1', topic: 'events' }).addressOf('reps', `${rep}@${seq}`)
      engine.put(_index, _id, seq, { org_id: org, seq, body_bytes: 9, body: { id: rep, name, email: null } })
    },
    parked: (offset: number, value: string) => {
      const body = { key: null, value: Buffer.from(value).toString('base64'), headers: [] }
      engine.put('p-g1-parked', `events:0:${offset}`, offset, { org_id: org, offset, at: 1, body_bytes: 9, body })
    },
  }
  put.live({ generation: 'g1' })
  put.generation({})
  for (const [name, body] of [['g2', { topic: 'events' }] as const, ['api-keys', { topic: 'keys' }] as const]) {
    const document = { kind: 'generation', body: { ...source, generation: name, ...body } }
    engine.put('p-control', generationId(name), 1, document)
    put.position({}, name)
  }
  put.position({})
  for (const [at, name] of texts.entries()) put.text(at, name)
  const { directory, sources } = createKeys(t, ['k7'])
  const out: string[] = []
  const said: string[] = []
  let searches = 0
  const steps = {
    /** Called before each search of the reps of g1, with the number of those before. */
    onSearch: (_: number): void => undefined,
  }
  const context = {
    send: sending(async (request, signal) => {
      if (request.path.startsWith('/_resolve/index/p-sandbox')) return { status: 404, body: {} }
      if (request.path.startsWith('/_resolve/'))
        return { status: 200, body: { indices: ['p-g1-reps', 'p-g1-parked'].map(name => ({ name })) } }
      if (request.path === '/p-g1-reps/_pit') steps.onSearch(searches++)
      return engine.send(request, signal)
    }),
    ...{ prefix: 'p', out: (text: string | Buffer) => void out.push(String(text)), draw: undefined, keys: sources },
    ...{ say: (line: string) => void said.push(line), now: () => 0, elapsed: () => 0, sleep: async () => undefined },
    signal: new AbortController().signal,
  }
  return {
    ...{ put, steps, out, said, directory },
    isKeyThere: () => existsSync(join(directory, 'k7.key')),
    isReceiptThere: () => existsSync(join(directory, 'k7.erased.json')),
    erase: (given: { readonly confirm?: undefined } = {}) =>
      eraseSubject({ org, rep, confirm: rep, shared: false, json: true, ...given }, context),
  }
}
type World = ReturnType<typeof world>

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

test('a key is destroyed if the live copies stay during the searches, also while projectors publish and start', async t => {
  const { erase, steps, put, isKeyThere } = world(t, [sealed])
  steps.onSearch = before => {
    put.position({ position: 12 + before, time: 3, serve_from: before })
    put.position({ position: 12, serve_from: 12 }, 'api-keys')
  }
  expect(await erase()).toBe(exitCodes.done)
  expect(isKeyThere()).toBe(false)
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
