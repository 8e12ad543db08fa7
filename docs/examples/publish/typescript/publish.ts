/** Publishes the events of standard input with kafkajs, and prints the receipts of all its records. */
import { randomUUID } from 'node:crypto'
import kafkajs from 'kafkajs'
import { sealTexts } from './seal.js'

const { KAFKA_BROKERS = '', KAFKA_EVENTS_TOPIC, ADMIN = 'http://127.0.0.1:9465' } = process.env
const TOPIC = process.env.TOPIC || KAFKA_EVENTS_TOPIC || 'commission.events'
function fail(reason: string): never {
  console.error(reason)
  process.exit(1)
}

/** @param keyId the seal key of the person */
function sealEvent(type: string, data: Parameters<typeof sealTexts>[1], keyId: string): void {
  try {
    sealTexts(type, data, keyId)
  } catch (error) {
    fail(`line ${number} cannot be sealed with ${keyId}: ${(error as Error).message}: nothing was sent`)
  }
}

function* linesOf(input: Buffer): Generator<Buffer> {
  for (let start = 0, end = 0; start < input.length; start = end + 1) {
    end = input.indexOf('\n', start)
    if (end === -1) end = input.length
    yield input.subarray(start, end)
  }
}

// JSON.parse keeps only the last one of two values with the same key. So the keys are counted in the text, too.
const keysInText = (json: string): number => json.match(/"[^"\\]*(?:\\.[^"\\]*)*"\s*:/g)?.length ?? 0
function keysIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum, each) => sum + keysIn(each), own)
}

// JSON may have half of a surrogate pair. A seal would make another character of it.
const HALF = /\p{Surrogate}/u
const withoutHalves = (key: string, value: unknown): unknown => {
  if (HALF.test(key) || (typeof value === 'string' && HALF.test(value))) throw new Error()
  return value
}

const chunks: Buffer[] = []
for await (const chunk of process.stdin) chunks.push(chunk)
// Without `fatal`, bytes that are not UTF-8 would become other characters.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const messages: kafkajs.Message[] = []
let number = 0
for (const line of linesOf(Buffer.concat(chunks))) {
  number += 1
  try {
    const text = utf8.decode(line)
    if (text.trim() === '') continue
    const event = JSON.parse(text, withoutHalves)
    const { type, data, seal } = event
    if (typeof type !== 'string' || typeof data.org_id !== 'string' || keysInText(text) !== keysIn(event))
      throw new Error()
    if (typeof seal === 'string') sealEvent(type, data, seal)
    const headers = { ce_specversion: '1.0', ce_id: randomUUID(), ce_source: '/example', ce_type: type }
    // The record key is the organization: all its events are in one partition, in order.
    messages.push({ key: data.org_id, headers, value: JSON.stringify(data) })
  } catch {
    fail(`line ${number} is not {"type": ..., "data": {"org_id": ...}} in JSON: nothing was sent`)
  }
}
if (messages.length === 0) fail('no events on standard input: nothing was sent')

const kafka = new kafkajs.Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: kafkajs.logLevel.NOTHING })
const choose = kafkajs.Partitioners.DefaultPartitioner()
// kafkajs returns the first offset of each batch only. The partitions of the messages give the last one.
const partitions = new Map<kafkajs.Message, number>()
const createPartitioner: kafkajs.ICustomPartitioner = () => given => {
  const partition = choose(given)
  partitions.set(given.message, partition)
  return partition
}
// A mistyped topic must fail: a topic that the broker creates for it deletes records after a week.
const allowAutoTopicCreation = false
const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner, allowAutoTopicCreation })

// Kafka applies `max.message.bytes` of the topic (9 MiB) to all messages of a partition that are sent together.
function* batchesOf(all: readonly kafkajs.Message[]): Generator<kafkajs.Message[]> {
  let batch: kafkajs.Message[] = []
  let bytes = 0
  for (const message of all) {
    const size = Buffer.byteLength(message.value ?? '')
    if (batch.length > 0 && (bytes + size > 1024 * 1024 || batch.length === 500)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(message)
    bytes += size
  }
  yield batch
}

const runs = new Map<number, { first: number; last: number }>()
try {
  await producer.connect()
  for (const sent of batchesOf(messages)) {
    for (const { partition, baseOffset } of await producer.send({ topic: TOPIC, messages: sent, acks: -1 })) {
      const count = sent.filter(message => partitions.get(message) === partition).length
      const first = runs.get(partition)?.first ?? Number(baseOffset)
      runs.set(partition, { first, last: Number(baseOffset) + count - 1 })
    }
  }
  await producer.disconnect()
} catch (error) {
  fail(`not all events were sent to ${KAFKA_BROKERS}: ${(error as Error).message}`)
}

for (const [partition, { first, last }] of runs) {
  // A run has at most 10,000 offsets.
  for (let from = first; from <= last; from += 10_000) {
    const to = Math.min(last, from + 9_999)
    const url = `${ADMIN}/receipts/${TOPIC}/${partition}?from=${from}&to=${to}&wait=30`
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(60_000) })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${answer.status} ${text}`)
      const { published, parked, not_yet } = JSON.parse(text)
      console.log(text)
      if (published === to - from + 1) continue
      console.error(`partition ${partition}: ${published} published, ${parked} parked, ${not_yet} not yet published`)
      process.exitCode = 1
    } catch (error) {
      const { message, cause } = error as Error
      fail(`all events were sent, but the receipt could not be read: ${url}: ${(cause as Error)?.message || message}`)
    }
  }
}
