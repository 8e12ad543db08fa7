/**
 * In: a search, or the names of documents. Out: the answer of Elasticsearch as bytes, not parsed. Also: the ids of
 *   indices.
 * Promises: each read is one request within the time of its signal, and never more than READS_IN_FLIGHT_MAX run at
 *   once. Bytes that arrive count against the budget of answers.
 * Can go wrong: Elasticsearch is away, slow, blocked or refusing, or there is too much → `unavailable`. The error body
 *   is dropped unread, because its reasons quote values.
 */
import type { Readable } from 'node:stream'
import { hiddenAmong, OWN_PRIVILEGES_PATH } from '../../../schemas/stored/hiding-roles.ts'
import { INDEX_ID_FILTER, indexIdsIn, OBSTACLES_FILTER, obstacleIn } from '../../../schemas/stored/index-ids.ts'
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { shardIdsIn, shardIdsRequest } from '../../../schemas/stored/shard-ids.ts'
import { abortRefusal, OK, Refusal, unavailable } from '../../runtime/index.ts'
import { ELASTICSEARCH_OVERLOADED } from '../elasticsearch/client.ts'
import { ANSWER_BYTES_MAX, MASTER_WAIT, READS_IN_FLIGHT_MAX, SLICE } from '../limits.ts'
import type { AnswerBudget } from './answer-budget.ts'
import type { DocumentName } from './slice-documents.ts'

/** No answer: it exceeds ANSWER_BYTES_MAX, or Elasticsearch has no memory or no room in its queue for the request. */
export type TooMuch = 'too_large' | 'overloaded'

/** Returns the answer, or why the caller must ask for fewer records. */
export type Search = (
  where: Pick<SearchTarget, 'index' | 'routing'>,
  body: string,
  signal: AbortSignal,
  /** Called with the bytes of the answer as they arrive. Without this callback they count for the process. */
  arrived?: CountBytes,
) => Promise<Buffer | TooMuch>
/** @throws Refusal if these bytes may not be held: the rest of the answer is not read */
export type CountBytes = (bytes: number) => void
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
/**
 * Returns the ids of these indices by name, from the cluster state: no shard is read. Missing indices are left out.
 * @param withShards also returns the ids of their primary shards, as `ShardIds`. This needs the right `monitor`
 * @throws Refusal `runtime_fields`; `index_closed`; `reads_blocked`; `documents_hidden` if a role hides a part of one
 *   from this user
 */
export type IndexIds = (
  names: readonly string[],
  signal: AbortSignal,
  withShards?: boolean,
) => Promise<ReadonlyMap<string, string>>
export type SearchClient = { readonly search: Search; readonly multiGet: MultiGet; readonly indexIds: IndexIds }

/** The one call of the official client that returns an answer unparsed. */
export type Transport = (
  request: { method: 'POST'; path: string; body: string } | { method: 'GET'; path: string },
  options: { asStream: true; meta: true; maxRetries: number; headers: Record<string, string>; signal: AbortSignal },
) => Promise<{ statusCode: number | null; body: Readable }>

type Asked = Parameters<Transport>[0]
type Limits = NonNullable<Parameters<MultiGet>[2]>
type Operation = 'search' | 'multi_get' | 'index_ids'

export type Observe = (operation: Operation, outcome: string, milliseconds: number) => void

