/** The inputs of a command, after its options and settings are read. */
import type { Kafka } from 'kafkajs'
import type { LogCluster } from '../core/log/index.ts'
import type { kafkaSettings, Read } from '../core/runtime/index.ts'
import type { Send } from '../core/store/index.ts'
import type { Stream } from '../schemas/events.ts'

/** Writes to the output. Commands with a long result await it before they read on. */
export type Out<Text> = (text: Text) => Promise<void> | undefined

export type CommandContext = {
  /** Standard output: the result. Content of records and the text of a key go nowhere else. */
  readonly out: (text: string | Buffer) => void
  /** Standard error: progress and errors. */
  readonly say: (line: string) => void
  readonly send: Send
  readonly prefix: string
  readonly sleep: (milliseconds: number) => Promise<void>
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds of a clock that nobody sets: for waits. */
  readonly elapsed: () => number
}
export type KafkaContext = CommandContext & {
  readonly kafka: Kafka
  readonly topics: Readonly<Record<Stream, string>>
}
/** Also asks the leaders of a topic. */
export type ClusterContext = KafkaContext & { readonly openCluster: (topic: string) => Promise<LogCluster> }

export const topicsOf = (settings: Read<typeof kafkaSettings>): KafkaContext['topics'] => ({
  events: settings.KAFKA_EVENTS_TOPIC,
  'api-keys': settings.KAFKA_API_KEYS_TOPIC,
})
