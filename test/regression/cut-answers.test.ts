/**
 * Symptom: a projector ended with a range error from inside the Kafka client, or asked on and was never answered again,
 * when a connection to Kafka had ended in the middle of an answer.
 * Cause: the client puts what it had of that answer before what it reads over the next connection, see
 * projector/kafka/patch-connections.ts.
 */
import { expect, test } from 'vitest'
import { keyCreated, newId } from '../support/events.ts'
import { kafkaThrough } from '../support/kafka-through.ts'
import { startProxy } from '../support/proxy.ts'
import { createTopics } from '../support/topics.ts'

test.concurrent('whichever part of an answer was still read, the next connection begins with nothing', async t => {
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
    await proxy.suffer({ kind: 'cut-answer', bytes }, () => true, 1)
    // Some of what is asked the client asks again by itself.
    expect([2, 'Closed connection']).toContain(await ask().catch((error: Error) => error.message))
    expect(await ask(), `after ${bytes} bytes`).toBe(2)
    expect(proxy.struck()).toBe(1)
  }
})
