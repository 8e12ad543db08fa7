/** Reads an organization through the API's own readers, so that an export has the bytes that the API answers. */

import type { Client } from '@elastic/elasticsearch'
import {
  createIndexChecks,
  createReaders,
  type ListParameters,
  type Moment,
  momentOf,
  type OpenRecords,
  type Page,
  recordIdOf,
  type TotalsRead,
  textOfListed,
  textOfStatement,
} from '../../core/reading/index.ts'
import { Refusal, scheduleTimer } from '../../core/runtime/index.ts'
import {
  type Credentials,
  createSearchClient,
  createTransport,
  notReplacedRange,
  type ReadPosition,
  type ReadScope,
  readingOfProcess,
  requireAnswer,
  type SearchClient,
  smallSearch,
  uncounted,
  visibleRange,
} from '../../core/store/index.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import type { SearchTarget } from '../../schemas/stored/layout.ts'
import { withRetries } from '../documents/read-retries.ts'
import { CommandError } from '../failures.ts'
import { EXPORT_PAGE } from '../limits.ts'

/**
 * Each read is retried until there is an answer. After a list or a sum, the indices are checked before it is given out:
 * a role can hide documents since the check before it.
 * @throws CommandError if refused, also if a check refuses for good, or after the last attempt
 */
export type ExportReaders = {
  readonly readTotals: (org: string, asOf: Moment | undefined) => Promise<TotalsRead>
  readonly readList: (org: string, kind: ListKind | 'changes', parameters: ListParameters) => Promise<Page>
  /** Returns the text of the statement, as the API answers it, and the position that it was read at. */
  readonly readStatement: (
    org: string,
    id: string,
    asOf: Moment | undefined,
  ) => Promise<{ readonly text: Buffer; readonly position: ReadPosition }>
  /** The number of reps or periods that are current at a position. Elasticsearch counts them, so none is read. */
  readonly countOf: (org: string, kind: 'reps' | 'periods', position: ReadPosition) => Promise<number>
}

/** @throws CommandError for an organization without any published record: its id is probably mistyped */
export const refuseUnknown = async (org: string, { readTotals }: ExportReaders): Promise<void> => {
  const { last } = await readTotals(org, undefined)
  if (!last) throw new CommandError(`nothing was ever published for ${org}`)
}

/**
 * The message of a refusal for the command line. If a request reads as of a change, `invalid_request` can only mean
 * that this change does not exist.
 */
const refusalMessage = ({ code, message }: Refusal, asOf: Moment | undefined): string => {
  if (code === 'invalid_cursor') return UNKNOWN_CURSOR
  return code === 'invalid_request' && asOf?.kind === 'change'
    ? '--as-of: there is no such change of this organization (the change of a rep or a period is its id with .n)'
    : message.replace('`as_of`', '--as-of')
}
export const UNKNOWN_CURSOR = '--starting-after: expected the id of a change of this organization'

type Parts = {
  readonly client: Client
  /** Read again when Elasticsearch refuses them: `follow` runs for longer than a key may. */
  readonly credentials: Credentials
  readonly prefix: string
  /** By default the live generation. */
  readonly generation?: string | undefined
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly signal: AbortSignal
}

export const openReaders = ({ client, credentials, ...parts }: Parts): ExportReaders =>
  readThrough(openReads(client, parts.elapsed, credentials), parts)

export const openReads = (client: Client, elapsed: () => number, credentials?: Credentials): SearchClient =>
  createSearchClient({
    transport: createTransport(client, 0, credentials),
    observe: () => undefined,
    elapsed,
  })

export const readThrough = (
  { search, multiGet, indexIds }: SearchClient,
  { prefix, generation, now, sleep, signal, elapsed }: Omit<Parts, 'client' | 'credentials'>,
): ExportReaders => {
  const indexChecks = createIndexChecks(prefix, multiGet, indexIds, elapsed, scheduleTimer)
  const reads = uncounted({ search, multiGet })
  const { readers } = createReaders({
    prefix,
    reads,
    indexChecks,
    now,
    elapsed,
    later: scheduleTimer,
    only: generation,
  })
  const scopeOf = (org: string): ReadScope => ({ org, ...readingOfProcess(signal) })
  const isRetryable = (error: unknown): boolean =>
    error instanceof Refusal && error.code === 'unavailable' && error.retry !== 'no' && !signal.aborted
  const retried = async <Result>(asOf: Moment | undefined, read: () => Promise<Result>): Promise<Result> => {
    try {
      return await withRetries({ sleep }, read, isRetryable)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.code !== 'unavailable') throw new CommandError(refusalMessage(error, asOf))
      signal.throwIfAborted()
      throw new CommandError(`Elasticsearch cannot be read: ${error.reason}`)
    }
  }
  const checkNow = ({ generation: { name, id } }: ReadPosition) => indexChecks.checkNow(name, id)
  const checked = async <Read extends { readonly position: ReadPosition }>(reading: Promise<Read>): Promise<Read> => {
    const read = await reading
    await checkNow(read.position)
    return read
  }
  return {
    readTotals: (org, asOf) => retried(asOf, () => checked(readers.totals(scopeOf(org), { asOf }))),
    readList: (org, list, parameters) =>
      retried(parameters.asOf, () => checked(readers.list(scopeOf(org), { list, ...parameters }))),
    readStatement: (org, id, asOf) =>
      retried(asOf, async () => {
        // One document is found whole, or not at all.
        const found = await readers.records.statement(scopeOf(org), { id, asOf })
        return { text: textOfStatement(found), position: found.position }
      }),
    countOf: (org, kind, position) =>
      retried(undefined, async () => {
        const where = position.generation.layout.searchOf([kind], org)
        const answer = await search(where, countBody(where, position), signal)
        await checkNow(position)
        return smallSearch<CountAggregation>(requireAnswer(answer)).aggregations.all.buckets[0]?.doc_count ?? 0
      }),
  }
}

