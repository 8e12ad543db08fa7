/**
 * The differences of two generations as rows of one shape, and how they are written: CSV, lines of JSON, tables for
 * people.
 */
import { moneyPattern } from '../../schemas/values.ts'
import { aligned, cut } from '../terminal.ts'

/** `row` says what it is about: what is owed, what was paid, a line of a current payout, or a record. */
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
export type Column = (typeof columns)[number]
/** `difference` is b less a. Null: that says nothing here. */
export type Row = Readonly<Record<Exclude<Column, 'row'>, string | null>> & { readonly row: RowKind }

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
export const rowOf = (given: Pick<Row, 'row' | 'organization'> & Partial<Row>): Row => ({ ...nothing, ...given })

export const ndjsonOf = (row: Row): string =>
  `${JSON.stringify(Object.fromEntries(columns.map(column => [column, row[column]])))}\n`

export const csvHeader = `${columns.join(',')}\r\n`
/** As RFC 4180 has it. */
export const csvOf = (row: Row): string => `${columns.map(column => csvCell(row[column] ?? '')).join(',')}\r\n`

/**
 * What a spreadsheet would take for a formula gets an apostrophe in front, by which spreadsheets know a text; an amount
 * that is negative is no formula, and stays.
 */
const csvCell = (text: string): string => {
  const safe = formula.test(text) && !money.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
const formula = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/
const money = new RegExp(moneyPattern)

/** Tables of the rows of one organization, one for each kind of row. @param names what a and b are */
export const tablesOf = (rows: readonly Row[], names: readonly [a: string, b: string]): string => {
  const tables = sections.flatMap(({ title, of, columns, right }) => {
    const ours = rows.filter(({ row }) => of.includes(row))
    if (ours.length === 0) return []
    const heading = columns.map(column =>
      column === 'a' ? names[0] : column === 'b' ? names[1] : column.toUpperCase(),
    )
    const lines = ours.map(row => columns.map(column => cut(row[column] ?? '-')))
    const places = right.map(column => columns.indexOf(column))
    return [`${title}\n${indented(aligned([heading, ...lines], places))}`]
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
    title: 'lines of what is current',
    of: ['line'],
    columns: ['rep', 'period', 'id', 'change', 'field', 'category', 'currency', ...amounts],
    right: amounts,
  },
  { title: 'records', of: ['record'], columns: ['kind', 'id', 'change', 'field', 'a', 'b'], right: [] },
]
