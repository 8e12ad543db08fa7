/**
 * A projector process: the real `prepare` and the real streams, wired as `projector/projector.ts` wires them, on a simulated
 * Kafka and Elasticsearch. Not simulated: the admin port, the report, and how a process ends after what stops it.
 */
import { createHealth } from '../../projector/health.ts'
import { STOP_TIMEOUT_MS } from '../../projector/limits.ts'
import { prepare, type Settings } from '../../projector/projector.ts'
import { type RunningStream, startStream } from '../../projector/stream.ts'
import { projectorSettings, readSettings } from '../../schemas/settings.ts'
import type { Broker } from './broker.ts'
import { type Clock, Host } from './clock.ts'
import type { Consumer } from './consumer.ts'
import type { Coverage } from './coverage.ts'
import type { Engine } from './elasticsearch.ts'
import type { Faults } from './faults.ts'
import { createKafka } from './kafka.ts'
import { createLink, type Link, type Watcher } from './link.ts'
import { PREFIX } from './promises.ts'

export type Services = {
  readonly clock: Clock
  readonly broker: Broker
  readonly engine: Engine
  readonly faults: Faults
  readonly coverage: Coverage
  readonly watcher: Watcher
}

const settings: Settings = readSettings(projectorSettings, {
  KAFKA_BROKERS: 'localhost:9092',
  ELASTICSEARCH_URL: 'http://localhost:9200',
  ELASTICSEARCH_INDEX_PREFIX: PREFIX,
  ELASTICSEARCH_SHARDS: '2',
})

export class Projector {
  readonly host: Host
  readonly link: Link
  readonly consumers: readonly Consumer[]
  readonly #services: Services
  readonly #kafka: ReturnType<typeof createKafka>['kafka']
  readonly #stopping = new AbortController()
  readonly #streams: RunningStream[] = []

  /** @param onStopped told of what stops it, as nothing in a schedule should */
  constructor(name: string, services: Services, onStopped: (error: unknown) => void) {
    const { clock, broker, engine, faults, coverage, watcher } = services
    this.#services = services
    this.host = new Host(clock, name)
    this.link = createLink(this.host, engine, faults, coverage, watcher)
    const { kafka, consumers } = createKafka(this.host, broker, faults, coverage)
    this.#kafka = kafka
    this.consumers = consumers
    coverage.count('projectors started')
    const fail = (error: unknown): void => {
      if (!this.#stopping.signal.aborted && !this.host.isDead) onStopped(error)
    }
    this.#run(fail).catch(fail)
  }

  async #run(fail: (error: unknown) => void): Promise<void> {
    const { clock, faults } = this.#services
    const { signal } = this.#stopping
    const log = { warn: () => undefined, info: () => undefined }
    const health = createHealth(log, clock.now)
    const patience = { sleep: this.host.sleep, random: faults.random.next }
    const kafkaHeard = () => this.#kafka
    const shared = { kafkaHeard, elasticsearch: this.link, patience, now: clock.now }
    const context = { ...shared, kafka: this.#kafka, signal, log } as unknown as Parameters<typeof prepare>[3]
    const look = await prepare(settings, this.#kafka.admin(), health, context)
    for (const options of await look()) {
      if (signal.aborted) return
      this.#streams.push(
        await startStream(options, { ...shared, admin: this.#kafka.admin(), health, metrics: silent, fail }),
      )
    }
  }

  /** Ends as on SIGTERM: what was read is published, the group is left; after a while the process is gone in any case. */
  stop(): void {
    if (this.#stopping.signal.aborted) return
    this.#services.coverage.count('projectors stopped')
    this.#stopping.abort()
    const gone = (): void => this.host.kill()
    this.host.after(STOP_TIMEOUT_MS, gone)
    void Promise.all(this.#streams.map(stream => stream.stop())).then(gone)
  }

  kill(): void {
    const { coverage } = this.#services
    coverage.count('projectors killed')
    if (this.link.writing() > 0) coverage.count('projectors killed with a bulk request under way')
    this.host.kill()
  }
}

const silent = { projected: () => undefined, written: () => undefined, published: () => undefined }
