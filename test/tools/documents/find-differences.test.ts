/** Finds the documents that differ if there are too many to hold the id of each. */
import { expect, test } from 'vitest'
import { bucketsThatDiffer } from '../../../tools/documents/find-differences.ts'

const HELD = 2_000
const COUNT = HELD * 2
async function* side(change: (at: number) => string | undefined) {
  for (let at = 0; at < COUNT; at++) {
    const amount = change(at)
    if (amount !== undefined) yield { document: { id: `org_1:payout_${at}`, source: { amount } } }
  }
}
const same = () => '1'
const isHeld = async (changed: (at: number) => string | undefined) =>
  bucketsThatDiffer('payouts', side(same), side(changed), HELD)
const heldOf = (held: (id: string) => boolean): number =>
  Array.from({ length: COUNT }, (_, at) => `org_1:payout_${at}`).filter(held).length

test('only a few of many documents are compared again: those in the bucket of one that differs', async () => {
  for (const changed of [
    (at: number) => (at === 3_000 ? '2' : '1'),
    (at: number) => (at === 3_000 ? undefined : '1'),
  ]) {
    const held = await isHeld(changed)
    expect(held('org_1:payout_3000')).toBe(true)
    expect(heldOf(held)).toBeLessThan(20)
  }
})

test('if everything differs, no more documents are compared than can be held', async () => {
  const count = heldOf(await isHeld(() => '2'))
  expect(count).toBeGreaterThan(HELD * 0.9)
  expect(count).toBeLessThanOrEqual(HELD)
})

test('if nothing differs, no document is compared again', async () => {
  expect(heldOf(await isHeld(same))).toBe(0)
})
