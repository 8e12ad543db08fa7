/**
 * Starts one API process from the environment and stops it on SIGTERM or SIGINT. Only this file uses the process, its
 * clock and the Elasticsearch client.
 */

import { randomUUID } from 'node:crypto'
import files, { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server as TlsServer } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import { Client } from '@elastic/elasticsearch'
import { pino } from 'pino'
import { boundLog } from '../schemas/bounded-log.ts'
import { UNHANDLED_EXIT_CODE } from '../schemas/error-location.ts'
import { apiSettings, type Read, readSettings, SettingsError } from '../schemas/settings.ts'
import { createCredentials } from '../schemas/stored/credentials.ts'
import { createLocalCounter, createRedisCounter } from './access/rate-counter.ts'
import { createAdminServer } from './admin/admin.ts'
import { createApiMetrics } from './admin/metrics.ts'
import { logWhenReady } from './admin/ready.ts'
import { createApi } from './app.ts'
import { createAnswerBudget } from './capacity/answer-budget.ts'
import { createSearchClient } from './elasticsearch/client.ts'
import { clientOptions, createTransport } from './elasticsearch/client-options.ts'
import { createLog } from './http/log.ts'
import { renewCertificate, whyUnfit } from './http/renew-certificate.ts'
import { closingConnections, createApiServer, ListenError, listen, stop, type Tls } from './http/server.ts'
import {
  ADMIN_STOP_TIME,
  CERTIFICATE_CHECK_INTERVAL,
  LOG_BUFFER_BYTES,
  LOG_FLUSH_INTERVAL,
  STOP_TIME_MAX,
  STOP_TIMEOUT,
} from './limits.ts'
import { holdKeys } from './sealed/hold-keys.ts'
import { keySourcesOf, readFrom } from './sealed/key-sources.ts'
import type { ReadSealKey } from './sealed/key-store.ts'
import type { Schedule } from './time-limits.ts'
import { handleUnhandledErrors } from './unhandled-errors.ts'

/**
 * A page is a few buffers of several 100 KB outside the heap. By default, V8 marks the whole heap for every 64 MB of
 * them, about every 70 pages, which costs more than the pages do. `--external-memory-accounted-in-global-limit` counts
 * them towards the heap's own limit. `--heap-growing-percent=300` lets memory grow to four times of what the last
 * collection left: most of it is such buffers, which are garbage by then. While large answers are held, four times
 * would far exceed 500 MiB, so memory grows by half.
 */
const growHeapBy = (percent: string): void => setFlagsFromString(`--heap-growing-percent=${percent}`)

const collectBuffersLater = (): void => {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
  growHeapBy('300')
}

