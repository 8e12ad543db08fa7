/**
 * In: a search, or the names of documents. Out: the answer of Elasticsearch as bytes, not parsed. Also: the ids of
 *   indices.
 * Promises: each read is one request within the time of its signal, sent from node to node (transport.ts), and never
 *   more than READS_IN_FLIGHT_MAX run at once. Bytes that arrive count against the budget of answers.
 * Can go wrong: Elasticsearch is away, slow, blocked or refusing, or there is too much → `unavailable`. The error body
 *   is dropped unread, because its reasons quote values.
 */
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { abortRefusal, OK, Refusal, unavailable } from '../../runtime/index.ts'
import { ELASTICSEARCH_OVERLOADED } from '../elasticsearch/client.ts'
import { ANSWER_BYTES_MAX, READS_IN_FLIGHT_MAX } from '../limits.ts'
import { type AnswerBudget, type CountBytes, collect, requireAnswer, type TooMuch } from './answer-budget.ts'
import { createIndexIds, type IndexIds } from './index-ids.ts'
import type { DocumentName } from './slice-documents.ts'
import { type Asked, dropAnswer, type Otherwise, type Transport } from './transport.ts'

/** Returns the answer, or why the caller must ask for fewer records. */
export type Search = (
  where: Pick<SearchTarget, 'index' | 'routing'>,
  body: string,
  signal: AbortSignal,
  /** Called with the bytes of the answer as they arrive. Without this callback they count for the process. */
  arrived?: CountBytes,
) => Promise<Buffer | TooMuch>
export type MultiGet = (
  names: readonly DocumentName[],
  signal: AbortSignal,
  limits?: {
    /** As of a search. */
    readonly arrived?: CountBytes | undefined
    /** Bytes at which the rest of the answer is not read: `elasticsearch_too_large`. */
    readonly bytesMax?: number
  },
) => Promise<Buffer>
export type SearchClient = { readonly search: Search; readonly multiGet: MultiGet; readonly indexIds: IndexIds }

type Limits = NonNullable<Parameters<MultiGet>[2]>
type Operation = 'search' | 'multi_get' | 'index_ids'

export type Observe = (operation: Operation, outcome: string, milliseconds: number) => void

type Parts = {
  readonly transport: Transport
  readonly observe: Observe
  readonly elapsed: () => number
  /** Budget of the whole process. A command that reads page by page needs none. */
  readonly budget?: AnswerBudget
}

/** Creates the reads of Elasticsearch. Each rejects only with a Refusal `unavailable`. */
export const createSearchClient = (parts: Parts): SearchClient => {
  const { transport, observe, elapsed, budget } = parts
  let inFlight = 0

  const ask = async <Said extends string>(
    request: Asked,
    signal: AbortSignal,
    { arrived, bytesMax = ANSWER_BYTES_MAX }: Limits,
    otherwise?: Otherwise<Said>,
  ): Promise<Buffer | TooMuch | Said> => {
    const answer = await transport(request, signal)
    if (answer.statusCode === OK) {
      if (arrived) return collect(answer.body, bytesMax, arrived)
      const reservation = budget?.open(undefined)
      return collect(answer.body, bytesMax, bytes => reservation?.add(bytes)).finally(() => reservation?.close())
    }
    dropAnswer(answer)
    const said = otherwise?.(answer)
    if (said !== undefined) return said
    if (answer.statusCode === ELASTICSEARCH_OVERLOADED) return 'overloaded'
    throw new Refusal('unavailable', { reason: `elasticsearch_status_${answer.statusCode}` })
  }

  const read = async <Said extends string = never>(
    operation: Operation,
    request: Asked,
    signal: AbortSignal,
    limits: Limits = {},
    otherwise?: Otherwise<Said>,
  ): Promise<Buffer | TooMuch | Said> => {
    if (inFlight >= READS_IN_FLIGHT_MAX) throw unavailable('reads_in_flight')
    const begun = elapsed()
    let outcome = 'ok'
    inFlight++
    try {
      const answer = await ask(request, signal, limits, otherwise)
      if (answer === 'too_large' || answer === 'overloaded') outcome = answer
      return answer
    } catch (error) {
      const failure = signal.aborted ? abortRefusal(signal) : asRefusal(error)
      outcome = failure.reason ?? failure.code
      throw failure
    } finally {
      inFlight--
      observe(operation, outcome, elapsed() - begun)
    }
  }

  return {
    search: async ({ index, routing }, body, signal, arrived) => {
      const routed = routing === undefined ? '' : `&routing=${routing}`
      const path = `/${index}/_search?allow_partial_search_results=false${routed}`
      return read<never>('search', { method: 'POST', path, body }, signal, { arrived })
    },
    multiGet: async (names, signal, limits) => {
      // One preference for all: a position is always read from the same shard copy, so that it never seems to go back.
      const path = '/_mget?realtime=true&preference=published'
      const answer = await read('multi_get', { method: 'POST', path, body: multiGetBody(names) }, signal, limits)
      return requireAnswer(answer)
    },
    indexIds: createIndexIds((path, signal, otherwise) =>
      read('index_ids', { method: 'GET', path }, signal, {}, otherwise),
    ),
  }
}

const multiGetBody = (names: readonly DocumentName[]): string =>
  JSON.stringify({
    docs: names.map(({ _index, _id, routing, form }) => ({ _index, _id, routing, ...(form === 'size' && SIZE_ONLY) })),
  })
const SIZE_ONLY = { _source: ['seq', 'body_bytes'] }

/** Keeps only the kind of a client error, because the error contains request and answer. */
const asRefusal = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  const name = error instanceof Error ? error.name : 'unknown'
  return new Refusal('unavailable', { reason: `elasticsearch_${name.replace(/Error$/, '').toLowerCase()}` })
}
