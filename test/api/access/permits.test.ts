/** The step that holds a read permit: what requests for totals leave to the other requests of their organization. */
import { expect, test } from 'vitest'
import { createShares, shareReads, usualShares } from '../../../api/access/permits.ts'
import { TOTALS_READS_OF_ORGANIZATION } from '../../../api/limits.ts'
import { READS_OF_ORGANIZATION } from '../../../core/reading/limits.ts'

const TOTALS = '/api/v1/totals'

const created = () => {
  const ends: (() => void)[] = []
  const shares = createShares(usualShares, (_, timedOut) => {
    ends.push(timedOut)
    return () => undefined
  })
  const step = shareReads(TOTALS, shares.readsOfOrganization, shares.totalsOfOrganization)
  const key = { org: 'org_1', orgHash: 'aa', id: 'key_1', permissions: new Set(['read'] as const) }
  const run = (route: string, next: () => Promise<void>) => {
    const ctx = { state: { key, route, signal: new AbortController().signal } }
    return step(ctx as unknown as Parameters<typeof step>[0], next)
  }
  /** Starts requests that read until `end`. Returns how many of them read. */
  const start = async (count: number, route: string) => {
    let reads = 0
    const releases: (() => void)[] = []
    const outcomes = Array.from({ length: count }, () =>
      run(route, () => {
        reads++
        return new Promise(resolve => releases.push(resolve))
      }).then(
        () => 'answered',
        ({ reason }) => reason,
      ),
    )
    await new Promise(setImmediate)
    const end = () => {
      for (const release of releases.splice(0)) release()
    }
    return { outcomes, reads: () => reads, end }
  }
  const timeOut = () => {
    for (const end of ends.splice(0)) end()
  }
  return { start, timeOut }
}

test('requests that wait for a sum leave half of the reads of their organization to the others', async () => {
  const { start, timeOut } = created()
  const half = TOTALS_READS_OF_ORGANIZATION.permits
  const totals = await start(READS_OF_ORGANIZATION.permits + 5, TOTALS)
  expect(totals.reads()).toBe(half)
  const pages = await start(half, '/api/v1/payouts')
  expect(pages.reads()).toBe(READS_OF_ORGANIZATION.permits - half)
  // Those that queue for totals hold no permit. When a sum ends, the next one reads.
  pages.end()
  totals.end()
  await new Promise(setImmediate)
  expect(totals.reads()).toBe(2 * half)
  timeOut()
  totals.end()
  const outcomes = await Promise.all(totals.outcomes)
  expect([outcomes.filter(word => word === 'answered').length, outcomes.at(-1)]).toEqual([
    2 * half,
    'reads_of_organization',
  ])
})
