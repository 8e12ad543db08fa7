/** Parts of the page of differences: tables, cells and the document around them. */
import { Exact } from '../../schemas/money.ts'
import { PAGE_CHARACTERS } from '../limits.ts'
import { Markup, markup } from '../markup.ts'
import type { DifferenceRow } from './rows.ts'

/** A text, or a whole `td`. */
export type TableCell = string | null | Markup

/** Nothing at all without rows. */
export const table = <Row>(
  head: readonly string[],
  rows: readonly Row[],
  cells: (row: Row) => readonly TableCell[],
): Markup => {
  if (rows.length === 0) return markup``
  return markup`<table><tr>${head.map(name => markup`<th>${name}</th>`)}</tr>
${rows.map(row => markup`<tr>${cells(row).map(tableCell)}</tr>\n`)}</table>`
}
const tableCell = (cell: TableCell): Markup =>
  typeof cell === 'string' || cell === null ? markup`<td>${short(cell ?? '-')}</td>` : cell

export const nameCell = (name: string | undefined, id: string): Markup =>
  markup`<td>${short(name ?? '')} <code>${id}</code></td>`

/** Amounts of a and b, and b minus a. */
export const amountCells = ({ a, b, difference }: Pick<DifferenceRow, 'a' | 'b' | 'difference'>): Markup[] => {
  const sign = difference !== null && new Exact(difference).gt(0) ? '+' : ''
  return [a, b, difference === null ? null : `${sign}${difference}`].map(
    amount => markup`<td class="amount">${amount ?? '-'}</td>`,
  )
}

export const sidesHead = (first: string, [a, b]: readonly [string, string]): string[] => {
  const of = (what: string): string[] => [`${what} in ${a}`, `${what} in ${b}`, 'difference']
  return [first, 'currency', ...of('owed'), ...of('paid')]
}

const short = (text: string): string => {
  // At most two units of UTF-16 make a character.
  const characters = [...text.slice(0, 2 * PAGE_CHARACTERS + 2)]
  return characters.length <= PAGE_CHARACTERS ? text : `${characters.slice(0, PAGE_CHARACTERS).join('')}…`
}

const style = `body { font: 14px/1.4 sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 0.5em 0 1em; }
th, td { border: 1px solid #ddd; padding: 0.2em 0.6em; text-align: left; overflow-wrap: anywhere; }
th { background: #f4f4f4; white-space: nowrap; }
.amount { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.left-out { border: 1px solid #d90; background: #ffc; padding: 0.5em 1em; }
code { color: #666; font-size: 12px; }
h2 { border-top: 2px solid #ccc; padding-top: 1em; }`

/** A document that may load nothing and run nothing. */
export const documentOf = (title: string, body: Markup): string =>
  markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>
${new Markup(style)}
</style>
</head>
<body>
<h1>${title}</h1>
${body}
</body>
</html>
`.text
