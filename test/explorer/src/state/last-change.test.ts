import { expect, test } from 'vitest'
import { type Client, RefusedError } from '../../../../client/src/index.ts'
import { lastChangeOf } from '../../../../explorer/src/state/last-change.ts'

const refusal = (status: number, code: string) =>
  new RefusedError(new Response(null, { status }), { code, message: 'it lacks totals:read' })

/** An organization with pages of changes, and a key that may read totals or may not. */
const clientOf = (pages: number, totals: () => Promise<unknown>): Client =>
  ({
    totals,
    changes: () => ({
      pages: async function* () {
        for (let page = 1; page < pages; page++) yield { nextCursor: `payout_${page}`, hasMore: true }
        yield { nextCursor: pages === 0 ? '' : `payout_${pages}`, hasMore: false }
      },
    }),
  }) as unknown as Client
const forbidden = () => Promise.reject(refusal(403, 'forbidden'))

test('the totals name the last change', async () => {
  expect(await lastChangeOf(clientOf(3, async () => ({ last_change_id: 'payout_9' })))).toBe('payout_9')
})

test('a key that may not read totals finds it by reading all changes', async () => {
  expect(await lastChangeOf(clientOf(3, forbidden))).toBe('payout_3')
  expect(await lastChangeOf(clientOf(50, forbidden))).toBe('payout_50')
  expect(await lastChangeOf(clientOf(0, forbidden))).toBeNull()
})

test('it does not read changes without end', async () => {
  expect(await lastChangeOf(clientOf(51, forbidden))).toBe('too far')
})

test('another refusal of the totals is no reason to read all changes', async () => {
  const refusals = [refusal(503, 'unavailable'), refusal(403, 'unknown')]
  for (const why of refusals) await expect(lastChangeOf(clientOf(3, () => Promise.reject(why)))).rejects.toBe(why)
})
