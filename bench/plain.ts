/** A plain pipe into an index that Elasticsearch refreshes by itself once a second: what freshness is without any of this. */
import { FIRST_GENERATION, generationIndices, indexOf, recordId } from '../schemas/documents.ts'
import type { Bench } from './bench.ts'
import { newPrefix } from './elasticsearch.ts'
import { type Running, startProcess } from './process.ts'
import type { Topics } from './publish.ts'

export type PlainPipe = {
  readonly process: Running
  /** Whether a search for this payout finds it. */
  readonly finds: (org: string, id: string) => Promise<boolean>
  [Symbol.asyncDispose](): Promise<void>
}

export const startPlainPipe = async ({ elasticsearch, signal }: Bench, topics: Topics): Promise<PlainPipe> => {
  const prefix = newPrefix()
  const index = indexOf(prefix, FIRST_GENERATION, 'payouts')
  const { mappings = {} } = generationIndices(prefix, FIRST_GENERATION, 1)[index] ?? {}
  await using stack = new AsyncDisposableStack()
  await elasticsearch.call('PUT', `/${index}`, { mappings, settings: { index: { refresh_interval: '1s' } } })
  stack.defer(async () => {
    await elasticsearch.call('DELETE', `/${index}`)
  })
  stack.defer(() => topics.forgetGroups(prefix, [FIRST_GENERATION]))
  const process = stack.use(
    await startProcess({
      script: 'bench/peers/helpers-bulk.ts',
      ready: 'consuming',
      signal,
      settings: {
        ...topics.settings,
        KAFKA_GROUP_ID: `${prefix}-${FIRST_GENERATION}`,
        ELASTICSEARCH_URL: elasticsearch.url,
        ELASTICSEARCH_INDEX: index,
      },
    }),
  )
  const kept = stack.move()
  return {
    process,
    // A search: a get by id would see it before the index is refreshed.
    finds: async (org, id) => {
      const search = { size: 1, query: { term: { _id: recordId(org, id) } } }
      const found = await elasticsearch.call('POST', `/${index}/_search`, search)
      return (found as { hits: { hits: unknown[] } }).hits.hits.length > 0
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
