/**
 * Reads all documents of an index, or those of one organization, as of one moment, whatever their number and size.
 *
 * In: an index; an organization, '' for documents without one, undefined for all. Out: its documents, in an order that
 * differs between indices.
 * Promises: an answer holds at most `SCAN_BYTES` of documents, or one document. Sizes are not indexed, so a scan
 * requests each page twice: first the sizes of its documents, then the documents, in parts that fit.
 * Can go wrong: Elasticsearch is away or too slow for a page (requests fewer documents and retries); a shard does not
 * answer (the command ends: missing documents must not look like an empty shard).
 */

import { Unanswered } from '../../core/runtime/index.ts'
import { AnswerTooLong, type SearchAnswer } from '../../core/store/index.ts'
import { keptIdIn, ownFieldsOf } from '../../schemas/stored/documents.ts'
import type { SearchTarget } from '../../schemas/stored/layout.ts'
import { CommandError } from '../failures.ts'
import {
  READ_ATTEMPTS,
  READ_RETRY_MS,
  SCAN_ANSWER_BYTES,
  SCAN_LOADED_BYTES,
  SCAN_SIZES,
  SCAN_SIZES_FIRST,
} from '../limits.ts'
import type { Document, Fields } from './as-of.ts'
import { type RetryContext, withRetries } from './read-retries.ts'
import { refreshAll, wholeAnswer } from './shards.ts'
import { countFitting } from './sizes.ts'

/** Longer than the retries of a page. `search.max_keep_alive` of the cluster must permit it. */
export const KEEP_ALIVE = '15m'

/** Says why no point in time was opened. */
export const cannotOpen = (indices: string, status: number): string => {
  const why = status === 400 ? `; search.max_keep_alive must be ${KEEP_ALIVE} or more` : ''
  return `${indices} cannot be read: Elasticsearch answers ${status}${why}`
}

type Hit<Source> = { readonly _id: string; readonly _source?: Source; readonly sort: readonly unknown[] }
type Page<Source> = SearchAnswer<Hit<Source>> & { readonly pit_id: string }
type Sized = { readonly id: string; readonly bytes: number; readonly sort: readonly unknown[] }

/** `Source` is the form of the documents, as the caller knows it. @throws CommandError if a shard does not answer */
export async function* scan<Source extends Fields = Fields>(
  { index, routing, filters }: SearchTarget,
  reading: RetryContext,
): AsyncGenerator<Document<Source>> {
  const { send } = reading
  const routed = routing === undefined ? {} : { routing }
  // Elasticsearch stops the periodic refresh of an index that nobody searches.
  await refreshAll(index, reading)
  const opened = await withRetries(reading, () =>
    send<{ readonly id: string }>({
      method: 'POST',
      path: `/${index}/_pit`,
      query: { keep_alive: KEEP_ALIVE, ...routed },
    }),
  )
  if (opened.status !== 200) throw new CommandError(cannotOpen(index, opened.status))
  let pit = opened.body.id

  const search: Search<Source> = async (size, after, sizesOnly) => {
    const answer = await send<Page<Source>>({
      method: 'POST',
      path: '/_search',
      ...(size > 1 && { answerBytesMax: SCAN_ANSWER_BYTES }),
      body: {
        size,
        track_total_hits: false,
        pit: { id: pit, keep_alive: KEEP_ALIVE },
        query: filters.length === 0 ? { match_all: {} } : { bool: { filter: filters } },
        sort: [{ _shard_doc: 'asc' }],
        ...(sizesOnly && { _source: ['body_bytes'] }),
        ...(after && { search_after: after }),
      },
    })
    const body = wholeAnswer(index, answer)
    pit = body.pit_id
    return body.hits.hits
  }

  try {
    let wanted = SCAN_SIZES_FIRST
    for (let after: readonly unknown[] | undefined; ; ) {
      const { hits, asked } = await fewer(wanted, reading, size => search(size, after, true))
      const sized = hits.map(({ _id: id, _source, sort }) => ({ id, bytes: Number(_source?.body_bytes ?? 0), sort }))
      yield* documentsOf(sized, after, index, reading, search)
      if (hits.length < asked) return
      after = hits.at(-1)?.sort
      wanted = nextSize(
        asked,
        sized.map(({ bytes }) => bytes),
      )
    }
  } finally {
    // An open point in time holds its segments for minutes. If closing it fails, an earlier error is the one to report.
    await send({ method: 'DELETE', path: '/_pit', body: { id: pit } }).catch(() => undefined)
  }
}

type Search<Source> = (
  size: number,
  after: readonly unknown[] | undefined,
  sizesOnly: boolean,
) => Promise<readonly Hit<Source>[]>

/** Reads the documents whose sizes are known, as many at a time as fit into one answer. */
async function* documentsOf<Source extends Fields>(
  sized: readonly Sized[],
  before: readonly unknown[] | undefined,
  index: string,
  reading: RetryContext,
  search: Search<Source>,
): AsyncGenerator<Document<Source>> {
  const sizes = sized.map(({ bytes }) => bytes)
  for (let from = 0; from < sized.length; ) {
    const after = sized[from - 1]?.sort ?? before
    const { hits } = await fewer(countFitting(sizes, from), reading, size => search(size, after, false))
    for (const { _id: id, _source: source } of hits) {
      if (id !== sized[from]?.id || source === undefined) throw new CommandError(`${index} changes while it is read`)
      // Not a record: it comes back when the command that removes leftovers has ended.
      if (keptIdIn(id) === undefined) yield { id, source: ownFieldsOf(source) as Source }
      from++
    }
    if (hits.length === 0) throw new CommandError(`${index} changes while it is read`)
  }
}

/** Elasticsearch loads each document to return its size: the larger the last ones were, the fewer are requested. */
export const nextSize = (asked: number, sizes: readonly number[]): number => {
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  const fitting = Math.floor((SCAN_LOADED_BYTES * sizes.length) / Math.max(1, bytes))
  return Math.max(1, Math.min(asked * 4, fitting, SCAN_SIZES))
}

/** Halves the request if an answer is too long or missing; retries a single document. */
const fewer = async <Answer>(
  wanted: number,
  { sleep }: RetryContext,
  ask: (size: number) => Promise<Answer>,
): Promise<{ readonly hits: Answer; readonly asked: number }> => {
  for (let size = wanted, attempt = 1; ; size = Math.max(1, size >> 1)) {
    try {
      return { hits: await ask(size), asked: size }
    } catch (error) {
      if (error instanceof AnswerTooLong) continue
      if (!(error instanceof Unanswered) || attempt++ === READ_ATTEMPTS) throw error
      await sleep(READ_RETRY_MS)
    }
  }
}
