/**
 * Symptom: partitions were added to the topic while the projector ran, and it stopped with `index_missing`, as if a
 * position had been lost. An operator would have looked for it in Elasticsearch.
 * Cause: at an assignment the position of each partition was read before the source was identified, and a new partition
 * has none.
 */
import { expect, test } from 'vitest'
import { newId, repRecorded } from '../support/events.ts'
import { caughtUp, expectRefused, startProjector } from '../support/processes.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

test('partitions that are added while the projector runs are refused as another source', async t => {
  const topics = await createTopics(t, { partitions: 1 })
  const prefix = createPrefix(t)
  const projector = await startProjector(t, { topics, prefix })
  await topics.publish([repRecorded({ org_id: newId('org') })])
  await caughtUp(projector)

  await topics.admin.createPartitions({ topicPartitions: [{ topic: topics.events, count: 2 }] })
  // Another member comes and goes: the partitions are assigned anew, the new one among them.
  const member = topics.kafka.consumer({ groupId: `${prefix}-g1` })
  t.onTestFinished(() => member.disconnect())
  await member.subscribe({ topic: topics.events })
  await member.run({ autoCommit: false, eachMessage: async () => undefined })
  await member.disconnect()

  expect(await expectRefused(projector, 'source_changed')).toContain('partitions: expected 1, got 2')
})
