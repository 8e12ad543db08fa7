/** Publishes one batch to a real Kafka, compressed as a test wants it; also batches that no projector reads. */
import kafkajs, { type CompressionTypes } from 'kafkajs'
import { BATCH_RECORD_BYTES_MAX } from '../../schemas/limits.ts'
import { type Compress, read } from './compressed.ts'
import { type Outgoing, repRecorded } from './events.ts'
import { place, type Topics, toMessage } from './topics.ts'

/** Publishes one batch, compressed as given. Returns the offset of its first record. */
export const publishBatch = async (
  topics: Topics,
  records: readonly Outgoing[],
  codec: number,
  compress: Compress,
): Promise<number> => {
  kafkajs.CompressionCodecs[codec as CompressionTypes.GZIP] = () => ({
    compress: async ({ buffer }: { buffer: Buffer }) => compress(buffer),
    decompress: async (bytes: Buffer) => bytes,
  })
  const producer = topics.kafka.producer({ retry: { retries: 0 } })
  await producer.connect()
  try {
    const messages = records.map(record => toMessage(place(record, topics.partitions)))
    const [sent] = await producer.send({ topic: topics.events, messages, compression: codec })
    return Number(sent?.baseOffset)
  } finally {
    await producer.disconnect()
  }
}

/**
 * Publishes a batch that a broker takes and that nobody reads: of these events and a record that is too large, which
 * compresses to a few kilobytes. Returns its first and last offset.
 */
export const publishUnreadable = async (
  topics: Topics,
  events: readonly Outgoing[],
  org_id: string,
  form: 'zstd' | 'gzip' | 'lz4' = 'zstd',
): Promise<readonly [first: number, last: number]> => {
  const { codec, compress } = read[form] ?? {}
  if (codec === undefined || compress === undefined) throw new Error('no such form')
  const large = { ...repRecorded({ org_id }), value: '\0'.repeat(BATCH_RECORD_BYTES_MAX + 1) }
  const first = await publishBatch(topics, [...events, large], codec, compress)
  return [first, first + events.length]
}
