/** The status page as text. test/flow/status-pages.test.ts shows it in a browser. */
import { expect, test } from 'vitest'
import { projectorPage } from '../../../projector/admin/status-page.ts'

const now = Date.UTC(2026, 1, 3, 4, 5, 6)
const state = {
  ...{ reasons: {}, live: 'g1', failed: [], clocks: { elasticsearch_ahead_ms: 0, agree: true } },
  ...{ partitions: [], parked: { codes: [], ahead: 0 }, ages: [{ at: now, age: undefined }] },
}
const pageOf = (...times: readonly number[]): string =>
  projectorPage({ ...state, published: times.map((time, partition) => ({ partition, time })) }, now)

test('a partition whose time is not known hides no old one: both are named, with a way to the runbook', () => {
  const text = 'This process publishes data of partitions 0, 1 that is older than 60.0 s.'
  expect(pageOf(0, now - 3_600_000, now)).toContain(`${text} <a href="runbooks#commissionstale">`)
})

test('a process that publishes fresh data, or nothing yet, has no such trouble', () => {
  for (const page of [pageOf(now - 60_000, now + 1_000), pageOf()]) expect(page).not.toContain('runbooks#')
})
