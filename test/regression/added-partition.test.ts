/**
 * Symptom: partitions were added to the topic while the projector ran. It stopped with `index_missing`, as if a
 * position had been lost. An operator would have searched for it in Elasticsearch.
 * Cause: an assignment read positions before it identified the source, and a new partition has no position.
 */
import { expect, test } from 'vitest'
import { newId, repRecorded } from '../support/events.ts'
import { expectRefused } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'

test('partitions added while the projector runs are refused as another source', async t => {
  const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: newId('org') })], {
    partitions: 1,
  })

  await topics.admin.createPartitions({ topicPartitions: [{ topic: topics.events, count: 2 }] })
  // A member joins and leaves, so that all partitions, including the new one, are assigned again.
  const member = topics.kafka.consumer({ groupId: `${prefix}-g1` })
  t.onTestFinished(() => member.disconnect())
  await member.subscribe({ topic: topics.events })
  await member.run({ autoCommit: false, eachMessage: async () => undefined })
  await member.disconnect()

  expect(await expectRefused(projector, 'source_changed')).toContain('partitions: expected 1, got 2')
})
