/**
 * The projector's HTTP servers.
 *
 * - The admin port must not be public: `/` and `/runbooks` (pages for people), `/livez`, `/readyz` (200, or 503 with
 *   the reasons), `/metrics`, `/status` (per partition what is searchable, the end, the lag, the parked records), and
 *   the paths for publishers.
 * - The port of receipts has the paths for publishers only: `/receipts/…` (the outcome of a record or of a run) and
 *   `/asyncapi.json` (the topics and events, no user name and no secret). It asks for no key: it tells nothing of a
 *   record but its outcome, and a publisher has credentials for Kafka, not for the API.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { Registry } from 'prom-client'
import {
  type Ages,
  type ErrorLocation,
  errorLocation,
  type Health,
  type PublishedTime,
  Refusal,
  runbooksPage,
  STATUS_PAGE_POLICY,
  StopError,
  scheduleTimer,
  waitOrAbort,
  withTimeLimit,
} from '../../core/runtime/index.ts'
import type { ClockState } from '../../core/store/index.ts'
import type { FailedSpare } from '../keep-up.ts'
import { STATUS_PAGE_READ_MS } from '../limits.ts'
import { answerReceipt, notKnownNow, RECEIPT_PATHS, type ReceiptSteps } from './answer-receipt.ts'
import type { ParkedLately, PartitionStatus } from './status.ts'
import { projectorPage } from './status-page.ts'

export type AdminSteps = {
  readonly health: Pick<Health, 'reasons'>
  readonly registry: Registry
  /** Failed spare generations: the projector is ready without them. */
  readonly failed: () => readonly FailedSpare[]
  readonly clocks: () => ClockState
  /** The name of the live generation; empty while it is not known. */
  readonly live: () => string
  readonly ages: Pick<Ages, 'list'>
  /** Of the live generation, as far as this process publishes it. */
  readonly published: () => readonly PublishedTime[]
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Records that were parked lately, by code; undefined when Elasticsearch does not answer. */
  readonly parkedLately: () => Promise<ParkedLately | undefined>
  /** Undefined when Kafka or Elasticsearch does not answer. */
  readonly status: () => Promise<PartitionStatus[] | undefined>
  readonly receipts: ReceiptSteps
  /** Undefined until the topics are known. */
  readonly asyncapi: () => object | undefined
  readonly log: AdminLog
}
type AdminLog = { readonly error: (details: ErrorLocation, message: string) => void }
type ReceiptsPortSteps = Pick<AdminSteps, 'receipts' | 'asyncapi' | 'log'>

type Answer = {
  readonly code: number
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** @throws StopError `port_unavailable` */
export const startAdmin = (host: string, port: number, steps: AdminSteps): Promise<Server> =>
  listen(
    host,
    port,
    async (method, url, gone) => answers.get(url)?.(steps) ?? answerPublisher(method, url, gone, steps),
    steps.log,
  )

/** Serves publishers only. @throws StopError `port_unavailable` */
export const startReceiptsPort = (host: string, port: number, steps: ReceiptsPortSteps): Promise<Server> =>
  listen(host, port, (method, url, gone) => answerPublisher(method, url, gone, steps, []), steps.log)

type Respond = (method: string, url: string, gone: AbortSignal) => Promise<Answer>

const listen = async (host: string, port: number, respond: Respond, log: AdminLog): Promise<Server> => {
  const server = createServer((request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const { method = '', url = '' } = request
    respond(method, url, gone.signal)
      .catch((error: unknown): Answer => {
        log.error(errorLocation(error), 'a request to the admin port or the port of receipts failed')
        return { code: 500, body: '{}' }
      })
      .then(({ code, type = 'application/json', headers, body }) => {
        response.writeHead(code, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers })
        response.end(body)
      })
      .catch(() => response.destroy())
  })
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new StopError('port_unavailable', `${host}:${port} (${code})`, { host, port })
  }
  return server
}

/** @param others the other paths of this port, for a 404 */
const answerPublisher = async (
  method: string,
  url: string,
  gone: AbortSignal,
  { receipts, asyncapi }: ReceiptsPortSteps,
  others: readonly string[] = [...answers.keys()],
): Promise<Answer> => {
  if (url === ASYNCAPI_PATH) {
    const document = asyncapi()
    if (document === undefined) return notKnownNow('the projector is starting')
    return { code: 200, body: JSON.stringify(document) }
  }
  const paths = [...others, ASYNCAPI_PATH, ...RECEIPT_PATHS]
  return (await answerReceipt(method, url, gone, receipts)) ?? { code: 404, body: JSON.stringify({ paths }) }
}
const ASYNCAPI_PATH = '/asyncapi.json'

const answers = new Map<string, (steps: AdminSteps) => Answer | Promise<Answer>>([
  [
    '/',
    async ({ health, live, failed, clocks, ages, published, status, parkedLately, now }) => {
      const [partitions, parked] = await Promise.all([inTime(status()), inTime(parkedLately())])
      const state = { reasons: health.reasons(), live: live(), failed: failed(), clocks: clocks() }
      const times = { ages: ages.list(), published: published() }
      return forPeople(projectorPage({ ...state, partitions, parked, ...times }, now()))
    },
  ],
  ['/runbooks', async () => forPeople(await runbooksPage())],
  ['/livez', () => ({ code: 200, body: JSON.stringify({ live: true }) })],
  [
    '/readyz',
    ({ health, failed }) => {
      const reasons = health.reasons()
      const ready = Object.keys(reasons).length === 0
      return { code: ready ? 200 : 503, body: JSON.stringify({ ready, reasons, ...failedOf(failed()) }) }
    },
  ],
  ['/metrics', async ({ registry }) => ({ code: 200, type: registry.contentType, body: await registry.metrics() })],
  [
    '/status',
    async ({ status, clocks, failed }) => {
      const partitions = await status()
      if (partitions === undefined) return { code: 503, body: JSON.stringify({ error: 'not known now' }) }
      return { code: 200, body: JSON.stringify({ partitions, clocks: clocks(), ...failedOf(failed()) }) }
    },
  ],
])

/** Returns undefined if the read takes too long, as while Kafka or Elasticsearch stands still. */
const inTime = <Result>(read: Promise<Result>): Promise<Result | undefined> =>
  withTimeLimit(STATUS_PAGE_READ_MS, scheduleTimer, signal => waitOrAbort(read, signal)).catch((error: unknown) => {
    if (error instanceof Refusal) return undefined
    throw error
  })

const forPeople = (body: string): Answer => ({
  code: 200,
  type: 'text/html; charset=utf-8',
  headers: {
    'content-security-policy': STATUS_PAGE_POLICY,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
  },
  body,
})

/** By name; nothing if none failed. */
const failedOf = (failed: readonly FailedSpare[]) =>
  failed.length > 0 && { failed: Object.fromEntries(failed.map(({ generation, code }) => [generation, code])) }
