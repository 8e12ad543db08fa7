/** Publishes the events of standard input with kafkajs, and prints the receipts of all its records. */
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
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

const messages: kafkajs.Message[] = []
let number = 0
for await (const line of createInterface({ input: process.stdin })) {
  number += 1
  if (line.trim() === '') continue
  try {
    const { type, data, seal } = JSON.parse(line)
    if (typeof type !== 'string' || typeof data.org_id !== 'string') throw new Error()
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
const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner })
const runs = new Map<number, { first: number; last: number }>()
try {
  await producer.connect()
  for (let start = 0; start < messages.length; start += 500) {
    const sent = messages.slice(start, start + 500)
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
