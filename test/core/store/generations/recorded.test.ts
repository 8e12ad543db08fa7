/** The recorded shards of a generation, one of which still starts. */
import { expect, test } from 'vitest'
import { createHealth, StopError } from '../../../../core/runtime/index.ts'
import { type PrepareSteps, prepareCommon, prepareGeneration } from '../../../../core/store/generations/prepare.ts'
import { watchIndices } from '../../../../core/store/generations/watch-indices.ts'
import type { GenerationDocument } from '../../../../schemas/stored/documents.ts'
import { StartedElasticsearch as Elasticsearch } from '../../../projector/started-elasticsearch.ts'
import { sending } from '../../../support/answering.ts'

const source = { topic: 'commission.events', cluster_id: 'cluster-1', partitions: 1 }
const steps = (elasticsearch: Elasticsearch, told: string[] = []): PrepareSteps => ({
  request: elasticsearch.request,
  prefix: 'test',
  shards: 2,
  tellShards: (generation, shards) => void told.push(`${generation}: ${shards}`),
})
const start = async (steps: PrepareSteps): Promise<void> => {
  await prepareCommon(steps)
  await prepareGeneration('g1', source, [{ partition: 0, low: 0, end: 5 }], steps)
}
const late = 'test-g1-payouts/1'
const shardsOf = (elasticsearch: Elasticsearch) =>
  (elasticsearch.control('generation:g1') as GenerationDocument).body.shards

test('a start records no ids of shards while one of them still starts: it would never be compared', async () => {
  const elasticsearch = new Elasticsearch()
  elasticsearch.starting.add(late)
  const told: string[] = []
  await start(steps(elasticsearch, told))
  expect(shardsOf(elasticsearch)).toBeUndefined()
  elasticsearch.starting.clear()
  await start(steps(elasticsearch, told))
  expect(shardsOf(elasticsearch)).toHaveProperty([late], 'history of test-g1-payouts')
  expect(told).toEqual([])
})

test('a list of shards that lacks one is completed once it has started, with a warning, and it is compared from then on', async () => {
  const elasticsearch = new Elasticsearch()
  await start(steps(elasticsearch))
  const whole = structuredClone(elasticsearch.documents)
  const { kind, body } = elasticsearch.control('generation:g1') as GenerationDocument
  const { [late]: _, ...shards } = body.shards ?? {}
  elasticsearch.documents.set('test-control/generation:g1', { kind, body: { ...body, shards } })
  elasticsearch.starting.add(late)
  const told: string[] = []
  await start(steps(elasticsearch, told))
  expect([shardsOf(elasticsearch), told]).toEqual([shards, []])
  elasticsearch.starting.clear()
  for (const _ of [1, 2]) await start(steps(elasticsearch, told))
  expect([elasticsearch.documents, told]).toEqual([whole, [`g1: ${late}`]])
  elasticsearch.lost.add('test-g1-payouts')
  await expect(start(steps(elasticsearch))).rejects.toMatchObject({ code: 'index_replaced' })
})

test('a projector that runs records the ids of shards once all have started', async () => {
  const elasticsearch = new Elasticsearch()
  elasticsearch.starting.add(late)
  await start(steps(elasticsearch))
  const { body: identity } = elasticsearch.control('generation:g1') as GenerationDocument
  elasticsearch.starting.clear()
  const stopping = new AbortController()
  const failures: unknown[] = []
  let looks = 0
  const sleep = async (): Promise<void> => {
    looks++
    if (looks === 2) elasticsearch.lost.add('test-g1-payouts')
    if (looks === 3) stopping.abort()
  }
  const health = createHealth({ warn: () => undefined, info: () => undefined }, () => 0)
  const fail = (error: unknown): void => void failures.push(error)
  const context = {
    elasticsearch: { send: elasticsearch.request },
    retryOptions: { sleep, random: () => 0 },
    health,
    fail,
  }
  await watchIndices({ identity, prefix: 'test' }, context, stopping.signal)
  expect(shardsOf(elasticsearch)).toHaveProperty([late], 'history of test-g1-payouts')
  expect(failures).toMatchObject([{ code: 'index_replaced' }])
})

