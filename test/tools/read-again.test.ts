/** Commands that answer from documents, while a restored copy is read again and its documents can be missing. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { partitionOf } from '../../schemas/partition.ts'
import { generationId, LIVE_ID, positionId } from '../../schemas/stored/documents.ts'
import { explain } from '../../tools/analysis/explain.ts'
import { explainDeal } from '../../tools/analysis/explain-deal.ts'
import type { ClusterContext, KafkaContext } from '../../tools/context.ts'
import { type CloseSteps, closePeriod } from '../../tools/evidence/close.ts'
import { diff } from '../../tools/generations/diff.ts'
import { verify } from '../../tools/generations/verify.ts'
import { listKeys } from '../../tools/keys/keys.ts'
import { again, count, listParked, showParked } from '../../tools/parked/parked.ts'
import { eraseSubject, listSubjects, reportSubject } from '../../tools/subjects/subjects.ts'
import { validateFile } from '../../tools/validate/validate.ts'
import { MemoryElasticsearch } from '../support/memory-elasticsearch.ts'

const org = 'org_1'
const PARTITIONS = 2
const own = partitionOf(org, PARTITIONS)
const other = 1 - own
type Change = { readonly position?: number; readonly serve_from?: number; readonly removing?: true }

/** Generations g1, which is live, and g2, a sandbox, and API keys: each partition is at offset 9. */
const world = (changes: Readonly<Record<string, Change>>) => {
  const engine = new MemoryElasticsearch()
  const add = (prefix: string, generation: string, topic: string, partitions: number, more: object = {}): void => {
    const body = { generation, topic, cluster_id: 'c', partitions, rules_version: 1, ...more }
    engine.put(`${prefix}-control`, generationId(generation), 1, { kind: 'generation', body })
    for (let partition = 0; partition < partitions; partition++) {
      const id = positionId(generation, partition)
      const position = { position: 9, last: null, at: 1, time: 2, serve_from: 0, ...changes[id] }
      engine.put(`${prefix}-control`, id, 1, { kind: 'position', body: position })
    }
  }
  add('p', 'g1', 'events', PARTITIONS)
  add('p', 'g2', 'events', PARTITIONS)
  add('p', 'api-keys', 'keys', 1)
  const sandbox = { org: null, until: null, bounds: [9, 9], rules: null }
  add('p-sandbox', 's', 'events', PARTITIONS, { sandbox })
  engine.put('p-control', LIVE_ID, 1, { kind: 'live', body: { generation: 'g1', kept: ['g1', 'g2'] } })
  return {
    ...{ send: engine.send, prefix: 'p', out: () => undefined, say: () => undefined, draw: undefined },
    ...{ now: () => 0, elapsed: () => 0, sleep: async () => undefined, signal: new AbortController().signal },
    ...{ topics: { events: 'events', 'api-keys': 'keys' }, kafka: NOT_ASKED, openCluster },
    keys: { directory: '/nowhere', vault: undefined },
  }
}
const NOT_ASKED = {} as KafkaContext['kafka']
const openCluster: ClusterContext['openCluster'] = () => Promise.reject(new Error('not asked'))
type World = ReturnType<typeof world>

const json = true
const filter = {}
const position = { topic: 'events', partition: own, offset: 3 }
const validated = (options: { readonly live: boolean; readonly generation?: string }, context: World) =>
  validateFile(
    { file: 'f', type: undefined, partitions: 1, json, ...options },
    { ...context, context: () => context, open: async function* () {} },
  )