type Parts = {
  readonly transport: Transport
  /** Nodes besides the first: a read is sent to another node if one cannot be reached, or cannot answer. */
  readonly otherNodes: number
  readonly observe: Observe
  readonly elapsed: () => number
  /** Budget of the whole process. A command that reads page by page needs none. */
  readonly budget?: AnswerBudget
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json' }

/** Creates the reads of Elasticsearch. Each rejects only with a Refusal `unavailable`. */
export const createSearchClient = (parts: Parts): SearchClient => {
  const { transport, otherNodes, observe, elapsed, budget } = parts
  let inFlight = 0

  const ask = async (
    request: Asked,
    signal: AbortSignal,
    { arrived, bytesMax = ANSWER_BYTES_MAX }: Limits = {},
  ): Promise<Buffer | TooMuch> => {
    const options = { asStream: true, meta: true, maxRetries: otherNodes, headers: HEADERS, signal } as const
    const answer = await transport(request, options)
    if (answer.statusCode === OK) {
      if (arrived) return collect(answer.body, bytesMax, arrived)
      const reservation = budget?.open(undefined)
      return collect(answer.body, bytesMax, bytes => reservation?.add(bytes)).finally(() => reservation?.close())
    }
    // Read to the end and dropped, so that the connection can be reused.
    answer.body.on('error', () => undefined).resume()
    if (request.path === OWN_PRIVILEGES_PATH && tellsNothing.has(answer.statusCode)) return NOTHING_TOLD
    if (answer.statusCode === ELASTICSEARCH_OVERLOADED) return 'overloaded'
    throw new Refusal('unavailable', { reason: `elasticsearch_status_${answer.statusCode}` })
  }

  const read = async (operation: Operation, request: Asked, signal: AbortSignal, limits?: Limits) => {
    if (inFlight >= READS_IN_FLIGHT_MAX) throw unavailable('reads_in_flight')
    const begun = elapsed()
    let outcome = 'ok'
    inFlight++
    try {
      const answer = await ask(request, signal, limits)
      if (typeof answer === 'string') outcome = answer
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
      return read('search', { method: 'POST', path, body }, signal, { arrived })
    },
    multiGet: async (names, signal, limits) => {
      // One preference for all: a position is always read from the same shard copy, so that it never seems to go back.
      const path = '/_mget?realtime=true&preference=published'
      const answer = await read('multi_get', { method: 'POST', path, body: multiGetBody(names) }, signal, limits)
      return requireAnswer(answer)
    },
    indexIds: async (names, signal, withShards = false) => {
      const fields = `${INDEX_ID_FILTER},${OBSTACLES_FILTER}`
      const query = `ignore_unavailable=true&master_timeout=${MASTER_WAIT}&filter_path=${fields}`
      const path = `/${names.join()}?${query}`
      const [answer, privileges, shards] = await Promise.all([
        read('index_ids', { method: 'GET', path }, signal),
        read('index_ids', { method: 'GET', path: OWN_PRIVILEGES_PATH }, signal),
        withShards ? read('index_ids', { method: 'GET', path: shardIdsPath(names) }, signal) : undefined,
      ])
      const ids = readIndexIds(requireAnswer(answer))
      requireSeesAll(requireAnswer(privileges), [...ids.keys()])
      return shards === undefined ? ids : new Map([...ids, ...readShardIds(requireAnswer(shards), names)])
    },
  }
}

/** The statuses without security, for an API key with roles of its own, and behind a proxy that permits no question. */
const tellsNothing: ReadonlySet<number | null> = new Set([400, 403, 404, 405, 410, 501])
const NOTHING_TOLD = Buffer.alloc(0)

/** @throws Refusal `documents_hidden`: answers would be short, with status 200 */
const requireSeesAll = (privileges: Buffer, indices: readonly string[]): void => {
  if (privileges !== NOTHING_TOLD && hiddenIn(privileges, indices)) throw unavailable('documents_hidden')
}

const hiddenIn = (privileges: Buffer, indices: readonly string[]): boolean => {
  try {
    return hiddenAmong(JSON.parse(privileges.toString('utf8')), indices) !== undefined
  } catch {
    throw unavailable('elasticsearch_malformed_privileges')
  }
}

/** Returns the answer. @throws Refusal `unavailable` if there is none */
export const requireAnswer = (answer: Buffer | TooMuch): Buffer => {
  if (typeof answer === 'string') throw unavailable(`elasticsearch_${answer}`)
  return answer
}

/** @throws Refusal: see `obstacleIn`. A projector stops or waits, too, but perhaps none runs */
const readIndexIds = (answer: Buffer): Map<string, string> => {
  const { ids, obstacle } = parseIndices(answer)
  if (obstacle !== undefined) throw unavailable(obstacle)
  return ids
}

const shardIdsPath = (names: readonly string[]): string => {
  const { path, query } = shardIdsRequest(names.join())
  return `${path}?${new URLSearchParams({ ...query, ignore_unavailable: 'true' })}`
}

const readShardIds = (answer: Buffer, names: readonly string[]): [shard: string, id: string][] => {
  try {
    return Object.entries(shardIdsIn(JSON.parse(answer.toString('utf8')), names))
  } catch {
    throw unavailable('elasticsearch_malformed_index_ids')
  }
}

/** Drops the parser's error, because its message quotes the answer. */
const parseIndices = (answer: Buffer): { ids: Map<string, string>; obstacle: ReturnType<typeof obstacleIn> } => {
  try {
    const indices: unknown = JSON.parse(answer.toString('utf8'))
    return { ids: indexIdsIn(indices), obstacle: obstacleIn(indices as object) }
  } catch {
    throw unavailable('elasticsearch_malformed_index_ids')
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

const collect = (body: Readable, bytesMax: number, arrived: CountBytes): Promise<Buffer | 'too_large'> =>
  new Promise((resolve, reject) => {
    const whole = createCollector()
    let bytes = 0
    let ended = false
    const fail = (error: unknown): void => {
      // A request already uses the complete answer: an error of its connection must not free it.
      if (ended) return
      whole.drop()
      reject(error)
    }
    body.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bytesMax) {
        whole.drop()
        resolve('too_large')
        body.destroy()
        return
      }
      try {
        arrived(chunk.length)
        whole.add(chunk)
      } catch (error) {
        fail(error)
        body.destroy()
      }
    })
    body.on('end', () => {
      ended = true
      resolve(whole.end())
    })
    body.on('error', fail)
    // An answer that breaks off has no `end` event.
    body.on('close', () => fail(unavailable('elasticsearch_answer_broke_off')))
  })

/**
 * Collects an answer from its chunks. A long answer grows in place. Chunks that are joined at the end would take twice
 * the bytes, and the garbage collector would free them late. With 80 fast readers of large answers: 550 MiB resident
 * with chunks, 430 MiB in place.
 */
const createCollector = () => {
  let parts: Buffer[] = []
  let bytes = 0
  let memory: ArrayBuffer | undefined

  const append = (part: Buffer): void => {
    memory ??= new ArrayBuffer(0, { maxByteLength: ANSWER_BYTES_MAX })
    const end = bytes + part.length
    if (end > memory.byteLength) memory.resize(Math.min(Math.ceil(end / SLICE.bytes) * SLICE.bytes, ANSWER_BYTES_MAX))
    part.copy(Buffer.from(memory), bytes)
    bytes = end
  }
  return {
    add: (part: Buffer): void => {
      parts.push(part)
      if (memory === undefined && parts.reduce((sum, { length }) => sum + length, 0) <= SLICE.bytes) return
      for (const one of parts) append(one)
      parts = []
    },
    end: (): Buffer => {
      const [first] = parts
      if (first && parts.length === 1) return first
      if (memory === undefined) return Buffer.concat(parts)
      memory.resize(bytes)
      return Buffer.from(memory, 0, bytes)
    },
    /** Frees the bytes so far. */
    drop: (): void => {
      parts = []
      memory?.resize(0)
    },
  }
}
