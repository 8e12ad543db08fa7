/**
 * The running projector: opens its ports, prepares Kafka and Elasticsearch (`start.ts`), and runs the streams of API
 * keys and of the active generations. Every GENERATIONS_POLL_MS it reads again which generations are active. It ends at
 * the signal, or when a stream that must run fails.
 */
import type { Server } from 'node:http'
import type { Admin } from 'kafkajs'
import { asUnanswered, untilKafkaAnswers } from '../core/log/index.ts'
import {
  BALANCES,
  createProjectorMetrics,
  GENERATIONS_POLL_MS,
  kafkaLog,
  STREAMS_STOP_TIMEOUT_MS,
  type StreamStatus,
  startStream,
} from '../core/projection/index.ts'
import {
  AGE_INTERVAL_MS,
  type Ages,
  createAges,
  createHealth,
  createProcessMetrics,
  type Health,
  oldestAge,
  type PublishedTime,
} from '../core/runtime/index.ts'
import { type Clocks, createClocks, logClockChange, readGenerations } from '../core/store/index.ts'
import { startAdmin, startReceiptsPort } from './admin/admin.ts'
import { describeTopics } from './admin/describe-topics.ts'
import { createParkedExplainer } from './admin/explain-parked.ts'
import { createIsIntact, type IsIntact } from './admin/is-intact.ts'
import { createReceiptReader, createReceipts, type Receipts } from './admin/receipts.ts'
import { createRunReader, createRunReceipts } from './admin/run-receipts.ts'
import { countStoredParked, readParkedLately, statusOfAll } from './admin/status.ts'
import { createKeepUp, type KeepUp, type KeepUpSteps } from './keep-up.ts'
import { DISCONNECT_TIMEOUT_MS, PARKED_LATELY_HOURS, REPORT_INTERVAL_MS } from './limits.ts'
import { prepare, type Settings, type StartContext } from './start.ts'

/** Runs until the signal. @throws StopError, or another error that stopped it */
export const runProjector = async (settings: Settings, context: StartContext): Promise<void> => {
  const { kafka, elasticsearch, log, signal, now, elapsed } = context
  const { send } = elasticsearch
  const { sleep } = context.retryOptions
  const prefix = settings.ELASTICSEARCH_INDEX_PREFIX
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  await using stack = new AsyncDisposableStack()
  const health = createHealth(log, elapsed)
  const clocks = createClocks({ send, now, elapsed, onChange: logClockChange(log) })
  const isIntact = createIsIntact(send, prefix, elapsed)
  const receipts = createReceipts(createReceiptReader(send, prefix, isIntact), sleep)
  const statuses = () => keepUp.streams().flatMap(stream => stream.status())
  const metrics = createProjectorMetrics(createProcessMetrics('projector'), {
    partitions: statuses,
    storedParked: () => countStoredParked(keepUp.options(), elasticsearch),
    receiptsWaiting: receipts.waiting,
    failedSpares: () => keepUp.failed(),
    clock: clocks.state,
  })
  const keepUp = createKeepUp({
    start: createStarter(settings, context, { health, clocks, metrics }),
    fail: failure.reject,
    readLiveGeneration: async () => (await readGenerations({ request: send, prefix }))?.live,
    health,
    log,
    elapsed,
    signal,
  })
  const admin = kafka.admin()
  const ages = createAges()
  const published = () => publishedOf(statuses(), keepUp.live())
  const noteAge = (): void => {
    const times = published().map(({ time }) => time)
    ages.note(now(), oldestAge(times, now()))
  }
  const look = setInterval(noteAge, AGE_INTERVAL_MS)
  stack.defer(() => clearInterval(look))
  health.prepare('start', 'preparing')
  const served = { health, clocks, metrics, receipts, isIntact, keepUp, ages, published, admin }
  await servePorts(settings, context, served, stack)
  stack.defer(() => disconnect(admin, sleep))
  const report = setInterval(() => {
    for (const { end, publishedUntil: _, ...status } of statuses())
      log.info({ ...status, lag: end - status.searchableTo }, 'position')
  }, REPORT_INTERVAL_MS)
  stack.defer(() => clearInterval(report))

  const work = async (): Promise<void> => {
    const listWanted = await prepare(settings, admin, health, context)
    const runWanted = async () => keepUp.run(await listWanted(keepUp.stopped()))
    await runWanted()
    health.set('start', undefined)
    log.info('projecting')
    while (!signal.aborted) {
      await sleep(GENERATIONS_POLL_MS, signal)
      await runWanted()
    }
  }
  const working = work().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  try {
    const ended = aborted(signal)
    await Promise.race([working.then(() => ended), ended, failure.promise]).finally(receipts.stop)
  } catch (error) {
    await Promise.allSettled(keepUp.streams().map(stream => stream.abandon()))
    throw error
  }
  await Promise.race([stopStreams(keepUp, working), sleep(STREAMS_STOP_TIMEOUT_MS, new AbortController().signal)])
}

type Parts = {
  readonly health: Health
  readonly clocks: Clocks
  readonly metrics: ReturnType<typeof createProjectorMetrics>
}

