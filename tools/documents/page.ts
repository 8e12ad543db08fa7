/**
 * Differences of two generations as one HTML page for people. In: the sums and rows of `compare.ts`, one organization
 * after the other. Out: a page that loads nothing. Promises: every text is escaped; totals are complete and exact; the
 * page says how much its lists leave out.
 */
import { PAGE_PERIODS, PAGE_ROWS, PAGE_SECTIONS } from '../limits.ts'
import { type Markup, markup } from '../markup.ts'
import type { OrganizationComparison } from './compare.ts'
import {
  amountCells,
  barCell,
  distanceOf,
  documentOf,
  type LargeDifference,
  largestDifferences,
  nameCell,
  sidesHead,
  type TableCell,
  table,
} from './page-parts.ts'
import type { DifferenceRow } from './rows.ts'
import { subtract } from './sums.ts'
import { type ComparedTotals, currencyTotals, isDifferent, periodTotals } from './totals.ts'

/** Differences in the picture of a currency. */
const LARGEST = 10

type OrganizationSums = Omit<OrganizationComparison, 'rows'>
/** Sums over all organizations, by `owed EUR`. */
type Money = ReadonlyMap<string, string>

export type DifferencePage = {
  readonly begin: (organization: OrganizationSums) => void
  /** A row of the organization; rows of money first. */
  readonly row: (row: DifferenceRow) => void
  readonly end: () => void
  /** @param summary a sentence on the whole comparison @returns the page */
  readonly html: (before: Money, after: Money, summary: string) => string
}

/** The differences of a rep and period: amounts, and their reasons. */
type Section = { readonly money: DifferenceRow[]; readonly lines: DifferenceRow[]; readonly records: DifferenceRow[] }

