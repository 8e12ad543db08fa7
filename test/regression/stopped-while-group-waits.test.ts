/**
 * Symptom: a projector was stopped while its Kafka group waited for a killed member. It ended with exit code 1 and `not
 * stopped in time`, although everything it had read was published.
 * Cause: kafkajs cannot leave a group while it joins again, and the projector waited for that without a limit.
 */
import { expect, test } from 'vitest'
import { HEARTBEAT_INTERVAL_MS } from '../../core/log/limits.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

test('a projector stops cleanly while its group waits for a killed member', async t => {
  const topics = await createTopics(t)
  const prefix = createPrefix(t)
  const staying = await startProjector(t, { topics, prefix })
  const members = async () => (await topics.admin.describeGroups([`${prefix}-g1`])).groups[0]
  const waits = async () => (await members())?.state === 'PreparingRebalance'
  /** Kills a member while the group is at rest, and lets a third one join: the group waits for the dead one. */
  const killOne = async () => {
    const killed = await startProjector(t, { topics, prefix })
    await untilCaughtUp(killed)
    // The group does not wait for a member that dies while it joins.
    await eventually(async () => expect(await members()).toMatchObject({ state: 'Stable', members: [{}, {}] }))
    await killed.kill()
    const third = topics.kafka.consumer({ groupId: `${prefix}-g1` })
    t.onTestFinished(() => third.disconnect())
    await third.subscribe({ topic: topics.events })
    let hasJoined = false
    const joining = third.run({ autoCommit: false, eachMessage: async () => undefined }).then(() => (hasJoined = true))
    await eventually(async () => expect(hasJoined || (await waits())).toBe(true))
    // A member hears of the rebalance at its next heartbeat. That cannot be seen from outside.
    const heard = performance.now() + HEARTBEAT_INTERVAL_MS + 1_000
    await eventually(() => expect(hasJoined || performance.now() > heard).toBe(true))
    return { third, joining }
  }
  let { third, joining } = await killOne()
  // On a busy machine, the session of the dead member may have ended meanwhile.
  while (!(await waits())) {
    await joining
    await third.disconnect()
    ;({ third, joining } = await killOne())
  }

  const began = performance.now()
  expect(await staying.stop(), staying.log()).toEqual({ code: 0, signal: null })
  // A forced stop, after 9 s, has another code. The end of the process itself takes long on a busy machine.
  expect(performance.now() - began).toBeLessThan(30_000)
  await joining
})
