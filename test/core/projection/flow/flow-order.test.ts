/** A whole flow. For any batches and any order of completion, the result is that of one record after the other. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Batch } from '../../../../core/ledger/event/decode.ts'
import { Documents, decideOneByOne } from '../../../projector/given.ts'
import { type Event, eventRecord } from '../../../projector/records.ts'
import { startFlow } from '../../../projector/running-flow.ts'
import { payment, payout, period, rep, voided } from '../../../projector/story.ts'

/** Recalculations, payments and voids of one rep and period. Each one depends on the one before. */
const story = (length: number): Event[] => {
  const events = [rep(), period()]
  for (let at = 0; events.length < length; at++) {
    events.push(payout(`payout_${at}`, at === 0 ? null : `payout_${at - 1}`))
    if (at % 3 === 0) events.push(payment(`payroll_${at}`, { payout_id: `payout_${at}` }))
    if (at % 3 === 1) events.push(voided(`payroll_v${at}`, `payroll_${at - 1}`), rep({ name: `Ada ${at}` }))
    if (at % 4 === 3) events.push(payout(`payout_${at}`, null))
  }
  return events
}

const steps = ['reads', 'writes', 'refreshes', 'advances'] as const

test('for any order of completion, positions increase strictly and the documents are those of sequential decisions', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(sizes, fc.infiniteStream(fc.nat(99)), async (sizes, chances) => {
      const batches = batchesOf(sizes)
      const end = batches.at(-1)?.end ?? 0
      const records = batches.flatMap(batch => batch.records)
      const ends = batches.map(batch => batch.end)
      const running = startFlow()
      running.hold(...steps)

      const published: number[] = []
      while (running.published().position < end) {
        const underWay = steps.flatMap(step => running[step].calls.map(call => () => call.letGo()))
        const batch = batches[0]
        if (batch) {
          underWay.push(async () => {
            expect(await running.take(batch)).toBe('taken')
            batches.shift()
          })
        }
        const goOn = underWay[Number(chances.next().value) % underWay.length]
        await (goOn ?? (() => expect.unreachable('nothing is under way')))()
        const { position } = running.published()
        if (position !== (published.at(-1) ?? 0)) published.push(position)
        const { readTo, writtenTo, publishedTo } = running.flow.progress
        expect([publishedTo <= writtenTo, writtenTo <= readTo]).toEqual([true, true])
      }
      running.release(...steps)

      await Promise.all(steps.flatMap(step => running[step].calls.map(call => call.letGo())))
      await running.flow.waitUntilIdle()
      expect(running.failures).toEqual([])
      expect(published).toEqual(ends.filter(position => published.includes(position)))

      const expected = new Documents()
      await decideOneByOne(records, expected)
      expect(running.documents.all()).toEqual(expected.all())
    }),
    { numRuns: 60 },
  )
})

/** The story in batches of these sizes. Every second offset is missing, as in a log with transactions. */
const batchesOf = (sizes: readonly number[]): Batch[] => {
  const records = story(sizes.reduce((sum, size) => sum + size, 0)).map((event, at) => eventRecord(event, at * 2, at))
  const batches: Batch[] = []
  for (const size of sizes) {
    const from = batches.at(-1)?.end ?? 0
    batches.push({ from, end: from + size * 2, records: records.slice(from / 2, from / 2 + size) })
  }
  return batches
}
