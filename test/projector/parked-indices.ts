/** Indices of parked records of a prefix, and Elasticsearch's answers about their ids. */
import type { Answer, Request } from '../../core/store/elasticsearch/client.ts'
import { StartedElasticsearch } from './started-elasticsearch.ts'

const parkedOf = (generation: string): string => `c-${generation}-parked`

/** The ids that were recorded for a generation. */
export const recordedIds = (generation: string) => ({
  indices: { [parkedOf(generation)]: `id of ${parkedOf(generation)}` },
  shards: { [`${parkedOf(generation)}/0`]: `history of ${parkedOf(generation)}` },
})

/** A test may change its `indices`, `replaced` and `lost`. */
export class ParkedIndices extends StartedElasticsearch {
  constructor() {
    super()
    const names = ['c-control', ...['g1', 'g2', 'api-keys'].map(parkedOf)]
    for (const name of names) this.indices.set(name, { mappings: {}, settings: { index: {} } })
  }

  /** Returns undefined if the request asks for no ids. */
  async answer(request: Request): Promise<Answer | undefined> {
    return /^\/_security\/|_settings$|_stats\/get$/.test(request.path) ? this.request(request) : undefined
  }
}
