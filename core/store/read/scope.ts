/**
 * The request that reads. Every read gets it: from the reader of a page down to the one that asks Elasticsearch.
 * It says for whom the read is, what ends it, and where its bytes count. The read permit of the organization is not a
 * part of it: one permit is held around all reads of a request, and no read takes another one.
 *
 * `holdReads` counts reads against the memory of their request.
 * Promises: the expected bytes are reserved before the read, and further bytes as they arrive. Those of a multi-get
 *   that serves several requests are reserved afterwards: they are few. Then exactly the bytes that arrived are held.
 *   The expectation of a search comes from its caller, that of a multi-get from the last one of the organization. A
 *   request that is about to hold much waits for its turn first. A multi-get of small documents only, such as the
 *   position of a first page, counts for the process.
 * Can go wrong: the budget is used up → `unavailable`. More bytes arrive than expected while another request has the
 *   turn → the API drops the answer, and reads it again in the request's own turn.
 */
import { LRUCache } from 'lru-cache'
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { lruOptions, type Release, type Semaphores, unavailable } from '../../runtime/index.ts'
import {
  LARGE_READ_BYTES,
  ORGANIZATIONS_REMEMBERED,
  RECORD_BYTES_EXPECTED,
  SEARCH_TIME_MAX,
  SMALL_ANSWER_BYTES,
  SMALL_SEARCH_BYTES,
  UNKNOWN_ANSWER_BYTES,
} from '../limits.ts'
import { type CountBytes, free, isFreeable, type Reservation, requireAnswer, type TooMuch } from './answer-budget.ts'
import type { Batched, ReadOutcome } from './batch-multi-gets.ts'
import type { MultiGet, Search } from './search-client.ts'
import type { DocumentName } from './slice-documents.ts'

/** Asks Elasticsearch. Calls `arrived` with the bytes of each chunk of the answer. */
type AskCounted<Answer> = (arrived: CountBytes, expected: number) => Promise<ReadOutcome<Answer>>

/** The memory of one request: it reserves bytes before a read, and holds those that arrived. */
export type ReadMemory = {
  /** The organization of the request. */
  readonly org: string
  readonly hold: <Answer extends Buffer | TooMuch>(expected: number, ask: AskCounted<Answer>) => Promise<Answer>
}

/** One read. */
export type Reading = {
  /** Ends the read. */
  readonly signal: AbortSignal
  /** Where the bytes count: in the memory of a request, or for the whole process. */
  readonly memory: ReadMemory | 'process'
}

/** All reads of one request. */
export type ReadScope = Reading & { readonly org: string }

/** As `Search` of the client, for a request. */
export type ScopedSearch = (
  where: Pick<SearchTarget, 'index' | 'routing'>,
  body: string,
  reading: Reading,
  /** Expected bytes of the answer, if the caller knows. */
  expected?: number,
) => Promise<Buffer | TooMuch>
/** As `MultiGet` of the client, for a request. */
export type ScopedMultiGet = (names: readonly DocumentName[], reading: Reading) => Promise<Buffer>
export type ScopedReads = { readonly search: ScopedSearch; readonly multiGet: ScopedMultiGet }

/** Returns a read that counts for the whole process. */
export const readingOfProcess = (signal: AbortSignal): Reading => ({ signal, memory: 'process' })

/** Returns the reads of a client for a program that counts no bytes: a command reads page by page. */
export const uncounted = (client: { readonly search: Search; readonly multiGet: MultiGet }): ScopedReads => ({
  search: (where, body, { signal }) => client.search(where, body, signal),
  multiGet: (names, { signal }) => client.multiGet(names, signal),
})

/** Returns the answer of a search that finds little. @throws Refusal `unavailable` if there is no answer */
export const searchSmall = async (
  search: ScopedSearch,
  where: Pick<SearchTarget, 'index' | 'routing'>,
  body: object,
  reading: Reading,
): Promise<Buffer> => {
  const limits = { track_total_hits: false, timeout: `${SEARCH_TIME_MAX}ms` }
  return requireAnswer(await search(where, JSON.stringify({ ...limits, ...body }), reading, SMALL_SEARCH_BYTES))
}

/** `reads`: the answers that can be freed once the answer to the client is made. */
type Holding = {
  readonly reservation: Reservation
  readonly turn: Turn
  readonly org: string
  readonly reads: Buffer[]
  /** Called with the bytes of each read, also of one that failed or is read again. */
  readonly onRead: (bytes: number) => void
}

type Reads = { readonly search: Search; readonly multiGets: Batched }

/** Returns the memory of a request, which its reads fill. */
export const createReadMemory = (holding: Holding): ReadMemory => ({
  org: holding.org,
  hold: (expected, ask) => hold(holding, expected, ask),
})

/** A payout and its statement. */
const RECORDS_OF_ONE_EVENT = 2

