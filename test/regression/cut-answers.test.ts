/**
 * Symptom: after a cut response of Kafka a projector ended with a range error in kafkajs, or waited for ever.
 * Cause: kafkajs puts the rest of that response before the bytes of the next connection, see
 * core/log/kafka/patch-connections.ts.
 */
import { expect, test } from 'vitest'
import { keyCreated, newId } from '../support/events.ts'
import { kafkaThrough } from '../support/kafka-through.ts'
import { startProxy } from '../support/proxy.ts'
import { createTopics } from '../support/topics.ts'

test.concurrent('a new connection starts with an empty buffer, wherever the last response was cut', async t => {
  const topics = await createTopics(t)
  const org = newId('org')
  await topics.publish([keyCreated({ org_id: org }), keyCreated({ org_id: org })])
  const proxy = await startProxy(t, topics.brokers)
  const admin = kafkaThrough(proxy, 'cut-answers').admin()
  await admin.connect()
  t.onTestFinished(() => admin.disconnect())
  const ask = async () =>
    (await admin.fetchTopicOffsets(topics.apiKeys)).reduce((sum, { high }) => sum + Number(high), 0)

  expect(await ask()).toBe(2)
  for (const bytes of [0, 1, 3, 4, 5, 7, 8, 9, 20, 50, 90]) {
    await proxy.inject({ kind: 'cut-answer', bytes }, () => true, 1)
    // kafkajs retries some requests on its own.
    expect([2, 'Closed connection']).toContain(await ask().catch((error: Error) => error.message))
    expect(await ask(), `after ${bytes} bytes`).toBe(2)
    expect(proxy.hits()).toBe(1)
  }
})
