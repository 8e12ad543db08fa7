/** The status page as text. test/flow/admin-pages.test.ts shows it in a browser. */
import { expect, test } from 'vitest'
import { statusPage } from '../../../api/admin/status-page.ts'
import { generationOf } from '../../support/layout.ts'

const generation = generationOf({ partitions: 2 })

test('a partition with nothing published shows neither an instant nor an age', () => {
  const partitions = [
    { publishedTo: 12, time: Date.UTC(2026, 1, 3, 4, 5, 6, 7), takenBack: 0 },
    { publishedTo: 0, time: 0, takenBack: 0 },
  ]
  const page = statusPage({ notReady: [], positions: { generation, partitions } }, Date.UTC(2026, 1, 3, 4, 5, 8, 57))
  expect(page).toContain('<td>0</td><td>12</td><td>2026-02-03T04:05:06.007Z</td><td>2.0 s</td>')
  expect(page).toContain('<td>1</td><td>0</td><td>nothing yet</td><td></td>')
})

test('an age is never negative, even if the clock of the projector is ahead', () => {
  const partitions = [{ publishedTo: 1, time: 2_000, takenBack: 0 }]
  expect(statusPage({ notReady: [], positions: { generation, partitions } }, 1_000)).toContain('<td>0.0 s</td>')
})

test('reasons and names of generations are escaped: they are text on the page', () => {
  const named = { ...generation, name: '<b>' }
  const page = statusPage({ notReady: ['<script>', '"&'], positions: { generation: named, partitions: [] } }, 0)
  expect(page).toContain('not ready: &#60;script&#62;, &#34;&#38;')
  expect(page).toContain('(Generation &#60;b&#62;')
  expect(page).not.toMatch(/<script|<b>/)
})

test.each([
  [119_900, '119.9 s'],
  [120_000, '2.0 min'],
  [7_200_000, '2.0 h'],
  [172_800_000, '2.0 days'],
])('an age of %d ms is %s', (milliseconds, shown) => {
  const partitions = [{ publishedTo: 1, time: 1, takenBack: 0 }]
  expect(statusPage({ notReady: [], positions: { generation, partitions } }, 1 + milliseconds)).toContain(
    `<td>${shown}</td>`,
  )
})