/** @param sides names of a and b @param notes sentences, such as up to where each side was read */
export const createPage = (sides: readonly [a: string, b: string], notes: readonly string[]): DifferencePage => {
  const parts: Markup[] = []
  const room = { sections: PAGE_SECTIONS, rows: PAGE_ROWS, periods: PAGE_PERIODS }
  const leftOut = { 'reps and periods': 0, lines: 0, records: 0, 'totals of periods': 0 }
  const largest = largestDifferences(LARGEST)
  let current: OrganizationSums = { organization: '', money: [new Map(), new Map()], names: new Map() }
  let money: DifferenceRow[] = []
  let others: DifferenceRow[] = []
  let sections: Map<string, Section> | undefined

  const open = (key: string, opened: Map<string, Section>): Section | undefined => {
    if (room.sections === 0) return undefined
    room.sections--
    const section: Section = { money: [], lines: [], records: [] }
    opened.set(key, section)
    return section
  }
  /** Opens a section for each rep and period with a difference of money, the largest difference first. */
  const opened = (): Map<string, Section> => {
    if (sections !== undefined) return sections
    sections = new Map()
    const without = new Set<string>()
    for (const row of money.toSorted((a, b) => distanceOf(b).cmp(distanceOf(a)))) {
      const section = sections.get(keyOf(row)) ?? open(keyOf(row), sections)
      if (section === undefined) without.add(keyOf(row))
      else section.money.push(row)
    }
    leftOut['reps and periods'] += without.size
    return sections
  }
  /** The section of a line: a rep and period without a difference of money gets one, too. */
  const sectionFor = (row: DifferenceRow): Section | undefined => opened().get(keyOf(row)) ?? open(keyOf(row), opened())
  const add = (rows: DifferenceRow[] | undefined, row: DifferenceRow, what: 'lines' | 'records'): void => {
    if (rows === undefined || room.rows === 0) {
      leftOut[what]++
      return
    }
    room.rows--
    rows.push(row)
  }
  /** Those of which this page lists neither lines nor records. */
  const amountsText = (rows: readonly DifferenceRow[]): Markup => {
    const nameOf = (id: string | null): Markup => nameCell(current.names.get(id ?? '')?.name, id ?? '')
    if (rows.length === 0) return markup``
    return markup`<h3>Other reps and periods</h3>
${table(['rep', 'period', '', 'currency', ...sides, 'difference'], rows, row => [nameOf(row.rep), nameOf(row.period), row.row, row.currency, ...amountCells(row)])}
`
  }
  const sectionText = ([key, { money, lines, records }]: readonly [string, Section]): Markup => {
    const [rep = '', period = ''] = key.split(' ')
    const [repName, periodName] = [current.names.get(rep)?.name, current.names.get(period)?.name]
    return markup`<h3>${repName ?? ''} <code>${rep}</code>, ${periodName ?? ''} <code>${period}</code></h3>
${table(['', 'currency', ...sides, 'difference'], money, row => [row.row, row.currency, ...amountCells(row)])}
${table(['line', 'description', 'category', 'change', 'currency', ...sides, 'difference'], lines, lineCells)}
${table(['record', '', 'change', ...sides], records, recordCells)}
`
  }

  return {
    begin: organization => {
      current = organization
      money = []
      others = []
      sections = undefined
    },
    row: row => {
      if (row.row === 'owed' || row.row === 'paid') {
        money.push(row)
        const { names } = current
        largest.add({ row, rep: names.get(row.rep ?? '')?.name, period: names.get(row.period ?? '')?.name })
      } else if (row.row === 'line') {
        add(sectionFor(row)?.lines, row, 'lines')
      } else add(opened().get(keyOf(row))?.records ?? others, row, 'records')
    },
    end: () => {
      const totals = periodTotals(...current.money)
      const starts = ({ period }: ComparedTotals): bigint => current.names.get(period)?.starts ?? 0n
      const different = totals.filter(isDifferent).toSorted((a, b) => Number(starts(a) - starts(b)))
      const periods = different.slice(0, room.periods)
      room.periods -= periods.length
      leftOut['totals of periods'] += different.length - periods.length
      // The total of the only period is in the table of periods.
      const isRepeated = totals.length === 1 && periods.length === 1
      const isExplained = ([, { lines, records }]: readonly [string, Section]) => lines.length + records.length > 0
      const byExplained = Map.groupBy(opened(), isExplained)
      parts.push(markup`<h2>${current.organization === '' ? '(no organization)' : current.organization}</h2>
${isRepeated ? '' : table(sidesHead('total', sides), currencyTotals(totals), row => ['all periods', ...totalsCells(row)])}
${table(sidesHead('period', sides), periods, row => [nameCell(current.names.get(row.period)?.name, row.period), ...totalsCells(row)])}
${different.length === totals.length ? '' : markup`<p>${totals.length - different.length} other totals of a period and currency are equal.</p>`}
${(byExplained.get(true) ?? []).map(sectionText)}
${amountsText((byExplained.get(false) ?? []).flatMap(([, { money }]) => money))}
${others.length === 0 ? '' : markup`<h3>Other records</h3>`}
${table(['record', '', 'change', ...sides], others, recordCells)}
`)
    },
    html: (before, after, summary) => {
      const keys = [...new Set([...before.keys(), ...after.keys()])].toSorted()
      const all = keys.map(key => {
        const [a, b] = [before.get(key) ?? '0', after.get(key) ?? '0']
        const [what = '', currency = ''] = key.split(' ')
        return [what, currency, ...amountCells({ a, b, difference: subtract(a, b) })]
      })
      const missing = Object.entries(leftOut).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []))
      return documentOf(
        `Differences: ${sides[0]} and ${sides[1]}`,
        markup`<p>${summary}</p>
<ul>${notes.map(note => markup`<li>${note}</li>`)}</ul>
${
  missing.length === 0
    ? ''
    : markup`<p class="left-out">Left out of the lists of this page, but not of its totals: ${missing.join(', ')}. Each organization has its largest differences first. All rows: <code>npx commission projection diff ${sides[0]} ${sides[1]} --format csv</code></p>`
}
<h2>All organizations</h2>
${table(['', 'currency', ...sides, 'difference'], all, cells => cells)}
${largest.all().map(largestText)}
${parts}`,
      )
    },
  }
}

/** One difference needs no picture. */
const largestText = ([currency, all]: readonly [string, readonly LargeDifference[]]): Markup => {
  const [first] = all
  if (first === undefined || all.length === 1) return markup``
  const whole = distanceOf(first.row)
  return markup`<h2>Largest differences in ${currency}</h2>
${table(['', 'difference', '', 'rep', 'period'], all, ({ row, rep, period }) => [
  row.row,
  { amount: row.difference, isDifference: true },
  // A length in a picture is the only number that is made of an amount.
  barCell(row.difference ?? '0', whole.isZero() ? 0 : distanceOf(row).div(whole).toNumber()),
  nameCell(rep, row.rep ?? ''),
  nameCell(period, row.period ?? ''),
])}
`
}

const keyOf = ({ rep, period }: DifferenceRow): string => `${rep} ${period}`

const totalsCells = ({ currency, owed, paid }: ComparedTotals): TableCell[] => [
  currency,
  ...[owed, paid].flatMap(([a, b]) => amountCells({ a, b, difference: subtract(a, b) })),
]
const changeOf = ({ change, field }: DifferenceRow): string => (field ? `${change}: ${field}` : `${change}`)
const lineCells = (row: DifferenceRow): TableCell[] => [
  row.id,
  row.description ?? null,
  row.category,
  changeOf(row),
  row.currency,
  ...amountCells(row),
]
const recordCells = (row: DifferenceRow): TableCell[] => [row.kind, row.id, changeOf(row), row.a, row.b]
