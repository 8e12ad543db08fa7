/** Differences of two generations as rows of one shape, and their formats: CSV, NDJSON, tables for people. */
import { aligned, fitColumn } from '../terminal.ts'
import { isAmount } from './sums.ts'

/** The subject of a row: amount owed, amount paid, line of a current payout, record. */
export type RowKind = 'owed' | 'paid' | 'line' | 'record'

export const columns = [
  'row',
  'organization',
  'rep',
  'period',
  'kind',
  'id',
  'change',
  'field',
  'category',
  'currency',
  'a',
  'b',
  'difference',
] as const
type Column = (typeof columns)[number]
/** `difference` is b minus a. Null: the column does not apply. */
export type DifferenceRow = Readonly<Record<Exclude<Column, 'row'>, string | null>> & {
  readonly row: RowKind
  /** Of a line. No column: only a page shows it. */
  readonly description?: string
}

const nothing = {
  rep: null,
  period: null,
  kind: null,
  id: null,
  change: null,
  field: null,
  category: null,
  currency: null,
  a: null,
  b: null,
  difference: null,
}
export const rowOf = (given: Pick<DifferenceRow, 'row' | 'organization'> & Partial<DifferenceRow>): DifferenceRow => ({
  ...nothing,
  ...given,
})

export const ndjsonOf = (row: DifferenceRow): string =>
  `${JSON.stringify(Object.fromEntries(columns.map(column => [column, row[column]])))}\n`

/** Returns a row of CSV as RFC 4180 says, with its line end. null is nothing, an empty text two quotation marks. */
export const csvRow = (cells: readonly (string | null)[]): string => `${cells.map(csvCell).join(',')}\r\n`

/**
 * Puts an apostrophe before text that a spreadsheet would run as a formula. A negative amount is no formula. Some
 * spreadsheets also split rows at semicolons and tabs, and some of them even within quotation marks.
 */
const csvCell = (text: string | null): string => {
  if (text === null) return ''
  const escaped = text.replaceAll(formula, "'$&")
  const safe = isAmount(text) ? text : escaped
  return safe === '' || /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
/** At the begin of a text, or of a part of it. */
const formula = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]|(?<=[;\t\r\n][\s"]*)[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]/g

export const csvHeader = csvRow(columns)
export const csvOf = (row: DifferenceRow): string => csvRow(columns.map(column => row[column] || null))

/** Tables of the rows of one organization, one for each kind of row. @param names of a and b */
export const tablesOf = (rows: readonly DifferenceRow[], names: readonly [a: string, b: string]): string => {
  const tables = sections.flatMap(({ title, of, columns, right }) => {
    const ours = rows.filter(({ row }) => of.includes(row))
    if (ours.length === 0) return []
    const heading = columns.map(column =>
      column === 'a' ? names[0] : column === 'b' ? names[1] : column.toUpperCase(),
    )
    const lines = ours.map(row => columns.map(column => fitColumn(row[column] ?? '-')))
    const rightAligned = right.map(column => columns.indexOf(column))
    return [`${title}\n${indented(aligned([heading, ...lines], rightAligned))}`]
  })
  return `${[rows[0]?.organization || '(no organization)', ...tables].join('\n')}\n\n`
}

const indented = (text: string): string => text.replaceAll(/^/gm, '  ')

type Section = {
  readonly title: string
  readonly of: readonly RowKind[]
  readonly columns: readonly Column[]
  readonly right: readonly Column[]
}
const amounts: readonly Column[] = ['a', 'b', 'difference']
const sections: readonly Section[] = [
  {
    title: 'money',
    of: ['owed', 'paid'],
    columns: ['row', 'rep', 'period', 'currency', ...amounts],
    right: amounts,
  },
  {
    title: 'lines of current payouts',
    of: ['line'],
    columns: ['rep', 'period', 'id', 'change', 'field', 'category', 'currency', ...amounts],
    right: amounts,
  },
  { title: 'records', of: ['record'], columns: ['kind', 'id', 'change', 'field', 'a', 'b'], right: [] },
]
