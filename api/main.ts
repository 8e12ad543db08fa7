/**
 * Starts one API process from the environment and stops it on SIGTERM or SIGINT.
 * The only file that touches the process, its clock and the Elasticsearch client.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import { Client } from '@elastic/elasticsearch'
import { pino } from 'pino'
import { apiSettings, type Read, readSettings, SettingsError } from '../schemas/settings.ts'
import { createAdminServer } from './admin.ts'
import { createApi } from './app.ts'
import { clientOptions } from './client-options.ts'
import { countAlone, countTogether } from './count-requests.ts'
import { createElasticsearch, type Transport } from './elasticsearch.ts'
import { LOG_BUFFER_BYTES, LOG_FLUSH_INTERVAL, STOP_TIME_MAX } from './limits.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { sayWhenReady } from './ready.ts'
import { closingConnections, createApiServer, ListenError, listen, stop, type Tls } from './server.ts'

/**
 * A page is a few buffers of several 100 KB outside the heap. Without the first flag the collector marks the whole heap whenever 64 MB of
 * them have come, every 70 pages or so, which costs more than the pages do; with it they count towards the heap's own limit. The second lets
 * what is used grow to four times of what was left by the last collection before the next one marks: mostly it is such buffers, and they are gone by then.
 */
const collectBuffersLater = (): void => {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
  setFlagsFromString('--heap-growing-percent=300')
}

const start = async (): Promise<void> => {
  collectBuffersLater()
  const settings = readSettings(apiSettings, process.env)
  const stream = pino.destination({ sync: false, minLength: LOG_BUFFER_BYTES, periodicFlush: LOG_FLUSH_INTERVAL })
  const log = createLog(pino({ level: settings.LOG_LEVEL, base: null }, stream))
  const metrics = createMetrics()
  const now = () => performance.now()
  const newRequestId = () => randomUUID()

  const ca = readPem('ELASTICSEARCH_CA_FILE', settings.ELASTICSEARCH_CA_FILE)
  const client = new Client(clientOptions(settings.ELASTICSEARCH_URL, settings.ELASTICSEARCH_API_KEY, ca))
  const elasticsearch = createElasticsearch({
    transport: client.transport.request.bind(client.transport) as Transport,
    answered: connection => client.connectionPool.markAlive(connection as never),
    otherNodes: settings.ELASTICSEARCH_URL.length - 1,
    observe: metrics.elasticsearch,
    now,
  })
  const rate = { requests: settings.RATE_LIMIT_REQUESTS, windowSeconds: settings.RATE_LIMIT_WINDOW_SECONDS }
  const prefix = settings.ELASTICSEARCH_INDEX_PREFIX
  const shared =
    settings.REDIS_URL === undefined
      ? undefined
      : countTogether(settings.REDIS_URL, `${prefix}-rate`, rate, now, {
          counts: counts => {
            metrics.countedTogether(counts)
            if (counts) log.say('info', 'Redis counts the requests of each key')
            else log.say('warn', 'Redis does not answer: the requests of a key are counted by each process for itself')
          },
          countedAlone: metrics.countedAlone,
        })
  const api = createApi({
    elasticsearch,
    prefix,
    rate,
    counter: shared ?? countAlone(rate),
    log,
    observe: metrics.request,
    rateLimited: metrics.rateLimited,
    now,
    newRequestId,
  })

  let stopping = false
  const readiness = async () => (stopping ? { notReady: ['stopping'], positions: undefined } : api.readiness())
  const server = createApiServer({
    listener: closingConnections(api.listener, () => stopping),
    tls: readTls(settings),
    newRequestId,
    refused: (requestId, code) => {
      metrics.refusedBytes(code)
      log.refusedBytes(requestId, code)
    },
  })
  const admin = createAdminServer({
    readiness,
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
    log.say('info', 'stopping', { signal })
    await Promise.all([stop(server, STOP_TIME_MAX), stop(admin, STOP_TIME_MAX)])
    shared?.stop()
    await client.close()
    log.say('info', 'stopped')
    stream.flushSync()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal))
  await sayWhenReady(readiness, log.say, waiting.signal)
}

const readPem = (name: string, file: string | undefined): string | undefined => {
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new SettingsError([{ name, expected: 'a file that can be read', got: file }])
  }
}

/** Certificate and key belong together, or nothing is served. */
const readTls = ({ API_TLS_CERT_FILE, API_TLS_KEY_FILE }: Read<typeof apiSettings>): Tls | undefined => {
  const cert = readPem('API_TLS_CERT_FILE', API_TLS_CERT_FILE)
  const key = readPem('API_TLS_KEY_FILE', API_TLS_KEY_FILE)
  if (cert === undefined || key === undefined) return undefined
  try {
    createSecureContext({ cert, key })
    return { cert, key }
  } catch {
    const expected = 'a certificate with its chain as PEM, of the key in API_TLS_KEY_FILE'
    throw new SettingsError([{ name: 'API_TLS_CERT_FILE', expected, got: 'something else' }])
  }
}

/** What an operator reads when the process does not start: one message for what is known, the kind and place of what is not. */
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
