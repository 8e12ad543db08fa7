/**
 * Symptom: a projector ended with `consumer_stopped` (KafkaJSGroupCoordinatorNotFound) while Kafka was away.
 * Cause: kafkajs restarts its consumer after a lost connection. If no broker then knows the coordinator of the group,
 * kafkajs treats the error as fatal, see core/log/kafka/patch-retries.ts. Found by the rig with seed 318175561.
 */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { consume } from '../../core/log/follow/consume.ts'
import { kafkaThrough } from '../support/kafka-through.ts'
import { startProxy } from '../support/proxy.ts'
import { eventually } from '../support/scope.ts'
import { createTopics } from '../support/topics.ts'

/** Whether a request is FindCoordinator: after four bytes of length it has the API key 10 in two bytes. */
const findsCoordinator = (asked: string): boolean => asked.charCodeAt(4) === 0 && asked.charCodeAt(5) === 10

test.concurrent('a consumer that cannot find its coordinator retries until it does', async t => {
  const topics = await createTopics(t)
  const proxy = await startProxy(t, topics.brokers)
  const kafka = kafkaThrough(proxy, 'coordinator')
  let assignments = 0
  const troubles: string[] = []
  const stopped: Error[] = []
  const group = `coordinator-${randomBytes(6).toString('hex')}`
  const consumption = await consume(
    kafka,
    { topic: topics.events, partitions: topics.partitions },
    group,
    { prefix: 'test', elasticsearch: null },
    {
      onAssigned: () => void assignments++,
      onBatch: () => undefined,
      sleep: async () => undefined,
      onRebalancing: () => undefined,
      onUndecodable: () => undefined,
      onUnpacked: () => undefined,
      onTrouble: name => void troubles.push(name),
      onStopped: error => void stopped.push(error),
    },
  )
  t.onTestFinished(() => consumption.stop())
  await eventually(() => expect(assignments).toBeGreaterThan(0))

  await proxy.inject({ kind: 'away' })
  await eventually(() => expect(troubles).not.toEqual([]))
  await proxy.inject({ kind: 'reset' }, findsCoordinator)
  await eventually(() => expect(proxy.hits() > 5 || stopped.length > 0).toBe(true))
  expect(stopped).toEqual([])
  // On a busy machine the session of a consumer may end, and it is assigned again.
  const before = assignments
  await proxy.heal()
  await eventually(() => expect(assignments).toBeGreaterThan(before))
  expect(stopped).toEqual([])
})
