import { expect, test } from 'vitest'
import { drawTotals, type TotalsRow } from '../../../tools/export/chart.ts'

const row = (period: string, currency: string, owed_amount: string, paid_amount: string): TotalsRow => ({
  period_id: 'period_1',
  period,
  currency,
  owed_amount,
  owed_count: 1,
  paid_amount,
  paid_count: 1,
  open_amount: '0',
  still_owed: '0',
})
const title = { organization: 'org_<1>', moment: 'As of payout_1' }
const OWED = '#4c78a8'
const PAID = '#f58518'
/** Upper end and height of each bar of a color. */
const barsOf = (svg: string, color: string) =>
  [...svg.matchAll(/<rect x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)" fill="(#\w+)"\/>/g)]
    .filter(([, , , fill]) => fill === color)
    .slice(1)
    .map(([, y, height]) => ({ y: Number(y), height: Number(height) }))

test('bars are as high as their amounts, below zero for negative amounts', () => {
  const svg = drawTotals([row('January', 'EUR', '100.00', '50.00'), row('February', 'EUR', '-50.00', '0')], title)
  const [high, negative] = barsOf(svg, OWED)
  const [half, none] = barsOf(svg, PAID)
  expect(high?.height).toBeGreaterThan(50)
  expect([half?.height, negative?.height, none?.height]).toEqual([(high?.height ?? 0) / 2, half?.height, 0])
  expect(negative?.y).toBe((high?.y ?? 0) + (high?.height ?? 0))
  for (const label of ['−50', '0', '100', 'owed', 'paid', 'January', 'February'])
    expect(svg).toContain(`>${label}</text>`)
})

test('each currency has a panel, and no name becomes markup', () => {
  const svg = drawTotals([row('<script>', 'USD', '1', '1'), row('&', 'EUR', '1', '1')], title)
  expect(svg.indexOf('>EUR</text>')).toBeLessThan(svg.indexOf('>USD</text>'))
  expect(svg).toContain('>&lt;script&gt;</text>')
  expect(svg).toContain('>&amp;</text>')
  expect(svg).toContain('>Owed and paid: org_&lt;1&gt;</text>')
  expect(svg).toContain('>As of payout_1</text>')
})

test.for([
  ['nothing at all', []],
  ['only zero', [row('January', 'EUR', '0', '0.00')]],
  ['the largest and the smallest amounts', [row('a', 'EUR', '9'.repeat(40), `-0.${'0'.repeat(39)}1`)]],
  ['the smallest amount', [row('a', 'EUR', `0.${'0'.repeat(39)}1`, '0')]],
  ['1,000 periods', Array.from({ length: 1_000 }, (_, at) => row(`period ${at}`, 'EUR', `${at}`, '1'))],
] as const)('%s can be drawn', ([, rows]) => {
  const svg = drawTotals(rows, title)
  expect(svg).toMatch(/^<svg [\s\S]*<\/svg>\n$/)
  expect(svg).not.toMatch(/NaN|Infinity|undefined/)
})
