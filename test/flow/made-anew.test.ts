/**
 * A topic is deleted and made anew under its name, with as many partitions. Nothing of it is projected, also where a
 * partition was empty and has nothing to compare, and also by a projector that reads on.
 */
import { expect, test } from 'vitest'
import { controlIndexOf, generationId } from '../../schemas/stored/documents.ts'
import { newId, type Outgoing, repRecorded } from '../support/events.ts'
import { expectRefused, projectorSettings, startProcess, startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix, everythingProjected, store, storedById } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const PARTITIONS = 3
const reps = (partition: number, count: number): Outgoing[] => {
  const org = newId('org')
  return Array.from({ length: count }, () => ({ ...repRecorded({ org_id: org }), partition }))
}

/** Topics with records in the first partition only, all projected. */
const projected = async (t: Scope) => {
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const prefix = createPrefix(t)
  await topics.publish(reps(0, 3))
  const projector = await startProjector(t, { topics, prefix })
  await untilCaughtUp(projector)
  return { topics, prefix, projector, before: await everythingProjected(prefix) }
}

/** The first partition is as long as before; the second one has records for the first time. */
const makeAnew = async (t: Scope, { admin, events, apiKeys }: Topics): Promise<Topics> => {
  await admin.deleteTopics({ topics: [events] })
  await eventually(async () => expect(await admin.listTopics()).not.toContain(events), { every: 5 })
  const anew = await createTopics(t, { partitions: PARTITIONS, named: { events, apiKeys } })
  await anew.publish([...reps(1, 5), ...reps(0, 3)])
  return anew
}

/** As a version stored it that knew no topic ids. Returns the id. */
const forgetTopicId = async (prefix: string, generation: string): Promise<unknown> => {
  const stored = await storedById(controlIndexOf(prefix), generationId(generation))
  const { topic_id, ...body } = (stored as { body: { topic_id: string } }).body
  await store(controlIndexOf(prefix), generationId(generation), { kind: 'generation', body })
  return topic_id
}
const topicIdOf = async (prefix: string, generation: string): Promise<unknown> =>
  ((await storedById(controlIndexOf(prefix), generationId(generation))) as { body: { topic_id?: string } }).body
    .topic_id

test.concurrent('while a projector stands still: it reads on by the topic id, and nothing of the new topic', async t => {
  const { topics, prefix, projector, before } = await projected(t)
  projector.freeze()
  await makeAnew(t, topics)
  projector.thaw()
  await expectRefused(projector, 'source_changed')
  expect(await everythingProjected(prefix)).toEqual(before)
})

test.concurrent('between two starts, of a projection without topic ids: records of all partitions are compared first', async t => {
  const { topics, prefix, projector, before } = await projected(t)
  await projector.stop()
  for (const generation of ['g1', 'api-keys']) expect(await forgetTopicId(prefix, generation)).toBeTruthy()
  await makeAnew(t, topics)
  for (let start = 0; start < 2; start++) {
    const again = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }))
    await expectRefused(again, 'source_changed')
    expect(await everythingProjected(prefix)).toEqual(before)
  }
  expect(await topicIdOf(prefix, 'g1')).toBeUndefined()
})

test.concurrent('a projection without topic ids gets them at the next start, if its records are there', async t => {
  const { topics, prefix, projector } = await projected(t)
  await projector.stop()
  const ids = [await forgetTopicId(prefix, 'g1'), await forgetTopicId(prefix, 'api-keys')]
  const again = await startProjector(t, { topics, prefix })
  await eventually(async () =>
    expect([await topicIdOf(prefix, 'g1'), await topicIdOf(prefix, 'api-keys')]).toEqual(ids),
  )
  await topics.publish(reps(1, 2))
  await untilCaughtUp(again)
})
