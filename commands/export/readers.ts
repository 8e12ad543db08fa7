/**
 * What an organization's records are read with: the API's own readers, so that what is exported is what is answered.
 */

import type { Client } from '@elastic/elasticsearch'
import { createElasticsearch, type Elasticsearch, type Transport } from '../../api/elasticsearch/client.ts'
import { smallSearch } from '../../api/elasticsearch/slice-documents.ts'
import { Refusal, unavailable } from '../../api/failures.ts'
import { createCheckIndices } from '../../api/read/check-indices.ts'
import { notReplacedRange, type Position, visibleRange } from '../../api/read/position.ts'
import { createReaders, type Readers } from '../../api/read/readers.ts'
import { timer } from '../../api/time-limits.ts'
import { indexOf } from '../../schemas/stored/documents.ts'
import { CommandError } from '../failures.ts'
import { READ_AGAIN_MS, READ_ATTEMPTS } from '../limits.ts'

export type Reading = {
  readonly readers: Readers
  /**
   * How many reps or periods of an organization are current at a position: counted by Elasticsearch, not by reading
   * them.
   */
  readonly countOf: (org: string, kind: 'reps' | 'periods', position: Position) => Promise<number>
  /** Asks until it is answered. @throws CommandError where it is refused, or never is */
  readonly patiently: <Result>(read: (signal: AbortSignal) => Promise<Result>) => Promise<Result>
}

/**
 * @throws CommandError for an organization of which nothing was ever published: its id is mistyped, more likely than
 * not
 */
export const refuseUnknown = async (org: string, { readers, patiently }: Reading): Promise<void> => {
  const { last } = await patiently(signal => readers.totals(org, undefined, signal))
  if (!last) throw new CommandError(`nothing was ever published for ${org}`)
}

/** A refusal of the API in the words of the command line. */
const inCommands = (message: string): string =>
  message.startsWith('`as_of` must be an instant')
    ? '--as-of: there is no such change of this organization (that of a rep or a period has .n behind its id)'
    : message.replace('`as_of`', '--as-of')

type Parts = {
  readonly client: Client
  readonly prefix: string
  /** Milliseconds on any clock. */
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly time: () => number
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly signal: AbortSignal
}

export const openReaders = ({ client, ...parts }: Parts): Reading => {
  const elasticsearch = createElasticsearch({
    transport: client.transport.request.bind(client.transport) as Transport,
    answered: () => undefined,
    otherNodes: 0,
    observe: () => undefined,
    now: parts.now,
  })
  return readThrough(elasticsearch, parts)
}

export const readThrough = (
  { search, multiGet, indexIds }: Elasticsearch,
  { prefix, time, sleep, signal, now }: Omit<Parts, 'client'>,
): Reading => {
  const check = createCheckIndices(prefix, multiGet, indexIds, now, timer)
  const { readers } = createReaders(prefix, search, multiGet, check, time, timer)
  const untilAnswered: Reading['patiently'] = async read => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await read(signal)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        if (error.code !== 'unavailable') throw new CommandError(inCommands(error.message))
        signal.throwIfAborted()
        if (attempt === READ_ATTEMPTS) throw new CommandError(`Elasticsearch cannot be read: ${error.because}`)
        await sleep(READ_AGAIN_MS)
      }
    }
  }
  const countOf: Reading['countOf'] = (org, kind, position) =>
    untilAnswered(async signal => {
      const answer = await search(indexOf(prefix, position.generation.name, kind), countBody(org, position), signal)
      if (answer === 'too_large') throw unavailable('elasticsearch_too_large')
      const { all } = smallSearch(answer).aggregations as { all: { buckets: readonly { doc_count: number }[] } }
      return all.buckets[0]?.doc_count ?? 0
    })
  return { readers, patiently: untilAnswered, countOf }
}

const countBody = (org: string, position: Position): string => {
  const current = [{ range: { seq: visibleRange(position) } }, { range: { until_seq: notReplacedRange(position) } }]
  const sources = [{ org_id: { terms: { field: 'org_id' } } }]
  return JSON.stringify({
    size: 0,
    track_total_hits: false,
    query: { bool: { filter: [{ term: { org_id: org } }, ...current] } },
    aggs: { all: { composite: { size: 1, sources } } },
  })
}