const start = async (): Promise<void> => {
  collectBuffersLater()
  const settings = readSettings(apiSettings, process.env, readFileSync)
  const now = () => performance.now()
  const bounded = boundLog(process, files, now)
  const stream = pino.destination({
    ...bounded.options,
    minLength: LOG_BUFFER_BYTES,
    periodicFlush: LOG_FLUSH_INTERVAL,
  })
  const log = createLog(pino({ level: settings.LOG_LEVEL, base: { process: 'api' } }, stream))
  bounded.watch(stream, dropped => log.say('warn', 'log lines were dropped: nobody read them', { dropped }))
  const metrics = createApiMetrics()
  handleUnhandledErrors(process, {
    log,
    count: metrics.countUnhandledRejection,
    end: () => {
      bounded.end(stream)
      process.exit(UNHANDLED_EXIT_CODE)
    },
  })
  const newRequestId = () => randomUUID()

  const ca = readPem('ELASTICSEARCH_CA_FILE', settings.ELASTICSEARCH_CA_FILE)
  const client = new Client(clientOptions(settings.ELASTICSEARCH_URL, settings.ELASTICSEARCH_API_KEY, ca))
  const budget = createAnswerBudget({
    onRefused: metrics.countAnswerRefused,
    onMuchHeld: holds => growHeapBy(holds ? '50' : '300'),
  })
  metrics.watchAnswers(budget.held)
  const elasticsearch = createSearchClient({
    budget,
    transport: createTransport(
      client,
      createCredentials(() => settings.ELASTICSEARCH_API_KEY),
    ),
    otherNodes: settings.ELASTICSEARCH_URL.length - 1,
    observe: metrics.elasticsearch,
    now,
  })
  const rate = { requests: settings.RATE_LIMIT_REQUESTS, windowSeconds: settings.RATE_LIMIT_WINDOW_SECONDS }
  const prefix = settings.ELASTICSEARCH_INDEX_PREFIX
  const shared =
    settings.REDIS_URL === undefined
      ? undefined
      : createRedisCounter(settings.REDIS_URL, `${prefix}-rate`, rate, now, {
          onSharedChange: shared => {
            metrics.setRateShared(shared)
            if (shared) log.say('info', 'Redis counts the requests of each key')
            else log.say('warn', 'Redis does not answer: each process counts the requests of a key alone')
          },
          onLocalCount: metrics.countLocalRate,
        })
  const api = createApi({
    elasticsearch,
    prefix,
    rate,
    counter: shared ?? createLocalCounter(rate),
    trustedProxies: settings.API_TRUSTED_PROXIES,
    mayStore: settings.API_CACHE !== 'no-store',
    budget,
    ...sealKeysOf(settings, now),
    onDeliveryTimeout: metrics.countDeliveryTimeout,
    log,
    observe: metrics.request,
    onRateLimited: metrics.countRateLimited,
    now,
    random: Math.random,
    time: Date.now,
    newRequestId,
  })

  metrics.watchUsage(api.usage)

  let stopping = false
  const readiness = async () => (stopping ? { notReady: ['stopping'], positions: undefined } : api.readiness())
  metrics.watchPositions(async () => (await readiness()).positions)
  const tls = readTls(settings)
  const server = createApiServer({
    listener: closingConnections(api.listener, () => stopping),
    tls,
    newRequestId,
    onRefused: (requestId, code) => {
      metrics.countRefusedBytes(code)
      log.refusedBytes(requestId, code)
    },
    onDrop: metrics.countConnectionDrop,
  })
  if (tls !== undefined && server instanceof TlsServer) {
    const checkCertificate = renewCertificate(tls, {
      read: () => readFiles(settings),
      use: renewed => server.setSecureContext(renewed),
      say: log.say,
    })
    setInterval(checkCertificate, CERTIFICATE_CHECK_INTERVAL).unref()
  }
  const admin = createAdminServer({
    readiness,
    isStopping: () => stopping,
    now: Date.now,
    metrics: () => metrics.registry.metrics(),
    metricsType: metrics.registry.contentType,
  })
  const port = await listen(server, settings.API_HOST, settings.API_PORT)
  const adminPort = await listen(admin, settings.API_ADMIN_HOST, settings.API_ADMIN_PORT)
  log.say('info', 'the API listens', { host: settings.API_HOST, port, admin_port: adminPort })

  const waiting = new AbortController()
  const end = async (signal: string) => {
    if (stopping) return
    stopping = true
    waiting.abort()
    api.endWaits()
    log.say('info', 'stopping', { signal })
    const exit = (code: number) => {
      bounded.end(stream)
      process.exit(code)
    }
    setTimeout(() => {
      log.say('error', 'not stopped in time')
      exit(1)
    }, STOP_TIMEOUT).unref()
    // On SIGTERM, requests are answered until a load balancer has seen the stop on /readyz. At a terminal nobody waits.
    const drain = signal === 'SIGTERM' ? settings.API_DRAIN_SECONDS * 1_000 : 0
    await sleep(drain)
    await stop(server, STOP_TIME_MAX - drain)
    await stop(admin, ADMIN_STOP_TIME)
    shared?.stop()
    // The client is not closed: that would wait for requests in flight, and a frozen server answers none.
    log.say('info', 'stopped')
    exit(0)
  }
  const endNow = (error: unknown): void => {
    log.unhandledError('fatal', error)
    process.exit(UNHANDLED_EXIT_CODE)
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal).catch(endNow))
  await logWhenReady(readiness, log.say, waiting.signal)
}

/** @throws SettingsError if the directory cannot be read. Vault may be away at the start. */
const sealKeysOf = (settings: Read<typeof apiSettings>, now: () => number): { readSealKey?: ReadSealKey } => {
  const sources = keySourcesOf(settings)
  if (sources === undefined) return {}
  const { directory } = sources
  try {
    readdirSync(directory)
  } catch {
    throw new SettingsError([{ name: 'SEAL_KEYS_DIR', expected: 'a directory that can be read', got: directory }])
  }
  return { readSealKey: holdKeys(readFrom(sources), now, scheduleUnref) }
}

/** A timer that does not keep the process alive. */
const scheduleUnref: Schedule = (milliseconds, run) => {
  const timeout = setTimeout(run, milliseconds).unref()
  return () => clearTimeout(timeout)
}

const readPem = (name: string, file: string | undefined): string | undefined => {
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new SettingsError([{ name, expected: 'a file that can be read', got: file }])
  }
}

/** Returns certificate and key as they are now, valid or not. */
const readFiles = ({ API_TLS_CERT_FILE = '', API_TLS_KEY_FILE = '' }: Read<typeof apiSettings>): Tls | undefined => {
  try {
    return { cert: readFileSync(API_TLS_CERT_FILE, 'utf8'), key: readFileSync(API_TLS_KEY_FILE, 'utf8') }
  } catch {
    return undefined
  }
}

/** @throws SettingsError if certificate and key do not fit together */
const readTls = ({ API_TLS_CERT_FILE, API_TLS_KEY_FILE }: Read<typeof apiSettings>): Tls | undefined => {
  const cert = readPem('API_TLS_CERT_FILE', API_TLS_CERT_FILE)
  const key = readPem('API_TLS_KEY_FILE', API_TLS_KEY_FILE)
  if (cert === undefined || key === undefined) return undefined
  if (whyUnfit({ cert, key }) === undefined) return { cert, key }
  const expected = 'a PEM certificate with its chain that fits the key in API_TLS_KEY_FILE'
  throw new SettingsError([{ name: 'API_TLS_CERT_FILE', expected, got: 'something else' }])
}

/** Returns why the process did not start: the message of a known error, the stack of any other. */
const complaint = (error: unknown): string => {
  if (error instanceof SettingsError || error instanceof ListenError) return error.message
  return error instanceof Error ? (error.stack ?? error.name) : 'unknown error'
}

if (import.meta.main) {
  start().catch(error => {
    process.stderr.write(`The API did not start. ${complaint(error)}\n`)
    process.exit(1)
  })
}
