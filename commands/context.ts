/** What a command is given, once its options and settings are read. */
import type { Kafka } from 'kafkajs'
import type { Elasticsearch } from '../projector/elasticsearch/client.ts'
import type { Stream } from '../schemas/events.ts'

export type CommandContext = {
  /** What was asked for. Nothing of a record, nor the text of a key, goes anywhere else. */
  readonly out: (text: string | Buffer) => void
  /** How it goes, and what went wrong. */
  readonly say: (line: string) => void
  readonly send: Elasticsearch['send']
  readonly prefix: string
  readonly sleep: (milliseconds: number) => Promise<void>
  /** Milliseconds since 1970. */
  readonly now: () => number
}
export type KafkaContext = CommandContext & {
  readonly kafka: Kafka
  readonly topics: Readonly<Record<Stream, string>>
}
