/**
 * Starts one API process from the environment and stops it on SIGTERM or SIGINT. Only this file uses the process, its
 * clock and the Elasticsearch client.
 */

import { randomUUID } from 'node:crypto'
import files, { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server as TlsServer } from 'node:tls'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { kafkaConfig } from '../core/log/index.ts'
import { holdKeys, keySourcesOf, type ReadSealKey, readFrom } from '../core/reading/index.ts'
import {
  apiSettings,
  boundLog,
  createAges,
  errorLocation,
  kafkaSettings,
  parseSigningKey,
  type Read,
  readSettings,
  type Schedule,
  SettingsError,
  type SigningKey,
  StopError,
  scheduleTimer,
  UNHANDLED_EXIT_CODE,
} from '../core/runtime/index.ts'
import {
  authOf,
  clientOptions,
  createAnswerBudget,
  createCredentials,
  createSearchClient,
  createTransport,
} from '../core/store/index.ts'
import { createKeyUses } from './access/key-uses.ts'
import { createLocalCounter, createRedisCounter } from './access/limit-rate.ts'
import { encryptedShares, usualShares } from './access/permits.ts'
import { createAdminServer } from './admin/admin.ts'
import { createApiMetrics } from './admin/metrics.ts'
import { logWhenReady } from './admin/ready.ts'
import { ageOf } from './admin/status-page.ts'
import { createLog } from './answer/answer-and-log.ts'
import { createApi } from './app.ts'
import { openAudit } from './audit/open-audit.ts'
import { createAuditReport } from './audit/report-lines.ts'
import { boundHeap } from './heap-growth.ts'
import { renewCertificate, whyUnfit } from './http/renew-certificate.ts'
import { closingConnections, createApiServer, ListenError, listen, stop, type Tls } from './http/server.ts'
import {
  ADMIN_STOP_TIME,
  AUDIT_END_TIME,
  AUDIT_KAFKA_RETRIES,
  AUDIT_KAFKA_TIMEOUT,
  CERTIFICATE_CHECK_INTERVAL,
  LOG_BUFFER_BYTES,
  LOG_FLUSH_INTERVAL,
  STOP_TIME_MAX,
  STOP_TIMEOUT,
} from './limits.ts'
import { handleUnhandledErrors } from './unhandled-errors.ts'

