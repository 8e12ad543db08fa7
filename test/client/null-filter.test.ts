/** A line without a deal has `deal_id: null`. Its payouts are not those of the whole organization. */
import { expect, test, vi } from 'vitest'
import { createClient } from '../../client/src/index.ts'

test('a filter that is null is an error, and nothing is asked: it would select the whole organization', async () => {
  const fetch = vi.fn()
  const client = createClient({ baseUrl: 'http://127.0.0.1', key: 'key_text', fetch })
  const line: { deal_id: string | null } = { deal_id: null }
  const filter = { dealId: line.deal_id } as { dealId: string }
  const why = 'dealId is null, which would select everything: leave it out for that'
  const { payouts, payrollRecords, changes, changesSince, history } = client
  for (const read of [payouts, payrollRecords, changes]) expect(() => read(filter)).toThrow(why)
  expect(() => changesSince('2026-01-01T00:00:00Z', filter)).toThrow(why)
  await expect(Array.fromAsync(client.follow(filter))).rejects.toThrow(why)
  await expect(client.totals(filter)).rejects.toThrow(why)
  for (const name of ['ids', 'repId', 'limit'] as const)
    expect(() => client.reps({ [name]: null } as object)).toThrow(`${name} is null`)
  expect(() => changes({ after: null } as object)).toThrow('after is null')
  expect(() => history('payout_1', { limit: null } as object)).toThrow('limit is null')
  expect(fetch).not.toHaveBeenCalled()
})
