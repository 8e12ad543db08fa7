/** The index template of the prefix, while a stream runs: without it, Elasticsearch could make a deleted index anew. */
import { expect, test } from 'vitest'
import { createHealth } from '../../../../core/runtime/health.ts'
import { prepareCommon, prepareGeneration } from '../../../../core/store/generations/prepare.ts'
import { watchIndices } from '../../../../core/store/generations/watch-indices.ts'
import { StartedElasticsearch as Elasticsearch } from '../../../projector/started-elasticsearch.ts'

const source = { topic: 'commission.events', cluster_id: 'cluster-1', partitions: 1 }
const OURS = 'test-no-auto-create'

/** Watches g1 for these rounds. Each makes something before it. */
const watch = async (rounds: readonly ((elasticsearch: Elasticsearch) => unknown)[], keepsTemplate = true) => {
  const elasticsearch = new Elasticsearch()
  const steps = { request: elasticsearch.request, prefix: 'test', shards: 1 }
  await prepareCommon(steps)
  const identity = await prepareGeneration('g1', source, [{ partition: 0, low: 0, end: 5 }], steps)
  const stopping = new AbortController()
  const [failures, warned]: [unknown[], object[]] = [[], []]
  const asked: number[] = []
  const left = [...rounds]
  const sleep = async (): Promise<void> => {
    asked.push(elasticsearch.asked.splice(0).filter(one => one === 'GET /_index_template').length)
    const next = left.shift()
    if (next === undefined || failures.length > 0) stopping.abort()
    else next(elasticsearch)
  }
  const context = {
    ...{ elasticsearch: { send: elasticsearch.request }, retryOptions: { sleep, random: () => 0 } },
    keepsTemplate,
    health: createHealth({ warn: () => undefined, info: () => undefined }, () => 0),
    fail: (error: unknown): void => void failures.push(error),
    warn: (details: object, message: string): void => void warned.push({ ...details, message }),
  }
  await watchIndices({ identity, prefix: 'test' }, context, stopping.signal)
  return { templates: elasticsearch.templates, failures, warned, asked: asked.slice(1) }
}
const nothing = () => undefined
const remove = (elasticsearch: Elasticsearch): void => elasticsearch.deleteTemplate(OURS)

test('a projector puts the index template back in the next round after somebody has deleted it, and says so', async () => {
  const { templates, failures, warned, asked } = await watch([nothing, remove, nothing])
  expect(templates).toMatchObject([{ name: OURS, index_template: { allow_auto_create: false } }])
  expect(warned).toEqual([{ template: OURS, message: 'the index template of this prefix was put back' }])
  expect(failures).toEqual([])
  // One request a round; another look after the template was put.
  expect(asked).toEqual([1, 2, 1])
})

test('one that may not put it back leaves another process one round for that, and then stops', async () => {
  const refuse = (elasticsearch: Elasticsearch): void => {
    elasticsearch.mayPutTemplates = false
    remove(elasticsearch)
  }
  const another = (elasticsearch: Elasticsearch): void =>
    elasticsearch.putTemplate(OURS, { index_patterns: ['test-*'], allow_auto_create: false, priority: 504 })
  expect(await watch([refuse, another, refuse, another])).toMatchObject({ failures: [], warned: [] })
  const { failures } = await watch([refuse, nothing, nothing])
  expect(failures).toMatchObject([{ code: 'index_unsuitable' }])
})

test('a user without the right to read templates goes on', async () => {
  const refuse = (elasticsearch: Elasticsearch): void => {
    elasticsearch.mayReadTemplates = false
  }
  expect(await watch([nothing, refuse, nothing])).toMatchObject({ failures: [], warned: [] })
})

test('a command, whose user has no right on templates, does not ask', async () => {
  const { asked, templates } = await watch([remove, nothing], false)
  expect(asked).toEqual([0, 0])
  expect(templates).toEqual([])
})