const start = async (): Promise<void> => {
  const holdMuch = boundHeap()
  const settings = readSettings(apiSettings, process.env, readFileSync)
  const elapsed = () => performance.now()
  const bounded = boundLog(process, files, elapsed)
  const stream = pino.destination({
    ...bounded.options,
    // Lines of the audit are written at once, and with them the others.
    minLength: settings.AUDIT_LOG === 'stdout' ? 0 : LOG_BUFFER_BYTES,
    periodicFlush: LOG_FLUSH_INTERVAL,
  })
  const log = createLog(pino({ level: settings.LOG_LEVEL, base: { process: 'api' } }, stream))
  bounded.watch(stream, dropped =>
    log.say('warn', 'log lines were dropped: nobody read them, or the disk was full', { dropped }),
  )
  /** Writes the last log lines, and ends the process. */
  const exit = (code: number): never => {
    bounded.end(stream)
    process.exit(code)
  }
  const metrics = createApiMetrics()
  handleUnhandledErrors(process, {
    log,
    count: metrics.countUnhandledRejection,
    end: () => exit(UNHANDLED_EXIT_CODE),
  })
  let stopping = false
  /** Ends what has begun. Until the API is about to listen, that is nothing. */
  let endAll = async (_signal: string): Promise<void> => undefined
  const end = async (signal: string): Promise<void> => {
    if (stopping) return
    stopping = true
    log.say('info', 'stopping', { signal })
    setTimeout(() => {
      log.say('error', 'not stopped in time')
      exit(1)
    }, STOP_TIMEOUT).unref()
    await endAll(signal)
    log.say('info', 'stopped')
    exit(0)
  }
  const endNow = (error: unknown): void => {
    log.unhandledError('fatal', error)
    exit(UNHANDLED_EXIT_CODE)
  }
  // Before the first wait: the only process of a container ignores a signal that it does not listen for.
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal).catch(endNow))
  const newRequestId = () => randomUUID()

  const ca = readText('ELASTICSEARCH_CA_FILE', settings.ELASTICSEARCH_CA_FILE)
  const client = new Client(clientOptions(settings.ELASTICSEARCH_URL, authOf(settings), ca))
  const budget = createAnswerBudget({
    onRefused: metrics.countAnswerRefused,
    onMuchHeld: holdMuch,
  })
  metrics.watchAnswers(budget.held)
  const elasticsearch = createSearchClient({
    budget,
    transport: createTransport(
      client,
      settings.ELASTICSEARCH_URL.length - 1,
      createCredentials(() => authOf(settings)),
      elapsed,
    ),
    observe: metrics.elasticsearch,
    elapsed,
  })
  const rate = { requests: settings.RATE_LIMIT_REQUESTS, windowSeconds: settings.RATE_LIMIT_WINDOW_SECONDS }
  const prefix = settings.ELASTICSEARCH_INDEX_PREFIX
  const shared =
    settings.REDIS_URL === undefined
      ? undefined
      : await createRedisCounter(settings.REDIS_URL, `${prefix}-rate`, rate, elapsed, {
          onSharedChange: (shared, refusal) => {
            metrics.setRateShared(shared)
            if (shared) log.say('info', 'Redis counts the requests of each key')
            else if (refusal === undefined)
              log.say('warn', 'Redis does not answer: each process counts the requests of a key alone')
            else log.say('warn', 'Redis refuses to count: each process counts the requests of a key alone', { refusal })
          },
          onLocalCount: metrics.countLocalRate,
        })
  const auditReport = createAuditReport({ say: log.say, count: metrics.countAuditLines, elapsed })
  const audit =
    settings.AUDIT_LOG === undefined
      ? undefined
      : await openAudit({
          target: settings.AUDIT_LOG,
          isStrict: settings.AUDIT_STRICT === 'true',
          stdout: stream,
          openKafka,
          onUnchecked: reason => log.say('warn', 'it is not known whether the audit topic keeps all lines', { reason }),
          onLines: auditReport.onLines,
          elapsed,
          later: scheduleTimer,
        })
  const keyUses = createKeyUses(Date.now)
  const tls = readTls(settings)
  const api = createApi({
    elasticsearch,
    prefix,
    rate,
    counter: shared ?? createLocalCounter(rate),
    trustedProxies: settings.API_TRUSTED_PROXIES,
    publicUrl: settings.API_PUBLIC_URL,
    corsOrigins: settings.API_CORS_ORIGINS,
    shareLimits: tls === undefined ? usualShares : encryptedShares,
    mayStore: settings.API_CACHE !== 'no-store',
    budget,
    ...sealKeysOf(settings, elapsed),
    checkpointKey: checkpointKeyOf(settings),
    onDeliveryTimeout: metrics.countDeliveryTimeout,
    log,
    audit,
    onKeyUsed: keyUses.use,
    observe: metrics.request,
    onRateLimited: metrics.countRateLimited,
    elapsed,
    random: Math.random,
    now: Date.now,
    newRequestId,
  })

  metrics.watchUsage(api.usage)

  const isStopping = () => stopping
  const listener = closingConnections(api.listener, isStopping)
  const ages = createAges()
  /** Each answer of the admin port reads it, so that probes and scrapes draw the picture of the ages. */
  const readiness = async () => {
    if (stopping) return { notReady: ['stopping'], positions: undefined }
    const seen = await api.readiness()
    ages.note(Date.now(), ageOf(seen, Date.now()))
    return seen
  }
  metrics.watchReadiness(readiness)
  const server = createApiServer({
    listener,
    tls,
    newRequestId,
    onRefused: (requestId, code, address) => {
      metrics.countRefusedBytes(code)
      api.logRefusedBytes(requestId, code, address)
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
    ages,
    isStopping,
    api: tls === undefined ? listener : undefined,
    now: Date.now,
    metrics: () => metrics.registry.metrics(),
    metricsType: metrics.registry.contentType,
    keyUses: keyUses.list,
    started: Date.now(),
    onFailure: error => log.say('error', 'a request to the admin port failed', errorLocation(error)),
  })
  const waiting = new AbortController()
  endAll = async signal => {
    const begun = elapsed()
    waiting.abort()
    api.endWaits()
    // On SIGTERM, requests are answered until a load balancer has seen the stop on /readyz. At a terminal nobody waits.
    const drain = signal === 'SIGTERM' ? settings.API_DRAIN_SECONDS * 1_000 : 0
    await sleep(drain)
    await stop(server, STOP_TIME_MAX - drain)
    await stop(admin, ADMIN_STOP_TIME)
    await audit?.writer.end(AUDIT_END_TIME - (elapsed() - begun))
    auditReport.end()
    shared?.stop()
    // The client is not closed: that would wait for requests in flight, and a frozen server answers none.
  }
  const port = await listen(server, settings.API_HOST, settings.API_PORT)
  const adminPort = await listen(admin, settings.API_ADMIN_HOST, settings.API_ADMIN_PORT)
  log.say('info', 'the API listens', { host: settings.API_HOST, port, admin_port: adminPort })
  await logWhenReady(readiness, log.say, waiting.signal)
}

