/**
 * Symptom: a projector that was told to stop while its Kafka group was waiting for a member that had been killed ended
 * with exit code 1 and `not stopped in time`, although everything it had read was published.
 * Cause: the Kafka client cannot leave a group that it is just joining again, and its leaving was waited for without
 * end.
 */
import { expect, test } from 'vitest'
import { HEARTBEAT_INTERVAL_MS } from '../../projector/limits.ts'
import { caughtUp, startProjector } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

test('a projector stops cleanly while its group waits for a member that was killed', async t => {
  const topics = await createTopics(t)
  const prefix = createPrefix(t)
  const staying = await startProjector(t, { topics, prefix })
  const killed = await startProjector(t, { topics, prefix })
  await caughtUp(killed)
  const members = async () => (await topics.admin.describeGroups([`${prefix}-g1`])).groups[0]
  // One that dies while it joins is not waited for.
  await eventually(async () => expect(await members()).toMatchObject({ state: 'Stable', members: [{}, {}] }))
  await killed.kill()
  // A third member comes, and all of the group are asked to join anew; the dead one is waited for.
  const third = topics.kafka.consumer({ groupId: `${prefix}-g1` })
  t.onTestFinished(() => third.disconnect())
  await third.subscribe({ topic: topics.events })
  const joining = third.run({ autoCommit: false, eachMessage: async () => undefined })
  await eventually(async () => expect((await members())?.state).toBe('PreparingRebalance'))
  // Nobody can see from outside that a member has heard of it: that is with its next heartbeat.
  const heard = performance.now() + HEARTBEAT_INTERVAL_MS + 1_000
  await eventually(() => expect(performance.now()).toBeGreaterThan(heard))

  expect((await members())?.state).toBe('PreparingRebalance')
  const began = performance.now()
  expect(await staying.stop(), staying.log()).toEqual({ code: 0, signal: null })
  expect(performance.now() - began).toBeLessThan(10_000)
  await joining
})
