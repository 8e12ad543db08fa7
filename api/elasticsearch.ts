/**
 * In: a search of one index or the names of documents. Out: the answer of Elasticsearch as bytes, not parsed.
 * Promises: one request each within the signal's time, never more than READS_IN_FLIGHT_MAX at once.
 * Can go wrong: away, slow, blocked, refusing or too much → `unavailable`. What Elasticsearch says about it is dropped
 *   unread: its reasons quote values.
 */
import type { Readable } from 'node:stream'
import type { DocumentName } from './cut-documents.ts'
import { ELASTICSEARCH_OVERLOADED, OK, Refusal, unavailable } from './failures.ts'
import { ANSWER_BYTES_MAX, READS_IN_FLIGHT_MAX } from './limits.ts'

/** An answer; `too_large` when it is more than is collected here, or more than Elasticsearch has memory for now. */
export type Search = (index: string, body: string, signal: AbortSignal) => Promise<Buffer | 'too_large'>
export type MultiGet = (names: readonly DocumentName[], signal: AbortSignal) => Promise<Buffer>
export type Elasticsearch = { readonly search: Search; readonly multiGet: MultiGet }

/** The one call of the official client that gives an answer as it came. */
export type Transport = (
  request: { method: 'POST'; path: string; body: string },
  options: { asStream: true; meta: true; maxRetries: number; headers: Record<string, string>; signal: AbortSignal },
) => Promise<{ statusCode: number | null; body: Readable; meta: { connection: unknown } }>

/** What is observed about a request to Elasticsearch: which, how it ended and how long it took. */
export type Observe = (operation: 'search' | 'multi_get', outcome: string, milliseconds: number) => void

type Parts = {
  readonly transport: Transport
  /** Told which node answered: the client's pool forgets nothing about a node that once failed when answers are streams. */
  readonly answered: (connection: unknown) => void
  /** Nodes there are besides the first: a read is tried again on another when one cannot be reached. */
  readonly otherNodes: number
  readonly observe: Observe
  readonly now: () => number
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json' }

export const createElasticsearch = (parts: Parts): Elasticsearch => {
  const { transport, answered, otherNodes, observe, now } = parts
  let inFlight = 0

  const ask = async (path: string, body: string, signal: AbortSignal): Promise<Buffer | 'too_large'> => {
    const options = { asStream: true, meta: true, maxRetries: otherNodes, headers: HEADERS, signal } as const
    const answer = await transport({ method: 'POST', path, body }, options)
    answered(answer.meta.connection)
    if (answer.statusCode === OK) return collect(answer.body)
    // Read to its end and dropped: the connection can be used again.
    answer.body.on('error', () => undefined).resume()
    if (answer.statusCode === ELASTICSEARCH_OVERLOADED) return 'too_large'
    throw unavailable(`elasticsearch_status_${answer.statusCode}`)
  }

  const read = async (operation: 'search' | 'multi_get', path: string, body: string, signal: AbortSignal) => {
    if (inFlight >= READS_IN_FLIGHT_MAX) throw unavailable('reads_in_flight')
    const begun = now()
    let outcome = 'ok'
    inFlight++
    try {
      const answer = await ask(path, body, signal)
      if (answer === 'too_large') outcome = answer
      return answer
    } catch (error) {
      const failure = signal.aborted ? unavailable((signal.reason as DOMException).message) : asRefusal(error)
      outcome = failure.because ?? failure.code
      throw failure
    } finally {
      inFlight--
      observe(operation, outcome, now() - begun)
    }
  }

  return {
    search: (index, body, signal) =>
      read('search', `/${index}/_search?allow_partial_search_results=false`, body, signal),
    multiGet: async (names, signal) => {
      // One preference for all: a position is always read from the same copy, so that it is not seen going back.
      const answer = await read('multi_get', '/_mget?realtime=true&preference=published', multiGetBody(names), signal)
      if (answer === 'too_large') throw unavailable('elasticsearch_overloaded')
      return answer
    },
  }
}

const multiGetBody = (names: readonly DocumentName[]): string =>
  JSON.stringify({ docs: names.map(({ index, id }) => ({ _index: index, _id: id })) })

/** The client's errors carry what was asked and answered; only the kind of error goes on from here. */
const asRefusal = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  const name = error instanceof Error ? error.name : 'unknown'
  return unavailable(`elasticsearch_${name.replace(/Error$/, '').toLowerCase()}`)
}

const collect = (body: Readable): Promise<Buffer | 'too_large'> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    body.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes <= ANSWER_BYTES_MAX) return
      resolve('too_large')
      body.destroy()
    })
    let ended = false
    body.on('end', () => {
      ended = true
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, bytes))
    })
    body.on('error', reject)
    body.on('close', () => {
      // An answer that broke off has no end.
      if (!ended) reject(unavailable('elasticsearch_answer_broke_off'))
    })
  })