/** Returns the functions that create clients for the audit. @throws SettingsError */
const openKafka = () => {
  const settings = readSettings(kafkaSettings, process.env, readFileSync)
  const { AUDIT_LOG: target } = readSettings(apiSettings, process.env, readFileSync)
  if ([settings.KAFKA_EVENTS_TOPIC, settings.KAFKA_API_KEYS_TOPIC].some(topic => target === `kafka:${topic}`)) {
    const expected = 'a topic of its own: events and API keys are read from these topics'
    throw new SettingsError([{ name: 'AUDIT_LOG', expected, got: JSON.stringify(target) }])
  }
  const config = {
    ...kafkaConfig(settings, 'commission-api', readFileSync, Date.now),
    connectionTimeout: AUDIT_KAFKA_TIMEOUT,
    requestTimeout: AUDIT_KAFKA_TIMEOUT,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: AUDIT_KAFKA_RETRIES },
  }
  const kafka = () => new kafkajs.Kafka(config)
  return {
    admin: () => kafka().admin(),
    producer: () =>
      kafka().producer({
        idempotent: true,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
      }),
  }
}

/** @throws SettingsError if the directory cannot be read. Vault may be away at the start. */
const sealKeysOf = (settings: Read<typeof apiSettings>, elapsed: () => number): { readSealKey?: ReadSealKey } => {
  const sources = keySourcesOf(settings)
  if (sources === undefined) return {}
  const { directory } = sources
  try {
    readdirSync(directory)
  } catch {
    throw new SettingsError([{ name: 'SEAL_KEYS_DIR', expected: 'a directory that can be read', got: directory }])
  }
  return { readSealKey: holdKeys(readFrom(sources), elapsed, scheduleUnref) }
}

/** @throws SettingsError for a file without a key */
const checkpointKeyOf = ({ API_CHECKPOINT_KEY_FILE: file }: Read<typeof apiSettings>): SigningKey | undefined => {
  const text = readText('API_CHECKPOINT_KEY_FILE', file)
  if (text === undefined) return undefined
  const key = parseSigningKey(text.trimEnd())
  if (key !== undefined) return key
  const expected = 'a file with a key as commission evidence key writes it: PRIVATE+KEY+NAME+ID+KEY'
  throw new SettingsError([{ name: 'API_CHECKPOINT_KEY_FILE', expected, got: 'another content, which is not shown' }])
}

/** A timer that does not keep the process alive. */
const scheduleUnref: Schedule = (milliseconds, run) => {
  const timeout = setTimeout(run, milliseconds).unref()
  return () => clearTimeout(timeout)
}

const readText = (name: string, file: string | undefined): string | undefined => {
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
  const cert = readText('API_TLS_CERT_FILE', API_TLS_CERT_FILE)
  const key = readText('API_TLS_KEY_FILE', API_TLS_KEY_FILE)
  if (cert === undefined || key === undefined) return undefined
  const got = whyUnfit({ cert, key })
  if (got === undefined) return { cert, key }
  const expected = 'a PEM certificate with its chain that fits the key in API_TLS_KEY_FILE'
  throw new SettingsError([{ name: 'API_TLS_CERT_FILE', expected, got }])
}

/** Returns why the process did not start: the message of a known error, the stack of any other. */
const complaint = (error: unknown): string => {
  if (error instanceof SettingsError || error instanceof ListenError || error instanceof StopError) return error.message
  return error instanceof Error ? (error.stack ?? error.name) : 'unknown error'
}

if (import.meta.main) {
  start().catch(error => {
    process.stderr.write(`The API did not start. ${complaint(error)}\n`)
    process.exit(1)
  })
}
