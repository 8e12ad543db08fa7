/**
 * kafkajs drops which partition an error is about: one partition without a leader, or whose leader does not tell its
 * end, fails the answer for all partitions of the topic. `namePartitionsOfErrors` adds the partitions to the error, so
 * that an operator learns which ones hold everything back.
 *
 * In: answers to Metadata and ListOffsets. Out: the same errors, with the partitions that have one.
 */
import kafkajs from 'kafkajs'
import { loadKafkajs } from './load-kafkajs.ts'
import type { ProtocolRequest } from './protocol-request.ts'

type Metadata = {
  readonly topicMetadata: readonly {
    readonly topic: string
    readonly partitionMetadata: readonly { readonly partitionId: number; readonly partitionErrorCode: number }[]
  }[]
}
type Offsets = {
  readonly responses: readonly {
    readonly topic: string
    readonly partitions: readonly { readonly partition: number; readonly errorCode: number }[]
  }[]
}
type Definitions<Answer> = {
  protocol: (asked: { readonly version: number }) => (given: object) => ProtocolRequest<Answer>
}
type Failed = { readonly topic: string; readonly partitions: readonly number[] }

/** Partitions that a text names for each topic. */
const NAMED = 5

let patched = false

/** Must be called before the first connection, and after other patches of these answers. Idempotent. */
export const namePartitionsOfErrors = (): void => {
  if (patched) return
  patched = true
  nameIn<Metadata>('protocol/requests/metadata', ({ topicMetadata }) =>
    topicMetadata.map(({ topic, partitionMetadata }) => ({
      topic,
      partitions: partitionMetadata.flatMap(one => (one.partitionErrorCode === 0 ? [] : [one.partitionId])),
    })),
  )
  nameIn<Offsets>('protocol/requests/listOffsets', ({ responses }) =>
    responses.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.flatMap(one => (one.errorCode === 0 ? [] : [one.partition])),
    })),
  )
}

const nameIn = <Answer>(requests: string, failedIn: (answer: Answer) => readonly Failed[]): void => {
  const definitions = loadKafkajs<Definitions<Answer>>(requests)
  const { protocol } = definitions
  definitions.protocol = asked => given => {
    const made = protocol(asked)(given)
    const parse = async (answer: Answer): Promise<Answer> => {
      try {
        return await made.response.parse(answer)
      } catch (error) {
        const failed = failedIn(answer).filter(({ partitions }) => partitions.length > 0)
        throw error instanceof Error && failed.length > 0 ? Object.assign(error, { failed }) : error
      }
    }
    return { ...made, response: { ...made.response, parse } }
  }
}

/** Returns the partitions that an error is about, and its type, as a text; undefined if it is about none. */
export const partitionsOf = (error: unknown): string | undefined => {
  if (!(error instanceof kafkajs.KafkaJSError)) return undefined
  if (!('failed' in error)) return partitionsOf(error.cause)
  const failed = error.failed as readonly Failed[]
  const named = failed.map(({ topic, partitions }) => {
    const more = partitions.length > NAMED ? ` and ${partitions.length - NAMED} more` : ''
    return `${topic} ${partitions.slice(0, NAMED).join(', ')}${more}`
  })
  return `${named.join('; ')} (${error instanceof kafkajs.KafkaJSProtocolError ? error.type : error.name})`
}