/** Returns the same reads, counted in the memory of their request. */
export const holdReads = ({ search, multiGets }: Reads): ScopedReads => {
  const lastRead = new LRUCache<string, number>(lruOptions(ORGANIZATIONS_REMEMBERED))

  const heldSearch: ScopedSearch = (where, body, { signal, memory }, expected = UNKNOWN_ANSWER_BYTES) =>
    memory === 'process'
      ? search(where, body, signal)
      : memory.hold(expected, async arrived => ({ answer: await search(where, body, signal, arrived) }))
  const heldMultiGet: ScopedMultiGet = async (names, { signal, memory }) => {
    if (memory === 'process' || names.every(({ form }) => form === 'small')) return multiGets.ofProcess(names, signal)
    const { org } = memory
    const before = lastRead.get(org) ?? RECORD_BYTES_EXPECTED
    const answer = await memory.hold(before, (arrived, expected) =>
      multiGets.ofRequest(names, signal, { expected, arrived }),
    )
    // Of many records, the average counts: the next request may ask for one.
    const records = names.filter(({ form }) => form === 'record').length
    const bytes = records > RECORDS_OF_ONE_EVENT ? answer.length / records : answer.length
    // One small record says little about the next one: the expectation decreases slowly.
    lastRead.set(org, Math.max(bytes, RECORD_BYTES_EXPECTED, before / 2))
    return answer
  }
  return { search: heldSearch, multiGet: heldMultiGet }
}

const hold = async <Answer extends Buffer | TooMuch>(
  holding: Holding,
  expected: number,
  ask: AskCounted<Answer>,
): Promise<Answer> => {
  for (let bytes = expected; ; ) {
    await holding.turn.wait(holding.reservation.held() + bytes)
    const outcome = await readOnce(holding, bytes, ask)
    if ('answer' in outcome) return outcome.answer
    bytes = outcome.needs
  }
}

/**
 * Reads once. `needs`: the request must have its turn, so that it can hold these bytes, before it asks again. No answer
 * is held then.
 */
const readOnce = async <Answer extends Buffer | TooMuch>(
  { reservation, turn, reads, onRead }: Holding,
  expected: number,
  ask: AskCounted<Answer>,
): Promise<ReadOutcome<Answer>> => {
  reservation.add(expected)
  let reserved = expected
  let arrived = 0
  let needsTurn = false
  const count: CountBytes = bytes => {
    arrived += bytes
    if (arrived <= reserved) return
    needsTurn = !turn.tryNow(reservation.held() - reserved + arrived)
    if (needsTurn) throw unavailable('large_answers')
    reservation.add(arrived - reserved)
    reserved = arrived
  }
  let outcome: ReadOutcome<Answer>
  try {
    outcome = await ask(count, expected)
    if ('answer' in outcome && Buffer.isBuffer(outcome.answer)) arrived = outcome.answer.length
  } catch (error) {
    if (needsTurn) return { needs: arrived }
    throw error
  } finally {
    onRead(arrived)
    reservation.add(-reserved)
  }
  if ('needs' in outcome || !Buffer.isBuffer(outcome.answer)) return outcome
  const { answer } = outcome
  if (!turn.tryNow(reservation.held() + answer.length)) {
    free(answer)
    return { needs: answer.length }
  }
  reservation.add(answer.length)
  if (isFreeable(answer)) reads.push(answer)
  return outcome
}

export type Turn = {
  /** Waits until the request may hold this number of bytes. A small number does not wait. */
  readonly wait: (bytes: number) => Promise<void>
  /** Returns whether the request may hold this number of bytes now. Takes a free turn if one is needed. */
  readonly tryNow: (bytes: number) => boolean
  readonly isMine: () => boolean
  readonly end: () => void
}

/**
 * Lets one large answer of an organization be read and made at a time. Of several requests for large answers, one
 * always has room for its reads and its answer, because the others wait before they hold much. The turn ends when the
 * answer is ready for delivery, so that a slow client delays nobody.
 * @param from an answer is large above this number of bytes
 */
export const createTurn = (turns: Semaphores, org: string, from: number, signal: AbortSignal): Turn => {
  // Parallel reads of one request share one turn.
  let acquired: Promise<Release | undefined> | undefined
  let isMine = false
  let ended = false
  return {
    wait: async bytes => {
      if (bytes <= from || ended) return
      acquired ??= turns.acquire(org, signal)
      if ((await acquired) === undefined) throw unavailable('large_answers')
      isMine = true
    },
    tryNow: bytes => {
      if (bytes <= from || isMine || ended) return true
      const release = acquired === undefined ? turns.tryAcquire(org) : undefined
      if (release === undefined) return false
      acquired = Promise.resolve(release)
      isMine = true
      return true
    },
    isMine: () => isMine,
    end: () => {
      ended = true
      acquired?.then(
        release => release?.(),
        () => undefined,
      )
    },
  }
}

/** Returns the bytes of reads above which a turn is needed. An answer that is a copy needs as much again. */
export const largeFrom = (isCopied: boolean): number => (isCopied ? SMALL_ANSWER_BYTES : LARGE_READ_BYTES)
