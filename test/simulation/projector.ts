/**
 * A projector process: the real `prepare` and the real streams on a simulated Kafka and Elasticsearch, assembled as in
 * `projector/projector.ts`. Not simulated: the admin port and the report.
 */

import type { DecisionSteps } from '../../core/ledger/decide/decide-batch.ts'
import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { GENERATIONS_POLL_MS, LEAVE_TIMEOUT_MS, STOP_TIMEOUT_MS } from '../../core/projection/limits.ts'
import { kafkaLog } from '../../core/projection/stream/kafka-log.ts'
import {
  type RunningStream,
  type StreamOptions,
  startStream,
  type TestHooks,
} from '../../core/projection/stream/stream.ts'
import { createHealth, type Health } from '../../core/runtime/health.ts'
import { projectorSettings, readSettings } from '../../core/runtime/settings.ts'
import { createClocks } from '../../core/store/elasticsearch/clocks.ts'
import { readGenerations } from '../../core/store/generations/generations.ts'
import { createKeepUp, type KeepUp } from '../../projector/keep-up.ts'
import { prepare, type Settings } from '../../projector/start.ts'
import { controlIndexOf, LIVE_ID, type LiveDocument, parkedId } from '../../schemas/stored/documents.ts'
import { rep } from '../schemas/examples.ts'
import type { Broker } from './broker.ts'
import { type Clock, SimulatedProcess } from './clock.ts'
import { openSimulatedCluster } from './cluster.ts'
import type { Consumer } from './consumer.ts'
import type { Coverage } from './coverage.ts'
import type { SimulatedElasticsearch } from './elasticsearch.ts'
import type { Faults } from './faults.ts'
import type { History } from './history.ts'
import { createKafka } from './kafka.ts'
import type { Layouts } from './layouts.ts'
import { createLink, type Link, type Watcher } from './link.ts'
import { PREFIX, SECOND_GENERATION } from './promises.ts'

export type Services = {
  readonly clock: Clock
  readonly broker: Broker
  readonly engine: SimulatedElasticsearch
  readonly faults: Faults
  readonly coverage: Coverage
  readonly watcher: Watcher
  readonly history: History
  readonly layouts: Layouts
}

export const settings: Settings = readSettings(projectorSettings, {
  KAFKA_BROKERS: 'localhost:9092',
  ELASTICSEARCH_URL: 'http://localhost:9200',
  ELASTICSEARCH_INDEX_PREFIX: PREFIX,
  ELASTICSEARCH_SHARDS: '3',
})

/** After few changes and in short, so that every schedule has some. */
const BALANCES = { changes: 3, interval: 100 }

/** The rules version of the other projectors. They would apply records that the usual rules park. */
export const OTHER_RULES = RULES_VERSION + 1

export class Projector {
  readonly host: SimulatedProcess
  readonly version: number
  readonly link: Link
  readonly consumers: readonly Consumer[]
  readonly #services: Services
  readonly #kafka: ReturnType<typeof createKafka>['kafka']
  readonly #stopping = new AbortController()
  readonly #onSpareFailed: (details: object, message: string) => void
  readonly #health: Health
  readonly #onConnected: (() => void)[] = []
  #keepUp: KeepUp | undefined
  /** Error of the machine's clock in milliseconds. */
  skew = 0

