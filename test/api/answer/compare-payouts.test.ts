import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { differenceParts, readPayout } from '../../../api/answer/compare-payouts.ts'
import { createPace, joinParts, type Pace } from '../../../core/reading/pace.ts'
import { abortReason } from '../../../core/runtime/time-limits.ts'
import { SLICE } from '../../../core/store/limits.ts'
import type { DocumentSlice } from '../../../core/store/read/slice-documents.ts'
import { differenceBetween } from '../../support/differences.ts'

const never = new AbortController().signal
type Line = { id: string; category: 'earned'; description: string; amount: string; deal_id: string | null }
type Payout = { net_amount: string; earned_amount: string; currency: string; supersedes_id: null; line_items: Line[] }

/** A payout as a slice of a response, with other bytes around it. */
const sliceOf = (payout: Payout): DocumentSlice => {
  const body = Buffer.from(JSON.stringify({ id: 'payout_1', ...payout }))
  const before = Buffer.from(',"line_items":[')
  const bytes = Buffer.concat([before, body, Buffer.from('},{"id":"line_x"}]}')])
  const bodyEnd = before.length + body.length
  return { bytes, start: 0, headerEnd: 0, bodyStart: before.length, bodyEnd, end: bodyEnd }
}
const free: Pace = { countWork: () => false, rest: async () => undefined }
const compared = async (before: Payout, after: Payout, pace = free): Promise<string> => {
  const parts = await differenceParts(
    await readPayout(sliceOf(before), pace),
    await readPayout(sliceOf(after), pace),
    pace,
  )
  return (await joinParts(parts, pace)).toString()
}

/** Texts that look like the bytes between two lines. */
const hostile = fc.constantFrom(
  '},{"id":"line_1"',
  '},{',
  '}]}',
  ',"line_items":[',
  '\\',
  '"',
  '\\"},{"id":"line_',
  'é😀',
  '',
)
const line = fc.record({
  id: fc.nat({ max: 6 }).map(n => `line_${n}`),
  category: fc.constant('earned' as const),
  description: fc.oneof(hostile, fc.string()),
  amount: fc.constantFrom('1', '1.00', '-2.5'),
  deal_id: fc.constantFrom(null, 'deal_1'),
})
const payout: fc.Arbitrary<Payout> = fc.record({
  net_amount: fc.constantFrom('1', '1.00', '-3', '0'),
  earned_amount: fc.constantFrom('10', '0.1'),
  currency: fc.constantFrom('EUR', 'EUR', 'USD'),
  supersedes_id: fc.constant(null),
  line_items: fc.uniqueArray(line, { selector: ({ id }) => id, maxLength: 7 }),
})

describe('two payouts compared as bytes', () => {
  test('have exactly the difference that a comparison of their values gives', async () => {
    await fc.assert(
      fc.asyncProperty(payout, payout, async (before, after) => {
        expect(await compared(before, after)).toBe(JSON.stringify(differenceBetween(before, after)))
      }),
      { numRuns: 500 },
    )
  })

  test('of the largest size are compared in slices, each within its limits of lines and bytes', async () => {
    const lines = (amount: string): Line[] =>
      Array.from({ length: 10_000 }, (_, n) => ({
        id: `line_${n}`,
        category: 'earned',
        description: 'x'.repeat(700),
        amount,
        deal_id: null,
      }))
    const large = (amount: string): Payout => ({
      net_amount: amount,
      earned_amount: amount,
      currency: 'EUR',
      supersedes_id: null,
      line_items: lines(amount),
    })
    const slices: { items: number; bytes: number }[] = [{ items: 0, bytes: 0 }]
    let turns = 0
    const { countWork, rest } = createPace(SLICE, async () => void turns++)(never)
    const counted: Pace = {
      countWork: (items, bytes) => {
        const last = slices.at(-1) ?? { items: 0, bytes: 0 }
        last.items += items
        last.bytes += bytes
        return countWork(items, bytes)
      },
      rest: () => {
        slices.push({ items: 0, bytes: 0 })
        return rest()
      },
    }
    const text = await compared(large('1'), large('2'), counted)
    expect(JSON.parse(text).line_items_changed.length).toBe(10_000)
    // A slice can exceed its limit of bytes by its last step: a copy of 256 KiB.
    for (const { items, bytes } of slices) {
      expect(items).toBeLessThanOrEqual(SLICE.items)
      expect(bytes).toBeLessThanOrEqual(SLICE.bytes + 256 * 1024)
    }
    expect(turns).toBeGreaterThan(40)
  })

  test('are compared no further once their request has ended', async () => {
    const over = new AbortController()
    const pace = createPace({ items: 1, bytes: 1 }, async () => over.abort(abortReason('client_gone')))(over.signal)
    const one: Payout = {
      net_amount: '1',
      earned_amount: '1',
      currency: 'EUR',
      supersedes_id: null,
      line_items: [{ id: 'line_1', category: 'earned', description: '', amount: '1', deal_id: null }],
    }
    await expect(compared(one, one, pace)).rejects.toMatchObject({ code: 'unavailable', reason: 'client_gone' })
  })

  test.each([
    '{}',
    '{"id":"payout_1","line_items":[',
    '{"id":"payout_1","line_items":[1]}',
    '{"id":1,,"line_items":[]}',
  ])('are unavailable if one is stored in another form: %s', async text => {
    const bytes = Buffer.from(text)
    const slice = { bytes, start: 0, headerEnd: 0, bodyStart: 0, bodyEnd: bytes.length, end: bytes.length }
    await expect(readPayout(slice, free)).rejects.toMatchObject({ reason: 'elasticsearch_malformed_record' })
  })
})
