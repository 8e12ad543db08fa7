/**
 * An API process without its settings and its log: the real app behind the real HTTP server, on the simulated
 * Elasticsearch, in virtual time. Not simulated: TLS, Redis, the admin port, totals.
 */
import { Readable } from 'node:stream'
import { RateLimiterRes } from 'rate-limiter-flexible'
import type { Rate, RequestCounter } from '../../../api/access/limit-rate.ts'
import type { Usage } from '../../../api/access/permits.ts'
import { createApi } from '../../../api/app.ts'
import { createApiServer } from '../../../api/http/server.ts'
import { createAnswerBudget } from '../../../core/store/read/answer-budget.ts'
import { createSearchClient } from '../../../core/store/read/search-client.ts'
import type { DocumentName } from '../../../core/store/read/slice-documents.ts'
import type { Transport } from '../../../core/store/read/transport.ts'
import { OWN_PRIVILEGES_PATH } from '../../../schemas/stored/hiding-roles.ts'
import type { Address } from '../../../schemas/stored/layout.ts'
import type { Clock } from '../clock.ts'
import type { Faults } from '../faults.ts'
import { PREFIX } from '../promises.ts'
import { createReads, type Searched } from '../searches.ts'
import { indexIdOf } from './store.ts'
import { Wire } from './wire.ts'

export type ApiProcess = {
  readonly connect: (options: ConstructorParameters<typeof Wire>[1]) => Wire
  readonly usage: () => Usage
  /** Bytes of answers that are held now. */
  readonly held: () => number
  readonly connections: () => number
  readonly reads: () => number
  /** Number of requests to Elasticsearch so far. */
  readonly asked: () => number
}

type World = {
  readonly clock: Clock
  readonly faults: Faults
  readonly elasticsearch: Searched
  readonly rate: Rate
  readonly failuresPerAddress?: number
  readonly fail: (reason: string) => void
  /** Called for each answer that its client did not read in time. */
  readonly onDeliveryTimeout: () => void
}

export const startApiProcess = (world: World): ApiProcess => {
  const { clock, faults, elasticsearch, rate, failuresPerAddress, fail, onDeliveryTimeout } = world
  const elapsed = (): number => clock.elapsed
  const later = (milliseconds: number, run: () => void) => clock.after(milliseconds, run)
  const wire = createTransport(clock, faults, elasticsearch)
  let requests = 0
  const newRequestId = (): string => `request-${++requests}`
  const budget = createAnswerBudget({ onRefused: () => undefined })
  const api = createApi({
    elasticsearch: createSearchClient({
      transport: wire.transport,
      budget,
      observe: () => undefined,
      elapsed,
    }),
    prefix: PREFIX,
    rate,
    ...(failuresPerAddress !== undefined && { failuresPerAddress }),
    counter: countInVirtualTime(rate, elapsed),
    log: {
      answer: () => undefined,
      failure: (_, error) => fail(`a request failed: ${error instanceof Error ? error.stack : String(error)}`),
      unhandledError: () => undefined,
      refusedBytes: () => undefined,
      say: () => undefined,
    },
    budget,
    onDeliveryTimeout,
    random: faults.random.next,
    observe: () => undefined,
    onRateLimited: () => undefined,
    elapsed,
    now: clock.now,
    newRequestId,
    later,
  })
  const server = createApiServer({ listener: api.listener, newRequestId, onRefused: () => undefined, later })
  const open = new Set<Wire>()
  return {
    connect: options => {
      const connection = new Wire(clock, options)
      open.add(connection)
      connection.once('close', () => open.delete(connection))
      server.emit('connection', connection)
      return connection
    },
    usage: api.usage,
    held: budget.held,
    connections: () => open.size,
    reads: wire.underWay,
    asked: wire.asked,
  }
}

