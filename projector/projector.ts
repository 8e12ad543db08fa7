/**
 * The whole projector, from two reachable services to two streams that flow: commission events and API keys.
 *
 * The live generation is looked up or, at a first start, created; each stream then runs by itself until the signal, or
 * until something stops all. Generations that come to be kept up, or no longer are, are followed while it runs.
 */
import type { Admin } from 'kafkajs'
import { startAdmin } from './admin/admin.ts'
import { createReceipts, lookInto } from './admin/receipts.ts'
import { statusOfAll } from './admin/status.ts'
import { createClocks, sayChange } from './elasticsearch/clocks.ts'
import { readGenerations } from './generations/generations.ts'
import { createHealth } from './health.ts'
import { DISCONNECT_TIMEOUT_MS, FOLLOW_MS, REPORT_INTERVAL_MS, STREAMS_STOP_TIMEOUT_MS } from './limits.ts'
import { type Context, kafkaAnswers, prepare, type Settings } from './start.ts'
import { createKeepUp } from './stream/keep-up.ts'
import { createMetrics } from './stream/metrics.ts'
import { type RunningStream, type StreamOptions, startStream } from './stream/stream.ts'

/** Runs until the signal. @throws StopError, or whatever else stopped it */
export const runProjector = async (settings: Settings, context: Context): Promise<void> => {
  const { kafka, kafkaWithConnectHook, log, signal, patience, now, elapsed, elasticsearch, ...testHooks } = context
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  await using stack = new AsyncDisposableStack()
  const health = createHealth(log, elapsed)
  const clocks = createClocks({ send: elasticsearch.send, now, elapsed, onChange: sayChange(log) })
  const statuses = () => keepUp.streams().flatMap(stream => stream.status())
  const receipts = createReceipts(lookInto(elasticsearch.send, settings.ELASTICSEARCH_INDEX_PREFIX), patience.sleep)
  const metrics = createMetrics(statuses, receipts.waiting, () => keepUp.failed(), clocks.state)

  // What stops us must not be held up by what may be the reason.
  const disconnect = (client: Pick<Admin, 'disconnect'>): Promise<void> =>
    Promise.race([
      client.disconnect().catch(() => undefined),
      patience.sleep(DISCONNECT_TIMEOUT_MS, new AbortController().signal),
    ])
  const given = {
    kafkaWithConnectHook,
    elasticsearch,
    patience,
    now,
    elapsed,
    clocks,
    health,
    warn: log.warn.bind(log),
  }
  const startOne = async (options: StreamOptions, fail: (error: unknown) => void): Promise<RunningStream> => {
    // An admin client of its own: the client's calls for two topics at once disturb each other's metadata.
    const streamAdmin = kafka.admin()
    try {
      await kafkaAnswers(() => streamAdmin.connect(), health, context)
      const { status, stop, abandon } = await startStream(options, {
        ...given,
        admin: streamAdmin,
        metrics: metrics.of(options.stream),
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
  const lookAtLive = async () => (await readGenerations(steps))?.live
  const keepUp = createKeepUp({ start: startOne, fail: failure.reject, lookAtLive, health, log, now: elapsed, signal })
  const admin = kafka.admin()
  health.prepare('start', 'preparing')
  const server = await startAdmin(settings.PROJECTOR_ADMIN_HOST, settings.PROJECTOR_ADMIN_PORT, {
    // Said from the first moment on: this port is the last to close.
    health: { reasons: () => (signal.aborted ? { projector: 'stopping' } : health.reasons()) },
    registry: metrics.registry,
    failed: keepUp.failed,
    status: () => statusOfAll(keepUp.options(), settings.ELASTICSEARCH_INDEX_PREFIX, admin, elasticsearch),
    receipts: {
      ask: receipts.ask,
      sources: () => keepUp.options().map(({ stream, identity }) => ({ stream, ...identity })),
    },
    clocks: clocks.state,
  })
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  log.info({ address: server.address() }, 'admin port')
  stack.defer(() => disconnect(admin))

  const work = async (): Promise<void> => {
    const look = await prepare(settings, admin, health, context)
    const follow = async () => keepUp.follow(await look(keepUp.failed()))
    await follow()
    health.set('start', undefined)
    log.info('projecting')
    while (!signal.aborted) {
      await patience.sleep(FOLLOW_MS, signal)
      await follow()
    }
  }
  const ended = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => ended.resolve(), { once: true })

  const report = setInterval(() => {
    for (const { end, ...status } of statuses()) log.info({ ...status, lag: end - status.searchableTo }, 'position')
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
  // A stream that is joining its group now is waited for: left half-way, it keeps a place there until its session ends.
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
  await Promise.race([stopped, patience.sleep(STREAMS_STOP_TIMEOUT_MS, new AbortController().signal)])
}
