/** Requests of the bench to Elasticsearch besides the measured ones: indices, positions, versions. */
import { randomBytes } from 'node:crypto'
import { layoutOfNew } from '../../core/store/index.ts'
import {
  controlIndexOf,
  FIRST_GENERATION,
  type PositionDocument,
  positionId,
  templateNameOf,
} from '../../schemas/stored/documents.ts'
import { type LayoutSource, layoutOf } from '../../schemas/stored/layout.ts'
import { commonIndices, generationIndices } from '../../schemas/stored/mappings.ts'

export type BenchElasticsearch = {
  readonly url: string
  /** Returns the JSON of the answer, of the type that the caller names. @throws Error if the status is not 2xx */
  readonly call: <Answer = unknown>(method: string, path: string, body?: object) => Promise<Answer>
  /** Sends a bulk request. @throws Error if the status is not 200 or a document is refused */
  readonly bulk: (lines: string) => Promise<void>
  /** Counts the requests to the indices of a prefix since their creation. @throws Error if an index is missing */
  readonly counts: (prefix: string) => Promise<RequestCounts>
  /** Creates the indices of the first generation and the common ones, as a projector does. */
  readonly createIndices: (prefix: string) => Promise<void>
  /** Removes those of the generations, by default the first one, and the common ones. */
  readonly removeIndices: (prefix: string, generations?: readonly string[]) => Promise<void>
  /** Returns the published positions of a generation, by default the first one, by partition. */
  readonly positions: (prefix: string, partitions: number, generation?: string) => Promise<number[]>
}

export type RequestCounts = {
  /** Writes of control documents: positions and times. */
  readonly controlWrites: number
  /** Refreshes of the index of payouts. */
  readonly refreshes: number
  /** Realtime reads of chains: only the projector reads them. */
  readonly chainsRead: number
  /** Of these, the ones that do not exist: first payouts of a rep and period. */
  readonly chainsMissing: number
}

/** All prefixes have the same length, so that one can replace another in recorded bytes. */
export const newPrefix = (): string => `bench-${randomBytes(4).toString('hex')}`

/** Creates the requests to Elasticsearch at this URL. Of several, separated by commas, they go to the first. */
export const createBenchElasticsearch = (url: string): BenchElasticsearch => {
  const [first] = url.split(',')
  const call: BenchElasticsearch['call'] = async (method, path, body) => {
    const answer = await fetch(`${first}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const text = await answer.text()
    if (!answer.ok)
      throw new Error(`Elasticsearch answers ${answer.status} to ${method} ${path}: ${text.slice(0, 500)}`)
    return JSON.parse(text)
  }
  return {
    url,
    call,
    bulk: async lines => {
      const answer = await fetch(`${first}/_bulk?filter_path=errors`, {
        method: 'POST',
        body: lines,
        headers: { 'content-type': 'application/x-ndjson' },
      })
      const text = await answer.text()
      if (answer.status !== 200 || text !== '{"errors":false}') {
        throw new Error(`Elasticsearch answers ${answer.status} to a bulk request: ${text.slice(0, 200)}`)
      }
    },
    counts: async prefix => {
      const { indices } = await call<IndexStats>('GET', `/${prefix}-*/_stats/indexing,refresh,get`)
      const of = (index: string) => {
        const counted = indices[index]
        if (counted === undefined) throw new Error(`Elasticsearch has no index ${index}`)
        return counted.primaries
      }
      const { indexOf } = layoutOf(prefix, firstGeneration)
      const chains = of(indexOf('chains')).get
      return {
        controlWrites: of(controlIndexOf(prefix)).indexing.index_total,
        refreshes: of(indexOf('payouts')).refresh.total,
        chainsRead: chains.total,
        chainsMissing: chains.missing_total,
      }
    },
    createIndices: async prefix => {
      for (const [name, { mappings, settings }] of Object.entries(indicesOf(prefix))) {
        await call('PUT', `/${name}?wait_for_active_shards=1`, { mappings, settings: { index: settings } })
      }
    },
    removeIndices: async (prefix, generations) => {
      await call('DELETE', `/${Object.keys(indicesOf(prefix, generations)).join(',')}?ignore_unavailable=true`)
      await call('DELETE', `/_index_template/${templateNameOf(prefix)}`).catch(() => undefined)
    },
    positions: async (prefix, partitions, generation = FIRST_GENERATION) => {
      const ids = Array.from({ length: partitions }, (_, partition) => positionId(generation, partition))
      const { docs } = await call<Positions>('POST', `/${controlIndexOf(prefix)}/_mget`, { ids })
      return docs.map(({ _source }) => _source?.body.position ?? 0)
    },
  }
}

type IndexStats = {
  readonly indices: Readonly<
    Record<
      string,
      {
        readonly primaries: {
          readonly indexing: { readonly index_total: number }
          readonly refresh: { readonly total: number }
          readonly get: { readonly total: number; readonly missing_total: number }
        }
      }
    >
  >
}
type Positions = { readonly docs: readonly { readonly _source?: PositionDocument }[] }

/** The generation that a projector makes first. */
export const firstGeneration: LayoutSource = { generation: FIRST_GENERATION, topic: '', ...layoutOfNew({ shards: 1 }) }

const indicesOf = (prefix: string, generations: readonly string[] = [FIRST_GENERATION]) =>
  Object.fromEntries(
    [
      ...generations.map(generation => generationIndices(prefix, { ...firstGeneration, generation }, { shards: 1 })),
      commonIndices(prefix),
    ].flatMap(indices => Object.entries(indices)),
  )
