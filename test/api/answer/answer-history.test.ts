import { describe, expect, test } from 'vitest'
import { unitsOf } from '../../../api/access/limit-rate.ts'
import { answerHistory } from '../../../api/answer/answer-changes.ts'
import type { Answering } from '../../../api/answer/answer-page.ts'
import type { Context } from '../../../api/http/request.ts'
import { usualPace } from '../../../core/reading/pace.ts'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import { PAGE_BYTES_MAX, RATE_UNIT_BYTES } from '../../../schemas/limits.ts'
import { answering } from '../../support/answering-request.ts'
import { payoutBodies } from '../../support/bodies.ts'
import { generationOf } from '../../support/layout.ts'
import { recordText, searchAnswer } from '../answers.ts'

const position = {
  generation: generationOf(),
  publishedTo: 1_000,
  time: 0,
  takenBack: 0,
}
const pace = usualPace(new AbortController().signal)

/** A chain of payouts. Each payout changes all lines of the one before. */
const chain = (payouts: number, lines: number) =>
  Array.from({ length: payouts }, (_, place) => {
    const all = Array.from({ length: lines }, (_, n) => ({
      id: `line_${n}`,
      amount: `${place}`,
      description: 'x'.repeat(900),
    }))
    const { body } = payoutBodies({ id: `payout_${place}`, lines: all })
    return { id: `org_a:payout_${place}`, text: recordText(place, body, { until_seq: 2_000 }), place }
  })

const historyOf = async (payouts: number, lines: number) => {
  const hits = sliceSearch(searchAnswer('i', chain(payouts, lines)), [{ name: 'i', kind: 'payouts' }], 'org_a')
  const ctx = { set: () => undefined, get: () => '', state: answering(), body: Buffer.alloc(0) }
  await answerHistory(
    ctx as unknown as Context<Answering>,
    { position, hits, hasMore: false, before: undefined },
    undefined,
    pace,
  )
  return {
    bytes: ctx.body.length,
    page: JSON.parse(ctx.body.toString()) as { data: { id: string }[]; has_more: boolean; next_cursor: string },
  }
}

describe('a page of history', () => {
  test('ends with the last payout of the chain if all fit', async () => {
    const { page } = await historyOf(5, 10)
    expect([page.data.length, page.has_more, page.next_cursor]).toEqual([5, false, 'payout_4'])
  })

  test('ends early, and says that more follows, if its differences would exceed the bytes of a page', async () => {
    const { bytes, page } = await historyOf(30, 1_000)
    expect(bytes).toBeLessThan(PAGE_BYTES_MAX + 1_000)
    expect(page.data.length).toBeGreaterThan(3)
    expect([page.has_more, page.next_cursor]).toEqual([true, page.data.at(-1)?.id])
  })
})

test('an answer costs one unit, plus one unit for each further RATE_UNIT_BYTES that it begins', () => {
  const bytes = [0, 1, RATE_UNIT_BYTES, RATE_UNIT_BYTES + 1, PAGE_BYTES_MAX]
  expect(bytes.map(unitsOf)).toEqual([1, 1, 1, 2, 16])
})
