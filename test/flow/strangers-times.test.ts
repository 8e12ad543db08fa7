/** Two organizations in one partition of a topic with times of publishers. One publisher's times are wrong. */
import { expect, test } from 'vitest'
import { instantOf } from '../../schemas/values.ts'
import { createClient } from '../support/client.ts'
import {
  keyCreated,
  newId,
  newKeyText,
  type Outgoing,
  payoutRecorded,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const FOR_EVER = String(2n ** 63n - 1n)
const ANY_TIMES = {
  'message.timestamp.type': 'CreateTime',
  'message.timestamp.after.max.ms': FOR_EVER,
  'message.timestamp.before.max.ms': FOR_EVER,
}
const HOUR = 3_600_000

test('a wrong time counts for its record only: the other organization is read as of any instant, and its own where it is clear', async t => {
  const topics = await createTopics(t, { partitions: 1, configuration: ANY_TIMES })
  const prefix = createPrefix(t)
  const [ours, theirs] = [newId('org'), newId('org')]
  const keys = new Map([ours, theirs].map(org => [org, newKeyText()]))
  await topics.publish([...keys].map(([org, text]) => keyCreated({ org_id: org, id: 'key_client', text })))

  const now = Date.now()
  /** Six events of an organization, ten seconds apart. */
  const eventsOf = (org_id: string): Outgoing[] => [
    repRecorded({ org_id }),
    periodRecorded({ org_id }),
    payoutRecorded({ org_id, id: 'payout_1' }),
    payoutRecorded({ org_id, id: 'payout_2', supersedes_id: 'payout_1' }),
    payoutRecorded({ org_id, id: 'payout_3', supersedes_id: 'payout_2' }),
    payoutRecorded({ org_id, id: 'payout_4', supersedes_id: 'payout_3' }),
  ]
  const right = [110, 100, 90, 80, 70, 60].map(seconds => now - seconds * 1000)
  // In microseconds, two hours ahead, right, far behind, right, right.
  const wrong = [now * 1000, now + 2 * HOUR, now - 85_000, Date.UTC(2020, 0), now - 65_000, now - 62_000]
  const at = (times: readonly number[]) => (event: Outgoing, index: number) => ({
    ...event,
    timestamp: times[index] ?? 0,
  })
  const [honest, strange] = [eventsOf(ours).map(at(right)), eventsOf(theirs).map(at(wrong))]
  await topics.publish(honest.flatMap((event, index) => [strange[index] ?? event, event]))

  const projector = await startProjector(t, { topics, prefix })
  await untilCaughtUp(projector)
  const api = await startApi(t, prefix)
  const clientOf = (org: string) => createClient([api], keys.get(org) ?? '')
  const ask = async (org: string, path: string) => {
    const { status, text } = await clientOf(org).askInTime(path)
    return { status, json: JSON.parse(text) }
  }
  const publishedTimes = async (org: string): Promise<string[]> =>
    (await ask(org, '/changes')).json.data.map(({ published_at }: { published_at: string }) => published_at)
  const asOf = async (org: string, time: number) => {
    const { status, json } = await ask(org, `/changes?as_of=${instantOf(time)}`)
    return status === 200 ? json.data.length : json.error.code
  }

  expect(await publishedTimes(ours)).toEqual(right.map(instantOf))
  expect(await publishedTimes(theirs)).toEqual(wrong.map(instantOf))

  for (const [index, time] of right.entries()) {
    expect([index, await asOf(ours, time - 1), await asOf(ours, time)]).toEqual([index, index, index + 1])
  }
  expect(await asOf(ours, now - 40_000)).toBe(6)

  // Before the first event with a right time nothing is known, and while the event of 2020 contradicts the one before.
  for (const time of [now - 110_000, now - 86_000, now - 85_000, now - 80_000]) {
    expect([time - now, await asOf(theirs, time)]).toEqual([time - now, time >= now - 85_000 ? 4 : 'invalid_request'])
  }
  expect([await asOf(theirs, now - 65_000), await asOf(theirs, now - 62_000)]).toEqual([5, 6])
  expect((await ask(theirs, '/changes?as_of=period_1.1')).json.data).toHaveLength(2)

  const message = 'a record has a wrong time: ahead of the clock, or before the year 2000'
  const named = () => projector.lines().filter(({ msg }) => msg === message)
  const wanted = [0, 2].map(offset => ({ topic: topics.events, partition: 0, offset }))
  await eventually(() => expect(named()).toMatchObject(wanted))
})
