/** Topics of the bench, and a publisher with the keys and partitions of a calculation system. */
import { createHash, randomBytes } from 'node:crypto'
import kafkajs, { type Admin, type Kafka, type Message } from 'kafkajs'
import type { AnyEvent, ApiKeyEvent, PayoutCalculatedData } from '../../schemas/events.ts'
import type { Bench } from '../rig/bench.ts'
import type { Dataset } from '../rig/dataset.ts'
import { runScript } from '../rig/process.ts'
import { showProgress } from '../rig/progress.ts'

export type Topics = {
  /** Environment of the processes. */
  readonly settings: {
    readonly KAFKA_BROKERS: string
    readonly KAFKA_EVENTS_TOPIC: string
    readonly KAFKA_API_KEYS_TOPIC: string
  }
  /** Publishes in one request. */
  readonly publish: (event: AnyEvent, ...more: AnyEvent[]) => Promise<void>
  /** Publishes in requests of many events, and shows progress. */
  readonly publishAll: (events: Iterable<AnyEvent>, total: number, what: string) => Promise<void>
  /** Returns the ends of the events topic, by partition. */
  readonly ends: () => Promise<number[]>
  /** Deletes consumer groups whose members have ended. */
  readonly forgetGroups: (groups: readonly string[]) => Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const PARTITIONS = 6
/** Events of one request to Kafka: some 3 MB. */
const EVENTS_PER_REQUEST = 1_000

/** Creates the topics with the project's own command, as an operator does. */
export const createTopics = async ({ services, say, signal }: Bench, partitions = PARTITIONS): Promise<Topics> => {
  await using stack = new AsyncDisposableStack()
  const name = `bench-${randomBytes(4).toString('hex')}`
  const settings = {
    KAFKA_BROKERS: services.kafkaBrokers,
    KAFKA_EVENTS_TOPIC: `${name}.events`,
    KAFKA_API_KEYS_TOPIC: `${name}.api-keys`,
  }
  const kafka = new kafkajs.Kafka({
    clientId: 'commission-bench',
    brokers: services.kafkaBrokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
  })
  const admin = await connectedAdmin(kafka, stack)
  await runScript('projector/topics.ts', { ...settings, KAFKA_EVENTS_PARTITIONS: String(partitions) })
  const topics = [settings.KAFKA_EVENTS_TOPIC, settings.KAFKA_API_KEYS_TOPIC]
  stack.defer(() => admin.deleteTopics({ topics, timeout: 5_000 }).catch(() => undefined))

  const producer = kafka.producer({
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
  })
  await producer.connect()
  stack.defer(() => producer.disconnect().catch(() => undefined))

  const send = async (topic: string, messages: Message[]): Promise<void> => {
    await producer.send({ topic, messages, acks: -1 })
  }
  const topicOf = ({ type }: AnyEvent): string =>
    type.startsWith('commission.api_key.') ? settings.KAFKA_API_KEYS_TOPIC : settings.KAFKA_EVENTS_TOPIC

  const kept = stack.move()
  return {
    settings,
    publish: (event, ...more) => send(topicOf(event), [event, ...more].map(messageOf)),
    publishAll: async (events, total, what) => {
      const progress = showProgress(say, what, total)
      let waiting: AnyEvent[] = []
      let done = 0
      const flush = async (): Promise<void> => {
        signal.throwIfAborted()
        const [first] = waiting
        if (first !== undefined) await send(topicOf(first), waiting.map(messageOf))
        done += waiting.length
        waiting = []
        progress(done)
      }
      for (const event of events) {
        waiting.push(event)
        if (waiting.length === EVENTS_PER_REQUEST) await flush()
      }
      await flush()
    },
    ends: async () => {
      const offsets = await admin.fetchTopicOffsets(settings.KAFKA_EVENTS_TOPIC)
      return offsets.toSorted((a, b) => a.partition - b.partition).map(({ high }) => Number(high))
    },
    forgetGroups: async groups => {
      // A failure leaves only some empty groups, on a broker that usually ends soon.
      await admin.deleteGroups([...groups]).catch(() => undefined)
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Publishes a dataset of this many payouts, reps and periods first. @returns the number of reps and periods */
export const publishDataset = async (
  { publishAll }: Pick<Topics, 'publishAll'>,
  { peopleAndPeriods, payouts }: Dataset,
  count: number,
  what = 'payouts',
): Promise<number> => {
  const others = [...peopleAndPeriods()]
  await publishAll(others, others.length, 'publishing reps and periods')
  if (count > 0) await publishAll(payouts(), count, `publishing ${what}`)
  return others.length
}

const connectedAdmin = async (kafka: Kafka, stack: AsyncDisposableStack): Promise<Admin> => {
  const admin = kafka.admin()
  await admin.connect()
  stack.defer(() => admin.disconnect().catch(() => undefined))
  return admin
}

const messageOf = ({ type, data }: AnyEvent): Message => ({
  key: data.org_id,
  value: JSON.stringify(data),
  headers: {
    ce_specversion: '1.0',
    ce_id: `${data.org_id}/${data.id}`,
    ce_type: type,
    ce_source: 'urn:commission:bench',
    'content-type': 'application/json',
  },
})

export const publishPayout = (topics: Topics, data: PayoutCalculatedData): Promise<void> =>
  topics.publish({ type: 'commission.payout.calculated.v1', data })

/** A key of an organization: its text, which a client sends, and the event that makes it valid. */
export const createBenchKey = (org: string): { readonly text: string; readonly event: ApiKeyEvent } => {
  const text = `bench_${randomBytes(24).toString('hex')}`
  const data = {
    org_id: org,
    id: `key_${randomBytes(8).toString('hex')}`,
    name: 'bench',
    secret_sha256: createHash('sha256').update(text).digest('hex'),
    last4: text.slice(-4),
    permissions: ['read' as const],
    created_at: '2026-02-01T08:30:00Z',
  }
  return { text, event: { type: 'commission.api_key.created.v1', data } }
}