test('a recorded shard that two looks in a row do not find is a reason not to be ready, until it is back', async () => {
  const elasticsearch = new Elasticsearch()
  await start(steps(elasticsearch))
  const { body: identity } = elasticsearch.control('generation:g1') as GenerationDocument
  const stopping = new AbortController()
  const health = createHealth({ warn: () => undefined, info: () => undefined }, () => 0)
  const told: Record<string, string>[] = []
  const away = [true, false, true, true, true, false]
  const sleep = async (): Promise<void> => {
    told.push(health.reasons())
    elasticsearch.starting.clear()
    const isAway = away[told.length - 1]
    if (isAway === undefined) stopping.abort()
    else if (isAway) elasticsearch.starting.add(late)
  }
  const fail = (error: unknown): void => expect.fail(String(error))
  const context = {
    ...{ elasticsearch: { send: elasticsearch.request }, health, fail },
    retryOptions: { sleep, random: () => 0 },
  }
  await watchIndices({ identity, prefix: 'test' }, context, stopping.signal)
  const named = { 'g1 elasticsearch shards': `Elasticsearch has no primary of ${late}` }
  expect(told).toEqual([{}, {}, {}, {}, named, named, {}])
})

test('a setting that loses nothing is told once when it comes after the start, and again after its end', async () => {
  const elasticsearch = new Elasticsearch()
  await start(steps(elasticsearch))
  const { body: identity } = elasticsearch.control('generation:g1') as GenerationDocument
  const settings = elasticsearch.indices.get('test-g1-payouts')?.settings.index ?? expect.fail()
  const stopping = new AbortController()
  const health = createHealth({ warn: () => undefined, info: () => undefined }, () => 0)
  const told: object[][] = [[]]
  // The start has told of the block, which is there at the first look.
  const looks = [{ blocks: { write: 'true' } }, { lifecycle: { name: 'old' } }, { lifecycle: { name: 'old' } }, {}]
  const left = [...looks, { lifecycle: { name: 'old' } }]
  const sleep = async (): Promise<void> => {
    told.push([])
    const next = left.shift()
    if (next === undefined) return stopping.abort()
    for (const name of ['blocks', 'lifecycle']) delete settings[name]
    Object.assign(settings, next)
  }
  const context = {
    ...{ elasticsearch: { send: elasticsearch.request }, health, retryOptions: { sleep, random: () => 0 } },
    fail: (error: unknown): void => expect.fail(String(error)),
    warn: (details: object, message: string): void => void told.at(-1)?.push({ ...details, message }),
  }
  await watchIndices({ identity, prefix: 'test' }, context, stopping.signal)
  const line = {
    ...{ index: 'test-g1-payouts', setting: 'lifecycle.name', expected: 'none', got: 'old' },
    reason: 'a lifecycle policy can delete the index, or make it read-only',
    message: 'a setting of an index is not as expected',
  }
  expect(told).toEqual([[], [], [line], [], [], [line], []])
})

test('a user that may not ask for recorded shards any more is a reason not to be ready; if none are recorded, it is none', async () => {
  const elasticsearch = new Elasticsearch()
  await start(steps(elasticsearch))
  const { body: identity } = elasticsearch.control('generation:g1') as GenerationDocument
  const reasonOf = async (recorded: typeof identity): Promise<string | undefined> => {
    elasticsearch.documents.set('test-control/generation:g1', { kind: 'generation', body: recorded })
    const stopping = new AbortController()
    const health = createHealth({ warn: () => undefined, info: () => undefined }, () => 0)
    let looks = 0
    let reason: string | undefined
    const sleep = async (): Promise<void> => {
      reason = health.reasons()['g1 elasticsearch shards']
      if (++looks > 2) stopping.abort()
    }
    const send = sending(async asked => {
      if (asked.path.endsWith('/_stats/get')) throw new StopError('access_refused', 'Elasticsearch answers 403')
      return elasticsearch.request(asked)
    })
    const fail = (error: unknown): void => expect.fail(String(error))
    const context = { elasticsearch: { send }, health, fail, retryOptions: { sleep, random: () => 0 } }
    await watchIndices({ identity: recorded, prefix: 'test' }, context, stopping.signal)
    return reason
  }
  expect(await reasonOf(identity)).toMatch(/^no id of test-control\/0, .*: this user lacks the privilege `monitor`/)
  const { shards: _, ...never } = identity
  expect(await reasonOf(never)).toBeUndefined()
})
