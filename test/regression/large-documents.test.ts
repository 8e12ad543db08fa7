/**
 * Symptom: the projector read all large payouts that a fetch corrected in one request. Over the limit of the
 * Elasticsearch client it retried for ever; below the limit it ran out of memory.
 * Cause: the size of that request was limited by the records, not by the documents that they supersede.
 */
import { expect, test } from 'vitest'
import { MGET_BYTES } from '../../core/store/limits.ts'
import { expectProjectedAsModelled } from '../support/agreement.ts'
import { line, newId, payoutRecorded, periodRecorded, repRecorded } from '../support/events.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

test('corrections to payouts that are too large for one response are all applied', async t => {
  const topics = await createTopics(t, { partitions: 1 })
  const prefix = createPrefix(t)
  const org_id = newId('org')
  const count = 8
  const description = 'x'.repeat(1_000)
  const large = Array.from({ length: 3_000 }, (_, at) => line({ id: `line_${at}`, amount: '0', description }))
  const pairs = Array.from({ length: count }, (_, at) => ({ org_id, rep_id: `rep_${at}`, period_id: 'period_1' }))
  expect(count * 3_000 * 1_000).toBeGreaterThan(MGET_BYTES)

  const first = await startProjector(t, { topics, prefix })
  await topics.publish([
    periodRecorded({ org_id, id: 'period_1' }),
    ...pairs.map(({ rep_id }) => repRecorded({ org_id, id: rep_id })),
  ])
  for (const [at, pair] of pairs.entries()) {
    const amounts = { net_amount: '0', earned_amount: '0', line_items: large }
    await topics.publish([payoutRecorded({ ...pair, id: `payout_${at}`, ...amounts })])
  }
  await untilCaughtUp(first)
  await first.stop()

  await topics.publish(
    pairs.map((pair, at) => payoutRecorded({ ...pair, id: `payout_new${at}`, supersedes_id: `payout_${at}` })),
  )
  // A new process with an empty cache.
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  await expectProjectedAsModelled(prefix, topics)
})