/** Names the copy of a generation that was read: `adopt` and `rewind` raise `takenBack`, a swap changes the id. */
export const copyRead = ({ generation, takenBack }: ReadPosition): string => `${generation.id} ${takenBack}`

/**
 * Calls `check` with the position of each total, page and statement. The API reads what is live at that moment: a swap
 * and a rollback can come between two pages, and leave no trace at the end.
 */
export const withEachPosition = (
  readers: ExportReaders,
  check: (position: ReadPosition) => void,
): Pick<ExportReaders, 'readTotals' | 'readList' | 'readStatement'> => {
  const checked = async <Read extends { readonly position: ReadPosition }>(reading: Promise<Read>): Promise<Read> => {
    const read = await reading
    check(read.position)
    return read
  }
  return {
    readTotals: (...asked) => checked(readers.readTotals(...asked)),
    readList: (...asked) => checked(readers.readList(...asked)),
    readStatement: (...asked) => checked(readers.readStatement(...asked)),
  }
}

/** Refuses each read of another copy than the first one. @param advice for the message */
export const ofOneCopy = <Readers extends ExportReaders>(readers: Readers, advice: string): Readers => {
  let first: string | undefined
  const check = (position: ReadPosition): void => {
    first ??= copyRead(position)
    if (copyRead(position) === first) return
    throw new CommandError(`another projection was made live meanwhile, or was read again: ${advice}`)
  }
  return { ...readers, ...withEachPosition(readers, check) }
}

type CountAggregation = { readonly all: { readonly buckets: readonly { readonly doc_count: number }[] } }

const countBody = ({ filters }: SearchTarget, position: ReadPosition): string => {
  const current = [{ range: { seq: visibleRange(position) } }, { range: { until_seq: notReplacedRange(position) } }]
  const sources = [{ org_id: { terms: { field: 'org_id' } } }]
  return JSON.stringify({
    size: 0,
    track_total_hits: false,
    query: { bool: { filter: [...filters, ...current] } },
    aggs: { all: { composite: { size: 1, sources } } },
  })
}

/** Returns the moment just after a change; undefined before the first one. */
export const asOfChange = (id: string | null): Moment | undefined => (id === null ? undefined : momentOf(id))

type ListReader = Pick<ExportReaders, 'readList'>

/** Yields the records of a list after one, page by page, as of a change. */
export async function* listedRecords(
  kind: ListKind,
  after: string | undefined,
  org: string,
  change: string | null,
  { readList }: ListReader,
): AsyncGenerator<Buffer[]> {
  if (change === null) return
  const asOf = asOfChange(change)
  let startingAfter = after === undefined ? undefined : { kind, id: after }
  for (let more = true; more; ) {
    const page = await readList(org, kind, { limit: EXPORT_PAGE, startingAfter, asOf })
    const last = page.hits.at(-1)
    if (last) startingAfter = { kind, id: recordIdOf(last) }
    more = page.hasMore
    yield page.hits.map(hit => textOfListed(kind, hit))
  }
}

type OpenSteps = ListReader & { readonly openRecords?: () => OpenRecords; readonly signal: AbortSignal }

/** Reads pages with their sealed texts opened. @throws CommandError if a key is unknown, or cannot be read */
export const openedPages = ({ readList, openRecords, signal }: OpenSteps): ListReader => {
  const opening = openRecords?.()
  return {
    readList: async (org, kind, parameters) => {
      const page = await readList(org, kind, parameters)
      try {
        return opening ? { ...page, hits: (await opening.hits(org, page.hits, signal)).hits } : page
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        throw new CommandError(`a sealed text of ${kind} cannot be opened: ${error.reason} (SEAL_KEYS_DIR)`)
      }
    },
  }
}