/** Returns a function that starts a stream with a Kafka admin client of its own. */
const createStarter =
  (settings: Settings, context: StartContext, { health, clocks, metrics }: Parts): KeepUpSteps['start'] =>
  async (options, fail) => {
    const {
      kafka,
      kafkaWithConnectHook,
      openLog,
      log,
      signal: _,
      retryOptions,
      now,
      elapsed,
      elasticsearch,
      ...testHooks
    } = context
    // One admin client per stream: the client's calls for two topics at once disturb each other's metadata.
    const admin = kafka.admin()
    const disconnectAdmin = (): Promise<void> => disconnect(admin, retryOptions.sleep)
    try {
      // The start has tried the credentials: if they fail now, a connection was lost, or they may be right again.
      const connect = () => admin.connect().catch(asUnanswered)
      await untilKafkaAnswers(connect, context.signal, { retryOptions, health })
      const ours = {
        kafkaWithConnectHook,
        openLog,
        elasticsearch,
        retryOptions,
        now,
        elapsed,
        clocks,
        health,
        warn: log.warn.bind(log),
        messageBytes: settings.KAFKA_MAX_MESSAGE_BYTES,
        metrics: metrics.of(options.stream, options.identity.generation),
      }
      const { status, stop, abandon } = await startStream(options, {
        ...ours,
        streamLog: kafkaLog(options, { ...ours, admin }),
        freshnessMs: settings.FRESHNESS_MS,
        balances: BALANCES,
        keepsTemplate: true,
        fail,
        ...testHooks,
      })
      const closing = (end: () => Promise<void>) => async () => {
        await end().catch(() => undefined)
        await disconnectAdmin()
      }
      return { status, stop: closing(stop), abandon: closing(abandon) }
    } catch (error) {
      await disconnectAdmin()
      throw error
    }
  }

/** This process publishes some partitions of the live generation. */
const publishedOf = (statuses: readonly StreamStatus[], live: string): readonly PublishedTime[] =>
  statuses
    .filter(({ generation }) => generation === live)
    .map(({ partition, publishedUntil }) => ({ partition, time: publishedUntil }))

type Served = Parts & {
  readonly receipts: Receipts
  readonly isIntact: IsIntact
  readonly keepUp: KeepUp
  readonly ages: Ages
  readonly published: () => readonly PublishedTime[]
  readonly admin: Admin
}

/** Opens the admin port, and the port of receipts if there is one. The stack closes them. */
const servePorts = async (
  settings: Settings,
  { log, signal, retryOptions: { sleep }, elasticsearch, now }: StartContext,
  { health, clocks, metrics, receipts, isIntact, keepUp, ages, published, admin }: Served,
  stack: AsyncDisposableStack,
): Promise<void> => {
  const { send } = elasticsearch
  const { ELASTICSEARCH_INDEX_PREFIX: prefix } = settings
  const { PROJECTOR_ADMIN_HOST, PROJECTOR_ADMIN_PORT, RECEIPTS_HOST, RECEIPTS_PORT } = settings
  const askRun = createRunReceipts(receipts, createRunReader(send, prefix, isIntact), sleep)
  const explain = createParkedExplainer(send, prefix, { sleep, stopping: receipts.stopping })
  const forPublishers = {
    receipts: { ask: receipts.ask, askRun, explain, sources: keepUp.sources },
    asyncapi: () => describeTopics(settings, keepUp.sources()),
    log,
  }
  const serve = async (
    message: 'the admin port listens' | 'the port of receipts listens',
    starting: Promise<Server>,
  ): Promise<void> => {
    const server = await starting
    stack.defer(() => {
      server.closeAllConnections()
      server.close()
    })
    log.info({ address: server.address() }, message)
  }
  const adminPort = startAdmin(PROJECTOR_ADMIN_HOST, PROJECTOR_ADMIN_PORT, {
    ...forPublishers,
    // Not ready from the start of a stop: this port closes last.
    health: { reasons: () => (signal.aborted ? { projector: 'stopping' } : health.reasons()) },
    registry: metrics.registry,
    failed: keepUp.failed,
    status: () => statusOfAll(keepUp.options(), prefix, admin, elasticsearch),
    clocks: clocks.state,
    live: keepUp.live,
    ages,
    published,
    now,
    parkedLately: () => {
      // A generation that is being built parks the same records again.
      const readers = keepUp
        .options()
        .filter(({ stream, identity }) => stream === 'api-keys' || identity.generation === keepUp.live())
      const indices = readers.map(({ layout }) => layout.indexOf('parked'))
      const times = { since: now() - PARKED_LATELY_HOURS * HOUR_MS, now: now() }
      return readParkedLately(indices, times, elasticsearch)
    },
  })
  await serve('the admin port listens', adminPort)
  if (RECEIPTS_PORT !== undefined)
    await serve('the port of receipts listens', startReceiptsPort(RECEIPTS_HOST, RECEIPTS_PORT, forPublishers))
}

const HOUR_MS = 3_600_000

/** Resolves at the signal, or at once if it is aborted already. */
const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/**
 * Stops all streams. Waits for a stream that is joining its group: left half-way, it stays a member until its session
 * times out.
 */
const stopStreams = async (keepUp: KeepUp, working: Promise<void>): Promise<void> => {
  const running = keepUp.streams()
  const stopLater = async (): Promise<void> => {
    await working
    const joined = keepUp.streams().filter(stream => !running.includes(stream))
    await Promise.all(joined.map(stream => stream.stop()))
  }
  await Promise.all([...running.map(stream => stream.stop()), stopLater()])
}

/** Bounded: a client that does not answer must not delay the stop. */
const disconnect = (client: Pick<Admin, 'disconnect'>, sleep: StartContext['retryOptions']['sleep']): Promise<void> =>
  Promise.race([client.disconnect().catch(() => undefined), sleep(DISCONNECT_TIMEOUT_MS, new AbortController().signal)])
