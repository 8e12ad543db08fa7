/** Two installations in one consumer group: the second is refused, and a partition that the first lost is reported. */
import { expect, test } from 'vitest'
import { assignerOf } from '../../core/log/follow/group.ts'
import { newId, repRecorded } from '../support/events.ts'
import { joinGroup } from '../support/group-member.ts'
import {
  expectRefused,
  type Projector,
  projectorSettings,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const setUp = async (t: Scope) => {
  const topics = await createTopics(t, { partitions: 2 })
  await topics.publish([repRecorded({ org_id: newId('org') })])
  return { topics, prefix: createPrefix(t), groupId: newId('group') }
}

const readiness = async (projector: Projector) => JSON.parse((await projector.ask('/readyz')).text)

test.concurrent('a projector with another prefix is refused at its start, and the running one continues', async t => {
  const { topics, prefix, groupId } = await setUp(t)
  const first = await startProjector(t, { topics, prefix, groupId })
  await untilCaughtUp(first)
  const other = { topics, prefix: createPrefix(t), groupId }
  const second = startProcess(t, 'projector/main.ts', projectorSettings(other))
  const said = await expectRefused(second, 'group_shared')
  expect(said).toContain('give each a KAFKA_GROUP_ID of its own')
  expect(second.lines()).toContainEqual(expect.objectContaining({ their_prefix: prefix, our_prefix: other.prefix }))

  await topics.publish([repRecorded({ org_id: newId('org') })])
  await untilCaughtUp(first)
  // Another projector with the same prefix may join.
  await untilCaughtUp(await startProjector(t, { topics, prefix, groupId }))
  await eventually(async () => expect(await readiness(first)).toEqual({ ready: true, reasons: {} }))
})

test.concurrent('a partition that no projector of the prefix owns is reported by /readyz and a metric until one owns it again', async t => {
  const { topics, prefix, groupId } = await setUp(t)
  const projector = await startProjector(t, { topics, prefix, groupId })
  await untilCaughtUp(projector)
  const intruder = await joinGroup(topics, `${groupId}-g1`, assignerOf({ prefix: 'other', elasticsearch: null }))
  await eventually(async () => {
    const { ready, reasons } = await readiness(projector)
    expect(ready).toBe(false)
    expect(Object.values(reasons)).toEqual([
      expect.stringMatching(/^no projector of \S+ owns partitions [01]; projectors of other are in the group$/),
    ])
    const { text } = await projector.ask('/metrics')
    expect(text).toMatch(/^commission_partitions_without_owner\{generation="g1",topic="[^"]*"\} 1$/m)
  })

  await intruder.disconnect()
  await eventually(async () => expect(await readiness(projector)).toEqual({ ready: true, reasons: {} }))
})

test.concurrent('a member that names no installation may be of an older version: it is logged and tolerated', async t => {
  const { topics, prefix, groupId } = await setUp(t)
  const member = await joinGroup(topics, `${groupId}-g1`)
  t.onTestFinished(() => member.disconnect())
  const projector = await startProjector(t, { topics, prefix, groupId })
  await eventually(async () => expect((await readiness(projector)).ready).toBe(true))
  const line = { level: 40, group: `${groupId}-g1`, members: 1 }
  await eventually(() => expect(projector.lines()).toContainEqual(expect.objectContaining(line)))
})
