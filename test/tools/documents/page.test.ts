/** The page of `diff --html`, without a browser. `flow/analysis.long.test.ts` opens one in a browser. */
import { expect, test } from 'vitest'
import { moneyRows, type Named } from '../../../tools/documents/compare.ts'
import { createPage } from '../../../tools/documents/page.ts'
import { type DifferenceRow, rowOf } from '../../../tools/documents/rows.ts'
import { PAGE_CHARACTERS, PAGE_PERIODS, PAGE_ROWS, PAGE_SECTIONS } from '../../../tools/limits.ts'

type Sums = Readonly<Record<string, string>>
const organizationOf = (a: Sums, b: Sums, names: Sums = {}) => ({
  organization: 'org_1',
  money: [new Map(Object.entries(a)), new Map(Object.entries(b))] as const,
  names: new Map(Object.entries(names).map(([id, name]): [string, Named] => [id, { name, starts: 0n }])),
})
const pageOf = (organization: ReturnType<typeof organizationOf>, more: readonly DifferenceRow[] = []): string => {
  const page = createPage(['g1', 'sandbox:s1'], ['g1 as of 5 records'])
  page.begin(organization)
  for (const row of moneyRows('org_1', ...organization.money)) page.row(row)
  for (const row of more) page.row(row)
  page.end()
  return page.html(new Map([['owed EUR', '0.10']]), new Map([['owed EUR', '0.30']]), 'a summary')
}
/** The cells of each row, without markup. */
const rowsOf = (html: string): string[] =>
  [...html.matchAll(/<tr role="row">(.*?)<\/tr>/gs)].map(([, cells = '']) =>
    cells.replaceAll(/<\/t[dh]>/g, '|').replaceAll(/<[^>]*>/g, ''),
  )
const lineOf = (rep: string, id: string, more: Partial<DifferenceRow> = {}): DifferenceRow => ({
  ...rowOf({ row: 'line', organization: 'org_1', rep, period: 'period_1', id, change: 'added', b: '1' }),
  ...more,
})

test('a page shows who is paid differently, by how much, and the lines and records behind it', () => {
  const organization = organizationOf(
    { 'owed rep_1 period_1 EUR': '85.50', 'paid rep_1 period_1 EUR': '1', 'owed rep_2 period_1 EUR': '10.00' },
    { 'owed rep_1 period_1 EUR': '95.50', 'paid rep_1 period_1 EUR': '1', 'owed rep_2 period_1 EUR': '10.00' },
    { rep_1: 'Ana', period_1: 'March' },
  )
  const html = pageOf(organization, [
    lineOf('rep_1', 'line_1', { category: 'adjusted', description: 'Bonus', currency: 'EUR', difference: '10.00' }),
    rowOf({ row: 'record', organization: 'org_1', kind: 'reps', id: 'rep_3', change: 'removed' }),
  ])
  expect(html).toContain('<h3>Ana <code>rep_1</code>, March <code>period_1</code></h3>')
  expect(rowsOf(html)).toEqual([
    '|currency|g1|sandbox:s1|difference|',
    'owed|EUR|0.10|0.30|+0.20|',
    'period|currency|owed in g1|owed in sandbox:s1|difference|paid in g1|paid in sandbox:s1|difference|',
    'March period_1|EUR|95.50|105.50|+10.00|1|1|0|',
    '|currency|g1|sandbox:s1|difference|',
    'owed|EUR|85.50|95.50|+10.00|',
    'line|description|category|change|currency|g1|sandbox:s1|difference|',
    'line_1|Bonus|adjusted|added|EUR|-|1|+10.00|',
    'record||change|g1|sandbox:s1|',
    'reps|rep_3|removed|-|-|',
  ])
  expect(html).not.toContain('class="left-out"')
})

test('no text of a record becomes markup, and long texts are cut', () => {
  const hostile = '<script>alert(1)</script><img src=x onerror=alert(1)>"\'&'
  const organization = organizationOf({}, { 'owed rep_1 period_1 EUR': '1' }, { rep_1: hostile, period_1: hostile })
  const html = pageOf(organization, [
    lineOf('rep_1', 'line_1', { description: hostile, category: hostile }),
    rowOf({ row: 'record', organization: 'org_1', kind: 'reps', id: 'rep_1', field: hostile, a: 'x'.repeat(1_000) }),
  ])
  expect(html).not.toMatch(/<script|<img/)
  expect(html.match(/&lt;script&gt;alert\(1\)&lt;\/script&gt;&lt;img/g)).toHaveLength(6)
  expect(html).toContain(`>${'x'.repeat(PAGE_CHARACTERS)}…<`)
})

test('amounts are grouped, stand with their decimal points below one another, and a difference has sign and colour', () => {
  const html = pageOf(
    organizationOf(
      { 'owed rep_1 period_1 EUR': '1234567.5', 'owed rep_2 period_1 EUR': '-1000' },
      { 'owed rep_1 period_1 EUR': '1000000.25', 'owed rep_2 period_1 EUR': '-999' },
    ),
  )
  const cells = [...html.matchAll(/class="amount ?(\w*)"><span data-room="([^"]*)">([^<]*)</g)]
  const shown = cells.map(([, kind, room, amount]) => [amount, room, kind].join(' ').trim())
  expect(shown).toContain('1,234,567.5')
  expect(shown).toContain('-234,567.25  below')
  expect(shown).toContain('+1 .00 above')
})