const closed = (context: World) => {
  const folder = mkdtempSync(join(tmpdir(), 'close-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const more = { asOf: undefined, keysUntil: undefined, sign: undefined, audit: undefined, json }
  const options = { org, period: 'period_1', out: join(folder, 'out'), ...more } as Parameters<typeof closePeriod>[0]
  return closePeriod(options, context as unknown as CloseSteps)
}

type Command = (context: World) => Promise<unknown>
/** Those of one organization or record: its partition counts. */
const ofOrganization: Readonly<Record<string, Command>> = {
  explain: context => explain({ org, payout: 'payout_1', generation: undefined, json }, context),
  'explain of g1': context => explain({ org, payout: 'payout_1', generation: 'g1', json }, context),
  'explain of a deal': context => explainDeal({ org, deal: 'deal_1', generation: undefined, json }, context),
  'diff of an organization': context => diff({ a: 'g1', b: 'g2', org, format: 'ndjson', html: undefined }, context),
  'verify of an organization': context => verify({ a: 'g1', b: 'g2', org, json }, context),
  'parked show': context => showParked({ position, as: 'json' }, context),
}
const ofEvents: Readonly<Record<string, Command>> = {
  diff: context => diff({ a: 'g1', b: 'g2', org: undefined, format: 'ndjson', html: undefined }, context),
  'diff with a sandbox': context =>
    diff({ a: 'sandbox:s', b: 'g1', org: undefined, format: 'ndjson', html: undefined }, context),
  verify: context => verify({ a: 'g2', b: 'g1', json }, context),
  'parked list': context => listParked({ filter, order: 'oldest', after: undefined, limit: 9, json }, context),
  'parked count': context => count({ filter: { topic: 'events' }, json }, context),
  'parked publish-again': context =>
    again({ positions: [], filter, publish: false, force: false, waitSeconds: 1, json }, context),
  'validate --live': context => validated({ live: true }, context),
  'validate --generation': context => validated({ live: false, generation: 'g1' }, context),
  'subjects list': context => listSubjects({ org, json }, context),
  'subjects report': context => reportSubject({ org, rep: 'rep_7', json }, context),
  'subjects erase': context => eraseSubject({ org, rep: 'rep_7', confirm: 'rep_7', shared: false, json }, context),
  close: closed,
}
const ofKeys: Readonly<Record<string, Command>> = {
  'keys list': context => listKeys({ org, json }, context),
  'parked list': context => listParked({ filter, order: 'oldest', after: undefined, limit: 9, json }, context),
  'validate --live': context => validated({ live: true }, context),
  'subjects list': context => listSubjects({ org, json }, context),
  'subjects report': context => reportSubject({ org, rep: 'rep_7', json }, context),
  'subjects erase': context => eraseSubject({ org, rep: 'rep_7', confirm: 'rep_7', shared: false, json }, context),
  close: closed,
}

const refusal = (partition: number): string =>
  `g1 is at 5 in partition ${partition} of events, and reads again up to 9: records could be missing`

test.for(Object.entries({ ...ofOrganization, ...ofEvents }))(
  '%s answers nothing while the partition of its records is read again',
  async ([, run]) => {
    const context = world({ [positionId('g1', own)]: { position: 5, serve_from: 9 } })
    await expect(run(context)).rejects.toThrow(refusal(own))
    const removing = world({ [positionId('g1', own)]: { removing: true } })
    await expect(run(removing)).rejects.toThrow(
      `g1 is at 9 in partition ${own} of events, and adopt or rewind removes documents there`,
    )
  },
)

test.for(Object.entries(ofEvents))('%s answers nothing while any partition is read again', async ([, run]) => {
  const context = world({ [positionId('g1', other)]: { position: 5, serve_from: 9 } })
  await expect(run(context)).rejects.toThrow(refusal(other))
})

test.for(Object.entries(ofOrganization))(
  '%s answers while only a partition of others is read again',
  async ([, run]) => {
    const context = world({ [positionId('g1', other)]: { position: 5, serve_from: 9, removing: true } })
    expect(await run(context).then(String, String)).not.toContain('g1 is at 5')
  },
)

test.for(Object.entries(ofKeys))('%s answers nothing while API keys are read again', async ([, run]) => {
  const context = world({ [positionId('api-keys', 0)]: { position: 5, serve_from: 9 } })
  await expect(run(context)).rejects.toThrow(
    'api-keys is at 5 in partition 0 of keys, and reads again up to 9: a revoked key could look valid',
  )
})

test('parked records of one partition are shown while only another one is read again', async () => {
  const context = world({ [positionId('g1', other)]: { position: 5, serve_from: 9 } })
  const list = (partition: number) =>
    listParked({ filter: { topic: 'events', partition }, order: 'oldest', after: undefined, limit: 9, json }, context)
  await expect(list(other)).rejects.toThrow(refusal(other))
  expect(await list(own).then(String, String)).not.toContain('g1 is at 5')
})

test('parked records of one topic are shown while only the other one is read again', async () => {
  const context = world({ [positionId('api-keys', 0)]: { position: 5, serve_from: 9 } })
  const show = (topic: string) => showParked({ position: { ...position, topic }, as: 'json' }, context)
  await expect(show('events')).rejects.toThrow(`events:${own}:3 is not parked`)
  await expect(show('keys')).rejects.toThrow('api-keys is at 5')
})
