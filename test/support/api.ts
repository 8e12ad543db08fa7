/** Serves an API in this process, on a free port and a real Elasticsearch, and sends requests to it. */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { Client } from '@elastic/elasticsearch'
import { pino } from 'pino'
import { inject } from 'vitest'
import { createLocalCounter, type Rate, type RequestCounter } from '../../api/access/limit-rate.ts'
import { type ShareLimits, usualShares } from '../../api/access/permits.ts'
import { createLog } from '../../api/answer/answer-and-log.ts'
import { createApi } from '../../api/app.ts'
import type { Audit } from '../../api/audit/audit-reads.ts'
import { createApiServer, listen, stop } from '../../api/http/server.ts'
import { type Schedule, type SigningKey, scheduleTimer } from '../../core/runtime/index.ts'
import { READ_TIME_MAX, SEARCH_TIME_MAX } from '../../core/store/limits.ts'
import { createAnswerBudget } from '../../core/store/read/answer-budget.ts'
import { createSearchClient, type SearchClient } from '../../core/store/read/search-client.ts'
import { clientOptions, createTransport } from '../../core/store/read/transport.ts'
import { expectNoContent } from './canary.ts'
import { requireDescribed } from './described.ts'
import { createStore, type Store } from './documents.ts'
import type { Scope } from './scope.ts'

export type Answer = { status: number; headers: Headers; text: string; json: unknown }
export type Ask = (
  path: string,
  key?: string,
  more?: { method?: string; headers?: Record<string, string> },
) => Promise<Answer>
export type ServedApi = Awaited<ReturnType<typeof serveApi>>

type Options = {
  rate?: Rate
  counter?: RequestCounter
  failuresPerAddress?: number
  trustedProxies?: readonly string[]
  shares?: Partial<ShareLimits>
  mayStore?: boolean
  corsOrigins?: readonly string[]
  /** Wraps the Elasticsearch client, to count, delay or change reads. */
  between?: (elasticsearch: SearchClient) => SearchClient
  elapsed?: () => number
  now?: () => number
  checkpointKey?: SigningKey
  audit?: Audit
  /** A request has `READ_TIME_MAX`, as in a process. By default it and its searches have a minute. */
  hasReadTime?: boolean
  /** Address of Elasticsearch; by default the one of this test run. */
  url?: string
}

/** Creates a store with its own indices, deleted when the test ends. */
export const useStore = async (scope: Scope, options?: Parameters<typeof createStore>[1]): Promise<Store> => {
  const store = await createStore(inject('elasticsearchUrl'), options)
  scope.onTestFinished(async () => void (await store.remove()))
  return store
}

/** A busy machine is slow. */
const LONG_READ_MS = 60_000
const withLongReads: Schedule = (milliseconds, call) =>
  scheduleTimer(milliseconds === READ_TIME_MAX ? LONG_READ_MS : milliseconds, call)
const withLongSearches = (client: SearchClient): SearchClient => ({
  ...client,
  search: (where, body, ...more) =>
    client.search(where, body.replace(`"timeout":"${SEARCH_TIME_MAX}ms"`, `"timeout":"${LONG_READ_MS}ms"`), ...more),
})

export const serveApi = async (scope: Scope, prefix: string, options: Options = {}) => {
  const usual = clientOptions([options.url ?? inject('elasticsearchUrl')], undefined, undefined)
  const client = new Client(options.hasReadTime ? usual : { ...usual, requestTimeout: LONG_READ_MS })
  const elapsed = options.elapsed ?? (() => performance.now())
  const logged: string[] = []
  const budget = createAnswerBudget({ onRefused: () => undefined })
  const asInProcess = createSearchClient({
    budget,
    transport: createTransport(client, 0),
    observe: () => undefined,
    elapsed,
  })
  const elasticsearch = options.hasReadTime ? asInProcess : withLongSearches(asInProcess)
  const newRequestId = () => randomUUID()
  const log = createLog(pino({ level: 'debug', base: null }, { write: (line: string) => void logged.push(line) }))
  const rate = options.rate ?? { requests: 1_000_000, windowSeconds: 60 }
  const api = createApi({
    elasticsearch: options.between ? options.between(elasticsearch) : elasticsearch,
    prefix,
    rate,
    counter: options.counter ?? createLocalCounter(rate),
    failuresPerAddress: options.failuresPerAddress ?? Number.POSITIVE_INFINITY,
    ...(options.trustedProxies && { trustedProxies: options.trustedProxies }),
    shareLimits: { ...usualShares, ...options.shares },
    ...(options.mayStore !== undefined && { mayStore: options.mayStore }),
    ...(options.corsOrigins && { corsOrigins: options.corsOrigins }),
    budget,
    onDeliveryTimeout: () => undefined,
    log,
    audit: options.audit,
    observe: () => undefined,
    onRateLimited: () => undefined,
    elapsed,
    later: options.hasReadTime ? scheduleTimer : withLongReads,
    random: Math.random,
    now: options.now ?? Date.now,
    checkpointKey: options.checkpointKey,
    newRequestId,
  })
  const server = createApiServer({ listener: api.listener, newRequestId, onRefused: api.logRefusedBytes })
  const port = await listen(server, '127.0.0.1', 0)
  scope.onTestFinished(async () => {
    await stop(server, 0)
    await client.close()
    expectNoContent(logged.join(''))
  })

  /** Requests a path under /api/v1; a path that begins with `//` is used from its second slash. */
  const ask: Ask = async (path, key, more = {}) => {
    const target = path.startsWith('//') ? path.slice(1) : `/api/v1${path}`
    const headers = { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...more.headers }
    const method = more.method ?? 'GET'
    const answer = await fetch(`http://127.0.0.1:${port}${target}`, { method, headers })
    const text = await answer.text()
    await requireDescribed({ method, path: target, headers }, { status: answer.status, headers: answer.headers, text })
    return { status: answer.status, headers: answer.headers, text, json: text === '' ? undefined : JSON.parse(text) }
  }
  return {
    port,
    ask,
    send: (bytes: string | Buffer) => sendBytes(port, bytes),
    readiness: api.readiness,
    usage: api.usage,
    budget,
    endWaits: api.endWaits,
    logged,
  }
}

/** Sends bytes over a new connection. Returns all bytes that come back until the other side closes it. */
export const sendBytes = (port: number, bytes: string | Buffer): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.setEncoding('latin1').on('data', data => (text += data))
    socket.on('end', () => resolve(text)).on('close', () => resolve(text))
    socket.on('error', error => (text === '' ? reject(error) : resolve(text)))
  })

export type Listed = { data: Record<string, unknown>[]; has_more: boolean; next_cursor: string }
export const listed = ({ json }: Answer): Listed => json as Listed
export const recorded = ({ json }: Answer): Record<string, unknown> => (json as { data: Record<string, unknown> }).data
export const refusedWith = ({ json }: Answer): { code: string; message: string } =>
  (json as { error: { code: string; message: string } }).error

/** Reads all pages of a list. Returns the records, the number of pages and the last cursor. */
export const walk = async (ask: Ask, path: string, key: string, limit?: number) => {
  const records: Record<string, unknown>[] = []
  let cursor = ''
  for (let pages = 1; ; pages++) {
    const parameters = [
      ...(limit === undefined ? [] : [`limit=${limit}`]),
      ...(cursor ? [`starting_after=${cursor}`] : []),
    ]
    const page = listed(await ask(`${path}?${parameters.join('&')}`, key))
    records.push(...page.data)
    if (!page.has_more) return { records, pages, cursor: page.next_cursor }
    cursor = page.next_cursor
  }
}