  /**
   * @param onStopped called with the error that stops the projector; no schedule should stop one
   * @param onSpareFailed called when a generation that is not live fails; by default a failure too
   */
  constructor(
    name: string,
    version: number,
    services: Services,
    onStopped: (error: unknown) => void,
    onSpareFailed = (details: object, message: string) => onStopped(new Error(`${message} ${JSON.stringify(details)}`)),
  ) {
    const { clock, broker, engine, faults, coverage, watcher } = services
    this.#services = services
    this.version = version
    this.#onSpareFailed = onSpareFailed
    this.host = new SimulatedProcess(clock, name)
    this.link = createLink(this.host, engine, faults, coverage, watcher)
    const { kafka, consumers } = createKafka(this.host, broker, faults, coverage)
    this.#kafka = kafka
    this.consumers = consumers
    this.#health = createHealth({ warn: () => undefined, info: () => undefined }, () => clock.elapsed)
    this.#health.prepare('start', 'preparing')
    coverage.count('projectors started')
    const fail = (error: unknown): void => {
      if (!this.#stopping.signal.aborted && !this.host.isDead) onStopped(error)
    }
    this.#run(fail).catch(fail)
  }

  async #run(fail: (error: unknown) => void): Promise<void> {
    const { clock, faults, broker } = this.#services
    const { signal } = this.#stopping
    const log = { warn: () => undefined, info: () => undefined, error: this.#onSpareFailed }
    const elapsed = () => clock.elapsed
    const now = () => clock.now() + this.skew
    const health = this.#health
    const retryOptions = { sleep: this.host.sleep, random: faults.random.next }
    const kafkaWithConnectHook = (onConnected: () => void) => {
      this.#onConnected.push(onConnected)
      return this.#kafka
    }
    const openLog = async (topic: string) => openSimulatedCluster(this.host, broker, faults, topic)
    const shared = { kafkaWithConnectHook, openLog, elasticsearch: this.link, retryOptions, now, elapsed }
    const { layout, routingPartitionSize } = this.#services.layouts.first
    const ours = { ...settings, ELASTICSEARCH_ROUTING_PARTITION_SIZE: routingPartitionSize }
    const context = {
      ...shared,
      kafka: this.#kafka,
      signal,
      log,
      layout,
      rulesVersion: this.version,
    } as unknown as Parameters<typeof prepare>[3]
    const clocks = createClocks({ send: this.link.send, now, elapsed, onChange: () => undefined })
    const look = await prepare(ours, this.#kafka.admin(), health, context)
    const start = async (options: StreamOptions, failOne: (error: unknown) => void): Promise<RunningStream> => {
      const admin = this.#kafka.admin()
      const ours = { ...shared, clocks, health, metrics: silent }
      return startStream(options, {
        ...ours,
        streamLog: kafkaLog(options, { ...ours, admin }),
        balances: BALANCES,
        keepsTemplate: true,
        fail: failOne,
        ...this.#rules(),
      })
    }
    const readLiveGeneration = async () => (await readGenerations({ request: this.link.send, prefix: PREFIX }))?.live
    const keepUp = createKeepUp({ start, fail, readLiveGeneration, health, log, elapsed, signal })
    this.#keepUp = keepUp
    for (;;) {
      await keepUp.run(await look(keepUp.stopped()))
      health.set('start', undefined)
      await this.host.sleep(GENERATIONS_POLL_MS, signal)
    }
  }

  /** Decodes records that were parked before the floor as reps. Nobody may ever see these reps. */
  #rules(): Pick<TestHooks, 'wrapSteps'> {
    if (this.version === RULES_VERSION) return {}
    const { engine, history, coverage } = this.#services
    const floorOf = (partition: number): number => {
      const live = engine.indices.get(controlIndexOf(PREFIX))?.documents.get(LIVE_ID)?.fields as
        | LiveDocument
        | undefined
      return live?.body.alone?.[SECOND_GENERATION]?.[partition] ?? Number.POSITIVE_INFINITY
    }
    const wrapSteps = (steps: DecisionSteps): DecisionSteps => {
      const { stream, topic, partition } = steps.source
      return {
        ...steps,
        decode: record => {
          const isOther = stream === 'events' && record.offset < floorOf(partition)
          if (!isOther || !history.parked.has(parkedId(topic, partition, record.offset))) return steps.decode(record)
          coverage.count('records that other rules would apply and that stayed parked')
          const data = { ...rep, org_id: String(record.key), id: `rep_other${record.offset}` }
          return { type: 'commission.rep.recorded.v1', id: 'other', data }
        },
      }
    }
    return { wrapSteps }
  }

  /** The reasons that `/readyz` gives; none if it is ready. */
  notReady(): Record<string, string> {
    return this.#health.reasons()
  }

  /** Its consumers have new connections: the brokers were away. */
  reconnect(): void {
    for (const onConnected of this.#onConnected) this.host.deliver(onConnected)
  }

  /** Ends as after a `StopError`: leaves its groups at once. */
  end(): void {
    const gone = (): void => this.host.kill()
    this.host.after(2 * LEAVE_TIMEOUT_MS, gone)
    void Promise.allSettled((this.#keepUp?.streams() ?? []).map(stream => stream.abandon())).then(gone)
  }

  /** Stops as on SIGTERM. After `STOP_TIMEOUT_MS` the process ends in any case. */
  stop(): void {
    if (this.#stopping.signal.aborted) return
    this.#services.coverage.count('projectors stopped')
    this.#stopping.abort()
    const gone = (): void => this.host.kill()
    this.host.after(STOP_TIMEOUT_MS, gone)
    void Promise.allSettled((this.#keepUp?.streams() ?? []).map(stream => stream.stop())).then(gone)
  }

  kill(): void {
    const { coverage } = this.#services
    coverage.count('projectors killed')
    if (this.link.writing() > 0) coverage.count('projectors killed with a bulk request under way')
    this.host.kill()
  }
}

const silent = {
  countProjected: () => undefined,
  countWritten: () => undefined,
  countBalances: () => undefined,
  observePublished: () => undefined,
  observeAge: () => undefined,
  setRecordsBehind: () => undefined,
  setUnowned: () => undefined,
  forgetUnowned: () => undefined,
  forgetRecordsBehind: () => undefined,
}
