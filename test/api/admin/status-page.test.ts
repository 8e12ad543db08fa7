/** The status page as text. test/flow/admin-pages.test.ts shows it in a browser. */
import { expect, test } from 'vitest'
import { ageOf, statusPage } from '../../../api/admin/status-page.ts'
import { generationOf } from '../../support/layout.ts'

/** The texts of the cells of each row. */
const rowsOf = (page: string): string[] =>
  [...page.matchAll(/<tr>(<td.*)<\/tr>/g)].map(([, cells = '']) =>
    cells
      .split('</td>')
      .slice(0, -1)
      .map(cell => cell.replaceAll(/<[^>]+>/g, ''))
      .join('|'),
  )

const generation = generationOf({ partitions: 2 })
const none = new Map<number, string>()

test('a partition whose time is not known is a trouble, and no other age is shown as that of the oldest', () => {
  const partitions = [
    { publishedTo: 12, time: Date.UTC(2026, 1, 3, 4, 5, 6, 7), takenBack: 0 },
    { publishedTo: 10, time: 0, takenBack: 1 },
  ]
  const now = Date.UTC(2026, 1, 3, 4, 5, 8, 57)
  const readiness = { notReady: [], positions: { generation, building: null, partitions, notServed: none } }
  const page = statusPage(readiness, [], now)
  expect(rowsOf(page)).toEqual(['0|12|2026-02-03 04:05:06 UTC|2.0 s', '1|10|not known|'])
  expect(page).toContain('data of partition 1 that is older than 60.0 s')
  expect(ageOf(readiness, now)).toBeUndefined()
})

test('the page names the generation that answers come from, and the one that is being built', () => {
  const page = (building: string | null): string =>
    statusPage({ notReady: [], positions: { generation, building, partitions: [], notServed: none } }, [], 0)
  expect(page('g2')).toContain(`Generation ${generation.name} is live, with version ${generation.rules} of the rules`)
  expect(page('g2')).toContain('Generation g2 is being built.')
  expect(page(null)).toContain('No generation is being built.')
})

test('an age is never negative, even if the clock of the projector is ahead', () => {
  const partitions = [{ publishedTo: 1, time: 2_000, takenBack: 0 }]
  expect(
    rowsOf(
      statusPage({ notReady: [], positions: { generation, building: null, partitions, notServed: none } }, [], 1_000),
    ),
  ).toEqual(['0|1|1970-01-01 00:00:02 UTC|0.0 s'])
})

test('reasons and names of generations are escaped: they are text on the page', () => {
  const named = { ...generation, name: '<b>' }
  const page = statusPage(
    {
      notReady: ['<script>', '"&'],
      positions: { generation: named, building: '<i>', partitions: [], notServed: none },
    },
    [],
    0,
  )
  expect(page).toContain('cannot answer: &#60;script&#62;.')
  expect(page).toContain('cannot answer: &#34;&#38;.')
  expect(page).toContain('Generation &#60;b&#62; is live')
  expect(page).toContain('Generation &#60;i&#62; is being built.')
  expect(page).not.toMatch(/<script|<b>|<i>/)
})

test.each([
  [119_900, '119.9 s'],
  [120_000, '2.0 min'],
  [7_200_000, '2.0 h'],
  [172_800_000, '2.0 days'],
])('an age of %d ms is %s', (milliseconds, shown) => {
  const partitions = [{ publishedTo: 1, time: 1, takenBack: 0 }]
  const page = statusPage(
    { notReady: [], positions: { generation, building: null, partitions, notServed: none } },
    [],
    1 + milliseconds,
  )
  expect(rowsOf(page)[0]).toMatch(new RegExp(`\\|${shown}$`))
})

test('a partition whose answers are old has a way to its runbook; a fresh one has none', () => {
  const partitions = [1, 70_000].map(time => ({ publishedTo: 1, time, takenBack: 0 }))
  const page = statusPage(
    { notReady: [], positions: { generation, building: null, partitions, notServed: none } },
    [],
    61_000,
  )
  expect(page).toContain('data of partition 0 that is older than 60.0 s. <a href="runbooks#commissionstale">')
  expect(
    statusPage({ notReady: [], positions: { generation, building: null, partitions, notServed: none } }, [], 60_000),
  ).not.toContain('runbooks#')
})

test('a partition that is not served is named with its reason, beside those that are', () => {
  const partitions = [{ publishedTo: 1, time: 1_000, takenBack: 0 }, undefined]
  const notServed = new Map([[1, 'not_read_again_yet']])
  const readiness = { notReady: [], positions: { generation, building: null, partitions, notServed } }
  const page = statusPage(readiness, [], 2_000)
  expect(page).toContain('partition 1 get 503: not_read_again_yet. <a href="runbooks#commissionpartitionnotserved">')
  expect(rowsOf(page)).toEqual(['0|1|1970-01-01 00:00:01 UTC|1.0 s', '1||not served: not_read_again_yet|'])
  expect(ageOf(readiness, 2_000)).toBe(1_000)
})
