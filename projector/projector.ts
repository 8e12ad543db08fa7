/**
 * The running projector, from two reachable services to the streams of commission events and API keys. Looks up the
 * live generation or, at a first start, creates it. Runs each stream until the signal, or until a failure stops all,
 * and follows changes of the generations to keep up.
 */
import type { Server } from 'node:http'
import type { Admin } from 'kafkajs'
import { startAdmin, startReceiptsPort } from './admin/admin.ts'
import { describeTopics } from './admin/describe-topics.ts'
import { createParkedExplainer } from './admin/explain-parked.ts'
import { createReceiptReader, createReceipts } from './admin/receipts.ts'
import { createRunReader, createRunReceipts } from './admin/run-receipts.ts'
import { statusOfAll } from './admin/status.ts'
import { createClocks, logClockChange } from './elasticsearch/clocks.ts'
import { readGenerations } from './generations/generations.ts'
import { createHealth } from './health.ts'
import { DISCONNECT_TIMEOUT_MS, GENERATIONS_POLL_MS, REPORT_INTERVAL_MS, STREAMS_STOP_TIMEOUT_MS } from './limits.ts'
import { prepare, retryKafka, type Settings, type StartContext } from './start.ts'
import { kafkaLog } from './stream/kafka-log.ts'
import { createKeepUp } from './stream/keep-up.ts'
import { createProjectorMetrics } from './stream/metrics.ts'
import { type RunningStream, type StreamOptions, startStream } from './stream/stream.ts'

/** Runs until the signal. @throws StopError, or another error that stopped it */
export const runProjector = async (settings: Settings, context: StartContext): Promise<void> => {
  const { kafka, kafkaWithConnectHook, log, signal, retryOptions, now, elapsed, elasticsearch, ...testHooks } = context
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  await using stack = new AsyncDisposableStack()
  const health = createHealth(log, elapsed)
  const clocks = createClocks({ send: elasticsearch.send, now, elapsed, onChange: logClockChange(log) })
  const statuses = () => keepUp.streams().flatMap(stream => stream.status())
  const receipts = createReceipts(
    createReceiptReader(elasticsearch.send, settings.ELASTICSEARCH_INDEX_PREFIX),
    retryOptions.sleep,
  )
  const readRun = createRunReader(elasticsearch.send, settings.ELASTICSEARCH_INDEX_PREFIX)
  const askRun = createRunReceipts(receipts, readRun, retryOptions.sleep)
  const explain = createParkedExplainer(elasticsearch.send, settings.ELASTICSEARCH_INDEX_PREFIX, {
    sleep: retryOptions.sleep,
    stopping: receipts.stopping,
  })
  const metrics = createProjectorMetrics(statuses, receipts.waiting, () => keepUp.failed(), clocks.state)

  // Bounded: a client that does not answer must not delay the stop.
  const disconnect = (client: Pick<Admin, 'disconnect'>): Promise<void> =>
    Promise.race([
      client.disconnect().catch(() => undefined),
      retryOptions.sleep(DISCONNECT_TIMEOUT_MS, new AbortController().signal),
    ])
  const given = {
    kafkaWithConnectHook,
    elasticsearch,
    retryOptions,
    now,
    elapsed,
    clocks,
    health,
    warn: log.warn.bind(log),
  }
  const startOne = async (options: StreamOptions, fail: (error: unknown) => void): Promise<RunningStream> => {
    // One admin client per stream: the client's calls for two topics at once disturb each other's metadata.
    const streamAdmin = kafka.admin()
    try {
      await retryKafka(() => streamAdmin.connect(), health, context)
      const ours = { ...given, metrics: metrics.of(options.stream, options.identity.generation) }
      const { status, stop, abandon } = await startStream(options, {
        ...ours,
        streamLog: kafkaLog(options, { ...ours, admin: streamAdmin }),
        freshnessMs: settings.FRESHNESS_MS,
        fail,
        ...testHooks,
      })
      const closing = (end: () => Promise<void>) => async () => {
        await end().catch(() => undefined)
        await disconnect(streamAdmin)
      }
      return { status, stop: closing(stop), abandon: closing(abandon) }
    } catch (error) {
      await disconnect(streamAdmin)
      throw error
    }
  }
  const steps = { request: elasticsearch.send, prefix: settings.ELASTICSEARCH_INDEX_PREFIX }
  const readLiveGeneration = async () => (await readGenerations(steps))?.live
  const keepUp = createKeepUp({
    start: startOne,
    fail: failure.reject,
    readLiveGeneration,
    health,
    log,
    elapsed,
    signal,
  })
  const admin = kafka.admin()
  health.prepare('start', 'preparing')
  const serve = async (name: 'admin port' | 'receipts port', starting: Promise<Server>): Promise<void> => {
    const server = await starting
    stack.defer(() => {
      server.closeAllConnections()
      server.close()
    })
    log.info({ address: server.address() }, name)
  }
  const sources = () => keepUp.options().map(({ stream, identity }) => ({ stream, ...identity }))
  const forPublishers = {
    receipts: { ask: receipts.ask, askRun, explain, sources },
    asyncapi: () => describeTopics(settings, sources()),
  }
  const { PROJECTOR_ADMIN_HOST, PROJECTOR_ADMIN_PORT, RECEIPTS_HOST, RECEIPTS_PORT } = settings
  const adminPort = startAdmin(PROJECTOR_ADMIN_HOST, PROJECTOR_ADMIN_PORT, {
    ...forPublishers,
    // Not ready from the start of a stop: this port closes last.
    health: { reasons: () => (signal.aborted ? { projector: 'stopping' } : health.reasons()) },
    registry: metrics.registry,
    failed: keepUp.failed,
    status: () => statusOfAll(keepUp.options(), settings.ELASTICSEARCH_INDEX_PREFIX, admin, elasticsearch),
    clocks: clocks.state,
  })
  await serve('admin port', adminPort)
  if (RECEIPTS_PORT !== undefined)
    await serve('receipts port', startReceiptsPort(RECEIPTS_HOST, RECEIPTS_PORT, forPublishers))
  stack.defer(() => disconnect(admin))

  const work = async (): Promise<void> => {
    const listWanted = await prepare(settings, admin, health, context)
    const runWanted = async () => keepUp.run(await listWanted(keepUp.failed()))
    await runWanted()
    health.set('start', undefined)
    log.info('projecting')
    while (!signal.aborted) {
      await retryOptions.sleep(GENERATIONS_POLL_MS, signal)
      await runWanted()
    }
  }
  const ended = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => ended.resolve(), { once: true })

  const report = setInterval(() => {
    for (const { end, publishedUntil: _, ...status } of statuses())
      log.info({ ...status, lag: end - status.searchableTo }, 'position')
  }, REPORT_INTERVAL_MS)
  stack.defer(() => clearInterval(report))

  const working = work().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  try {
    const over = Promise.race([working.then(() => ended.promise), ended.promise, failure.promise])
    await over.finally(receipts.stop)
  } catch (error) {
    await Promise.allSettled(keepUp.streams().map(stream => stream.abandon()))
    throw error
  }
  // Wait for a stream that is joining its group: left half-way, it stays a member until its session times out.
  const begun = new Set(keepUp.streams())
  const stopped = Promise.all([
    ...[...begun].map(stream => stream.stop()),
    working.then(() =>
      Promise.all(
        keepUp
          .streams()
          .filter(stream => !begun.has(stream))
          .map(stream => stream.stop()),
      ),
    ),
  ])
  await Promise.race([stopped, retryOptions.sleep(STREAMS_STOP_TIMEOUT_MS, new AbortController().signal)])
}
