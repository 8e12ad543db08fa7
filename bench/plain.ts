/** A plain pipe into an index that Elasticsearch refreshes by itself once a second: what freshness is without any of this. */
import type { Bench } from './bench.ts'
import { newPrefix } from './elasticsearch.ts'
import { type Running, startProcess } from './process.ts'
import type { Topics } from './publish.ts'

export type PlainPipe = {
  readonly process: Running
  /** Whether a search for this id finds it. */
  readonly finds: (id: string) => Promise<boolean>
  [Symbol.asyncDispose](): Promise<void>
}

const keyword = { type: 'keyword' } as const
const index = {
  settings: { number_of_shards: 1, number_of_replicas: 0, refresh_interval: '1s' },
  mappings: { dynamic: false, properties: { org_id: keyword, id: keyword, rep_id: keyword, period_id: keyword } },
}

export const startPlainPipe = async ({ elasticsearch, signal }: Bench, topics: Topics): Promise<PlainPipe> => {
  const name = `${newPrefix()}-plain`
  await using stack = new AsyncDisposableStack()
  await elasticsearch.call('PUT', `/${name}`, index)
  stack.defer(async () => {
    await elasticsearch.call('DELETE', `/${name}`)
  })
  stack.defer(() => topics.forgetGroups(name, ['pipe']))
  const process = stack.use(
    await startProcess({
      script: 'bench/peers/plain-pipe.ts',
      ready: 'ready',
      signal,
      settings: {
        KAFKA_BROKERS: topics.settings.KAFKA_BROKERS,
        KAFKA_TOPIC: topics.settings.KAFKA_EVENTS_TOPIC,
        KAFKA_GROUP_ID: `${name}-pipe`,
        ELASTICSEARCH_URL: elasticsearch.url,
        INDEX: name,
      },
    }),
  )
  const kept = stack.move()
  return {
    process,
    // A search: a get by id would see it before the index is refreshed.
    finds: async id => {
      const found = await elasticsearch.call('POST', `/${name}/_search`, { size: 1, query: { term: { id } } })
      return (found as { hits: { hits: unknown[] } }).hits.hits.length > 0
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