test('the ten largest differences of each currency are a picture, the largest first', () => {
  const count = 25
  const sums = (amount: (at: number) => string): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`owed rep_${at} period_1 EUR`, amount(at)]))
  const a = { ...sums(() => '0'), 'owed rep_1 period_1 USD': '1' }
  const b = { ...sums(at => String(at % 2 === 0 ? at + 1 : -at - 1)), 'owed rep_1 period_1 USD': '2' }
  const html = pageOf(organizationOf(a, b, { rep_24: 'Ana' }))
  const [, picture = ''] = /Largest differences in EUR<\/h2>(.*?)<\/table>/s.exec(html) ?? []
  const largest = rowsOf(picture).slice(1)
  expect(largest.map(row => row.split('|')[1])).toEqual([
    ...['+25', '-24', '+23', '-22', '+21', '-20', '+19', '-18', '+17', '-16'],
  ])
  expect(largest[0]).toBe('owed|+25||Ana rep_24| period_1|')
  const bars = [...picture.matchAll(/<rect class="(\w+)" x="([\d.]+)%" width="([\d.]+)%"/g)]
  expect(bars.slice(0, 2).map(([, ...of]) => of)).toEqual([
    ['above', '50', '50'],
    ['below', '2', '48'],
  ])
  // One difference needs no picture.
  expect(html).not.toContain('Largest differences in USD')
})

test('sums are exact', () => {
  const large = `${'9'.repeat(40)}.${'9'.repeat(40)}`
  const html = pageOf(
    organizationOf(
      { 'owed rep_1 period_1 EUR': '0.1', 'owed rep_2 period_1 EUR': '0.2' },
      { 'owed rep_1 period_1 EUR': large, 'owed rep_2 period_1 EUR': '0.2' },
    ),
  )
  expect(rowsOf(html).map(row => row.replaceAll(',', ''))).toContain(
    ` period_1|EUR|0.3|1${'0'.repeat(40)}.1${'9'.repeat(39)}|+${'9'.repeat(40)}.8${'9'.repeat(39)}|0|0|0|`,
  )
})

test('a large comparison is cut: the page says how much is left out, keeps the largest differences, and its totals are complete', () => {
  const more = 7
  const count = PAGE_PERIODS + more
  const key = (at: number): string => `owed rep_${at} period_${at} EUR`
  const a = Object.fromEntries(Array.from({ length: count }, (_, at) => [key(at), '1.00']))
  const b = Object.fromEntries(Array.from({ length: count }, (_, at) => [key(at), at === count - 1 ? '-9.00' : '1.01']))
  const largest = `rep_${count - 1}`
  const lines = Array.from({ length: PAGE_ROWS + more }, (_, at) =>
    lineOf(largest, `line_${at}`, { period: `period_${count - 1}` }),
  )
  const elsewhere = lineOf(`rep_${count - 2}`, 'line_1', { period: `period_${count - 2}` })
  const record = rowOf({ row: 'record', organization: 'org_1', kind: 'reps', id: 'rep_3', change: 'removed' })
  const html = pageOf(organizationOf(a, b), [...lines, elsewhere, record])
  expect(html).toContain(
    `not of its totals: ${count - PAGE_SECTIONS} reps and periods, ${more + 1} lines, 1 records, ${more} totals of periods.`,
  )
  // One rep and period has lines on this page; the others share a table.
  expect([...html.matchAll(/<h3>(.*?)<\/h3>/g)].map(([, head]) => head)).toEqual([
    ` <code>${largest}</code>,  <code>period_${count - 1}</code>`,
    'Other reps and periods',
  ])
  const [, others = ''] = html.split('<h3>Other reps and periods</h3>')
  expect(rowsOf(others).slice(1)).toHaveLength(PAGE_SECTIONS - 1)
  expect(rowsOf(html).map(row => row.replaceAll(',', ''))).toContain(
    `all periods|EUR|${count}.00|${(((count - 1) * 101 - 900) / 100).toFixed(2)}|+${((count - 1) * 0.01 - 10).toFixed(2)}|0|0|0|`,
  )
})

test('periods are in the order of their start', () => {
  const starts = { period_1: 3n, period_2: 1n, period_3: 2n }
  const sums = Object.fromEntries(Object.keys(starts).map(period => [`owed rep_1 ${period} EUR`, '1']))
  const names = new Map(Object.entries(starts).map(([id, starts]) => [id, { name: 'Q', starts }]))
  const periods = rowsOf(pageOf({ ...organizationOf({}, sums), names })).filter(row => row.startsWith('Q '))
  expect(periods.map(row => row.slice(2, 10))).toEqual(['period_2', 'period_3', 'period_1'])
})

test('payouts that differ without a difference of money have a section, too; equal totals are only counted', () => {
  const sums = { 'owed rep_1 period_1 EUR': '1', 'owed rep_2 period_2 USD': '1' }
  const html = pageOf(organizationOf(sums, sums), [lineOf('rep_1', 'line_1', { change: 'changed', field: 'category' })])
  expect(html).toContain('<h3> <code>rep_1</code>,  <code>period_1</code></h3>')
  expect(html).toContain('changed: category')
  expect(html).toContain('2 other totals of a period and currency are equal.')
})