/** Creates the transport of the Elasticsearch client: a read is answered, refused, broken off or never answered. */
const createTransport = (clock: Clock, faults: Faults, elasticsearch: Searched) => {
  const reads = createReads(clock, elasticsearch, faults)
  const never = new AbortController().signal
  let underWay = 0
  let asked = 0

  const answerOf = async (path: string, body: string | undefined): Promise<{ statusCode: number; body: Readable }> => {
    if (faults.happens('refuse')) {
      await new Promise<void>(resolve => void clock.after(faults.delay(), resolve))
      const text = '{"error":{"type":"es_rejected_execution_exception"},"status":429}'
      return { statusCode: faults.random.pick([429, 429, 503]), body: streamOf(Buffer.from(text), false) }
    }
    const answer =
      path === OWN_PRIVILEGES_PATH
        ? Buffer.from('{"indices":[{"names":["*"],"privileges":["read"]}]}')
        : body === undefined
          ? idsAnswer(path.slice(1, path.indexOf('?')).split(','))
          : path.startsWith('/_mget')
            ? await reads.multiGet(namesOf(body), never)
            : await reads.search(targetOf(path), body, never)
    if (typeof answer === 'string') throw new Error('simulated answers are never too large')
    return { statusCode: 200, body: streamOf(answer, faults.happens('loseAnswer')) }
  }

  const transport: Transport = (request, signal) =>
    new Promise((resolve, reject) => {
      underWay++
      asked++
      let isOver = false
      const end = (settle: () => void): void => {
        if (isOver) return
        isOver = true
        underWay--
        signal.removeEventListener('abort', abort)
        settle()
      }
      const abort = (): void => end(() => reject(new Error('Request aborted')))
      signal.addEventListener('abort', abort)
      if (signal.aborted) return abort()
      if (faults.elasticsearch === 'frozen') return
      answerOf(request.path, request.method === 'POST' ? request.body : undefined).then(
        answer => end(() => resolve(answer)),
        error => end(() => reject(error)),
      )
    })
  return { transport, underWay: () => underWay, asked: () => asked }
}

const idsAnswer = (names: readonly string[]): Buffer =>
  Buffer.from(
    JSON.stringify(Object.fromEntries(names.map(name => [name, { settings: { index: { uuid: indexIdOf(name) } } }]))),
  )

const streamOf = (bytes: Buffer, breaksOff: boolean): Readable => {
  if (!breaksOff) return Readable.from(bytes, { objectMode: false })
  return new Readable({
    read() {
      this.push(bytes.subarray(0, bytes.length / 2))
      this.destroy(new Error('other side closed'))
    },
  })
}

/** Documents of the control index and API keys are small; all others are records. */
const namesOf = (body: string): DocumentName[] => {
  const { docs } = JSON.parse(body) as { docs: Address[] }
  return docs.map(address => ({ ...address, form: /-(?:control|api-keys)$/.test(address._index) ? 'small' : 'record' }))
}

const countInVirtualTime = ({ requests, windowSeconds }: Rate, elapsed: () => number): RequestCounter => {
  const windows = new Map<string, { count: number; readonly ends: number }>()
  const add = (key: string, points: number): RateLimiterRes => {
    const known = windows.get(key)
    const window = known && known.ends > elapsed() ? known : { count: 0, ends: elapsed() + windowSeconds * 1_000 }
    windows.set(key, window)
    window.count += points
    return new RateLimiterRes(
      Math.max(0, requests - window.count),
      window.ends - elapsed(),
      window.count,
      known === undefined,
    )
  }
  return {
    consume: async (key, points = 1) => {
      const counted = add(key, points)
      if (counted.consumedPoints > requests) throw counted
      return counted
    },
    reward: async (key, points = 1) => add(key, -points),
    penalty: async (key, points = 1) => add(key, points),
  }
}

/** The target of a search, from its path. */
const targetOf = (path: string) => {
  const { pathname, searchParams } = new URL(path, 'http://elasticsearch')
  return { index: pathname.slice(1, pathname.indexOf('/_search')), routing: searchParams.get('routing') ?? undefined }
}
