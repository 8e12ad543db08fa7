/**
 * A plain pipe, as most would write it: every batch of a topic into an index, by the official client's bulk helper, under
 * the ids that the events have. It decides and checks nothing.
 */
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'

const { KAFKA_BROKERS = '', KAFKA_TOPIC = '', KAFKA_GROUP_ID = '', ELASTICSEARCH_URL = '', INDEX = '' } = process.env

const client = new Client({ node: ELASTICSEARCH_URL })
const kafka = new kafkajs.Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: kafkajs.logLevel.NOTHING })
const consumer = kafka.consumer({ groupId: KAFKA_GROUP_ID })

const stop = async (): Promise<void> => {
  await consumer.disconnect()
  await client.close()
}
process.on('SIGTERM', () => void stop())

await consumer.connect()
await consumer.subscribe({ topic: KAFKA_TOPIC, fromBeginning: true })
consumer.on(consumer.events.GROUP_JOIN, () => console.log(JSON.stringify({ msg: 'ready', time: Date.now() })))
await consumer.run({
  eachBatch: async ({ batch }) => {
    await client.helpers.bulk({
      datasource: batch.messages.map(({ value }) => JSON.parse(String(value)) as { id: string }),
      onDocument: ({ id }) => ({ index: { _index: INDEX, _id: id } }),
    })
  },
})
