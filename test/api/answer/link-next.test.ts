/** The header with the address of the next page. */
import { expect, test } from 'vitest'
import { linkNext } from '../../../api/answer/answer-page.ts'
import type { Context } from '../../../api/http/request.ts'
import { answering } from '../../support/answering-request.ts'

test('the link to the next page has all parameters of the request, and the cursor in place of the earlier one', () => {
  const headers = new Map<string, string>()
  const as_of = 'as_of=2026-02-01T00%3A00%3A00%2B01%3A00'
  const query = `limit=2&starting_after=payout_1&${as_of}`
  const state = { ...answering(), path: '/api/v1/payouts', query, baseAddress: () => 'http://localhost:1' }
  const ctx = { state, set: (name: string, value: string) => void headers.set(name, value) }
  linkNext(ctx as unknown as Context<ReturnType<typeof answering>>, 'payout_9')
  expect(headers.get('Link')).toBe(
    `<http://localhost:1/api/v1/payouts?limit=2&starting_after=payout_9&${as_of}>; rel="next"`,
  )
})

test('the link of a page after a sequence begins after the cursor, and has no sequence any more', () => {
  const headers = new Map<string, string>()
  const state = { ...answering(), path: '/api/v1/changes', query: 'after=0&limit=2', baseAddress: () => '' }
  const ctx = { state, set: (name: string, value: string) => void headers.set(name, value) }
  linkNext(ctx as unknown as Context<ReturnType<typeof answering>>, 'payout_9')
  expect(headers.get('Link')).toBe('</api/v1/changes?limit=2&starting_after=payout_9>; rel="next"')
})
