/** Reads an organization through the API's own readers, so that an export has the bytes that the API answers. */

import type { Client } from '@elastic/elasticsearch'
import { createSearchClient, type SearchClient, type Transport } from '../../api/elasticsearch/client.ts'
import { smallSearch } from '../../api/elasticsearch/slice-documents.ts'
import { Refusal, unavailable } from '../../api/failures.ts'
import { createCheckIndices } from '../../api/read/check-indices.ts'
import { notReplacedRange, type ReadPosition, visibleRange } from '../../api/read/position.ts'
import { createReaders, type Readers } from '../../api/read/readers.ts'
import { scheduleTimer } from '../../api/time-limits.ts'
import { indexOf } from '../../schemas/stored/documents.ts'
import { CommandError } from '../failures.ts'
import { READ_AGAIN_MS, READ_ATTEMPTS } from '../limits.ts'

export type ExportReaders = {
  readonly readers: Readers
  /** The number of reps or periods that are current at a position. Elasticsearch counts them, so none is read. */
  readonly countOf: (org: string, kind: 'reps' | 'periods', position: ReadPosition) => Promise<number>
  /** Retries until there is an answer. @throws CommandError if refused, or after the last attempt */
  readonly patiently: <Result>(read: (signal: AbortSignal) => Promise<Result>) => Promise<Result>
}

/** @throws CommandError for an organization without any published record: its id is probably mistyped */
export const refuseUnknown = async (org: string, { readers, patiently }: ExportReaders): Promise<void> => {
  const { last } = await patiently(signal => readers.totals(org, undefined, signal))
  if (!last) throw new CommandError(`nothing was ever published for ${org}`)
}

/** Translates a message of the API for the command line. */
const inCommands = (message: string): string =>
  message.startsWith('`as_of` must be an instant')
    ? '--as-of: there is no such change of this organization (the change of a rep or a period is its id with .n)'
    : message.replace('`as_of`', '--as-of')

type Parts = {
  readonly client: Client
  readonly prefix: string
  /** Milliseconds of any clock. */
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly time: () => number
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly signal: AbortSignal
}

export const openReaders = ({ client, ...parts }: Parts): ExportReaders => {
  const elasticsearch = createSearchClient({
    transport: client.transport.request.bind(client.transport) as Transport,
    answered: () => undefined,
    otherNodes: 0,
    observe: () => undefined,
    now: parts.now,
  })
  return readThrough(elasticsearch, parts)
}

export const readThrough = (
  { search, multiGet, indexIds }: SearchClient,
  { prefix, time, sleep, signal, now }: Omit<Parts, 'client'>,
): ExportReaders => {
  const check = createCheckIndices(prefix, multiGet, indexIds, now, scheduleTimer)
  const { readers } = createReaders(prefix, search, multiGet, check, time, scheduleTimer)
  const untilAnswered: ExportReaders['patiently'] = async read => {
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
  const countOf: ExportReaders['countOf'] = (org, kind, position) =>
    untilAnswered(async signal => {
      const answer = await search(indexOf(prefix, position.generation.name, kind), countBody(org, position), signal)
      if (answer === 'too_large') throw unavailable('elasticsearch_too_large')
      const { all } = smallSearch(answer).aggregations as { all: { buckets: readonly { doc_count: number }[] } }
      return all.buckets[0]?.doc_count ?? 0
    })
  return { readers, patiently: untilAnswered, countOf }
}

const countBody = (org: string, position: ReadPosition): string => {
  const current = [{ range: { seq: visibleRange(position) } }, { range: { until_seq: notReplacedRange(position) } }]
  const sources = [{ org_id: { terms: { field: 'org_id' } } }]
  return JSON.stringify({
    size: 0,
    track_total_hits: false,
    query: { bool: { filter: [{ term: { org_id: org } }, ...current] } },
    aggs: { all: { composite: { size: 1, sources } } },
  })
}
