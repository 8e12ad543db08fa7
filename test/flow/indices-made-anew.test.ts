/**
 * All indices of a prefix are deleted, and a projector makes them anew from another log, while an API process reads on.
 * The new generation has the name of the earlier one. Nothing that the API remembers of that one is in an answer.
 */
import { expect, test } from 'vitest'
import { createClient } from '../support/client.ts'
import {
  keyCreated,
  line,
  newId,
  newKeyText,
  payoutCalculated,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually } from '../support/scope.ts'
import { call, indicesOf } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const paths = ['/totals', '/totals?deal_id=deal_1', '/payouts?starting_after=payout_1', '/changes?after=2', '/payouts']

test.concurrent.for([
  { name: 'more records in as many partitions', partitions: 1, versions: 1 },
  { name: 'fewer records, and more partitions', partitions: 4, versions: 0 },
])('answers are those of a new API process: $name', async ({ partitions, versions }, t) => {
  const [org, key] = [newId('org'), newKeyText()]
  const records = (amount: string, more: number) => [
    keyCreated({ org_id: org, text: key }),
    repRecorded({ org_id: org }),
    ...Array.from({ length: more }, (_, at) => repRecorded({ org_id: org, name: `Ada ${at}` })),
    ...['period_1', 'period_2'].map(id => periodRecorded({ org_id: org, id })),
    ...['payout_2', 'payout_1'].map((id, at) => {
      const sums = { net_amount: amount, earned_amount: amount, line_items: [line({ amount, deal_id: 'deal_1' })] }
      return payoutCalculated({ org_id: org, id, period_id: `period_${at + 1}`, ...sums })
    }),
  ]
  const { prefix, projector } = await startProjection(t, records('10.50', 1), { partitions: 1 })
  const api = await startApi(t, prefix)
  const client = createClient([api], key)
  for (const path of paths) expect((await client.askInTime(path)).status).toBe(200)

  await projector.stop()
  await call('DELETE', `/${(await indicesOf(prefix)).join()}`)
  const topics = await createTopics(t, { partitions })
  const anew = await startProjector(t, { topics, prefix })
  await topics.publish(records('99.99', versions * 2))
  await untilCaughtUp(anew)

  const fresh = createClient([await startApi(t, prefix)], key)
  const expected = await Promise.all(paths.map(async path => (await fresh.askInTime(path)).text))
  expect(expected[0]).toContain('"owed_amount":"99.99"')
  const answers = () => Promise.all(paths.map(async path => (await client.askInTime(path)).text))
  await eventually(async () => expect(await answers()).toEqual(expected))
})
