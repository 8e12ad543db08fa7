/** Publishes the events of standard input with kafkajs, and prints the receipt of the last one. */
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import kafkajs from 'kafkajs'

const { KAFKA_BROKERS = '', TOPIC = '', ADMIN = '' } = process.env
const kafka = new kafkajs.Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: kafkajs.logLevel.ERROR })
const producer = kafka.producer({
  idempotent: true,
  maxInFlightRequests: 1,
  createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
})
await producer.connect()

const messages: kafkajs.Message[] = []
for await (const line of createInterface({ input: process.stdin })) {
  const { type, data } = JSON.parse(line)
  messages.push({
    // The record key is the organization: all its events are in one partition, in order.
    key: data.org_id,
    headers: { ce_specversion: '1.0', ce_id: randomUUID(), ce_source: '/example', ce_type: type },
    value: JSON.stringify(data),
  })
}
let last = ''
for (let from = 0; from < messages.length; from += 500) {
  const sent = messages.slice(from, from + 500)
  for (const { partition, baseOffset } of await producer.send({ topic: TOPIC, messages: sent, acks: -1 })) {
    last = `${partition}/${baseOffset}`
  }
}
await producer.disconnect()
const receipt = await fetch(`${ADMIN}/receipts/${TOPIC}/${last}?wait=30`)
console.log(await receipt.text())
