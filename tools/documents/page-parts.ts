/** Parts of the page of differences: tables, cells and the document around them. */
import { Exact, inGroups } from '../../schemas/money.ts'
import { PAGE_CHARACTERS } from '../limits.ts'
import { Markup, markup } from '../markup.ts'
import type { DifferenceRow } from './rows.ts'

/** An amount as its text has it. It stands with its decimal point below those of its column. */
type AmountCell = { readonly amount: string | null; readonly isDifference: boolean }
type PictureCell = { readonly picture: Markup }
/** A text, the content of a cell, an amount, or a picture. */
export type TableCell = string | null | Markup | AmountCell | PictureCell

/**
 * Nothing at all without rows. On a narrow screen each row becomes a card that names its cells. The roles stay then: a
 * row that is drawn as a block is no row any more.
 */
export const table = <Row>(
  head: readonly string[],
  rows: readonly Row[],
  cells: (row: Row) => readonly TableCell[],
): Markup => {
  if (rows.length === 0) return markup``
  const lines = rows.map(cells)
  const fractions = head.map((_, at) => lines.reduce((most, line) => Math.max(most, fractionIn(line[at]).length), 0))
  const isAmount = (at: number): boolean => isAmountCell(lines[0]?.[at])
  return markup`<table role="table"><tr role="row">${head.map((name, at) => markup`<th role="columnheader"${isAmount(at) ? AMOUNT : ''}>${name}</th>`)}</tr>
${lines.map(line => markup`<tr role="row">${line.map((cell, at) => tableCell(cell, head[at] ?? '', fractions[at] ?? 0))}</tr>\n`)}</table>`
}
const AMOUNT = new Markup(' class="amount"')

const isAmountCell = (cell: TableCell | undefined): cell is AmountCell =>
  typeof cell === 'object' && cell !== null && 'amount' in cell

/** The decimal point of an amount, and the digits after it. */
const fractionIn = (cell: TableCell | undefined): string =>
  isAmountCell(cell) ? (/\.\d+$/.exec(cell.amount ?? '')?.[0] ?? '') : ''

/** @param fraction the length of the longest fraction of the column, with its point */
const tableCell = (cell: TableCell, head: string, fraction: number): Markup => {
  const named = markup`role="cell" data-head="${head}"`
  if (typeof cell === 'string' || cell === null) return markup`<td ${named}>${short(cell ?? '-')}</td>`
  if (cell instanceof Markup) return markup`<td ${named}>${cell}</td>`
  if ('picture' in cell) return markup`<td role="cell" class="picture">${cell.picture}</td>`
  const { amount, isDifference } = cell
  if (amount === null) return markup`<td ${named} class="amount">-</td>`
  const own = fractionIn(cell)
  // Shown as room only: it is no text of the page.
  const room = `${own === '' && fraction > 0 ? '.' : ''}${'0'.repeat(Math.max(0, fraction - Math.max(1, own.length)))}`
  const kind = isDifference ? kindOf(amount) : ''
  return markup`<td ${named} class="amount ${kind}"><span data-room="${room}">${isDifference ? signed(amount) : inGroups(amount)}</span></td>`
}

export const kindOf = (difference: string): 'above' | 'below' | '' => {
  const amount = new Exact(difference)
  return amount.isZero() ? '' : amount.gt(0) ? 'above' : 'below'
}

const signed = (amount: string): string => `${kindOf(amount) === 'above' ? '+' : ''}${inGroups(amount)}`

/** The picture of a difference: a bar from the middle, to the left if it is below zero. @param share 0 to 1 */
export const barCell = (difference: string, share: number): PictureCell => {
  const width = Math.max(0.5, 50 * share)
  const x = kindOf(difference) === 'below' ? 50 - width : 50
  const picture = markup`<svg aria-hidden="true" width="100%" height="14"><rect class="${kindOf(difference)}" x="${x}%" width="${width}%" height="14"/></svg>`
  return { picture }
}

export const nameCell = (name: string | undefined, id: string): Markup =>
  markup`${short(name ?? '')} <code>${id}</code>`

/** Amounts of a and b, and b minus a. */
export const amountCells = ({ a, b, difference }: Pick<DifferenceRow, 'a' | 'b' | 'difference'>): AmountCell[] => [
  { amount: a, isDifference: false },
  { amount: b, isDifference: false },
  { amount: difference, isDifference: true },
]

export const sidesHead = (first: string, [a, b]: readonly [string, string]): string[] => {
  const of = (what: string): string[] => [`${what} in ${a}`, `${what} in ${b}`, 'difference']
  return [first, 'currency', ...of('owed'), ...of('paid')]
}

export type LargeDifference = {
  readonly row: DifferenceRow
  /** Names of the rep and of the period, if they are known. */
  readonly rep: string | undefined
  readonly period: string | undefined
}

/** The distance of a difference from zero. */
export const distanceOf = ({ difference }: DifferenceRow): Exact => new Exact(difference ?? 0).abs()

/** Keeps the largest differences of each currency, at most `most` of them. */
export const largestDifferences = (most: number) => {
  const kept = new Map<string, LargeDifference[]>()
  const largest = (all: readonly LargeDifference[]): LargeDifference[] =>
    all.toSorted((one, other) => distanceOf(other.row).cmp(distanceOf(one.row))).slice(0, most)
  return {
    add: (difference: LargeDifference): void => {
      const currency = difference.row.currency ?? ''
      const all = [...(kept.get(currency) ?? []), difference]
      kept.set(currency, all.length > 2 * most ? largest(all) : all)
    },
    /** In the order of the currencies. */
    all: (): (readonly [currency: string, largest: readonly LargeDifference[]])[] =>
      [...kept].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([currency, all]) => [currency, largest(all)]),
  }
}

const short = (text: string): string => {
  // At most two units of UTF-16 make a character.
  const characters = [...text.slice(0, 2 * PAGE_CHARACTERS + 2)]
  return characters.length <= PAGE_CHARACTERS ? text : `${characters.slice(0, PAGE_CHARACTERS).join('')}…`
}

const style = `:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em auto; padding: 0 1em; max-width: 92em; background: light-dark(#fff, #14171b); color: light-dark(#1a1f26, #e9ecef); }
table { border-collapse: collapse; margin: 0.5em 0 1em; }
th, td { border-bottom: 1px solid light-dark(#d8dde3, #363d47); padding: 0.25em 0.7em; text-align: left; }
th { color: light-dark(#56606c, #a7b0bc); font-weight: 600; white-space: nowrap; }
.amount { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
[data-room]::after { content: attr(data-room); visibility: hidden; }
.above { color: light-dark(#1b7340, #7fd6a0); fill: currentcolor; }
.below { color: light-dark(#b3261e, #ff9d94); fill: currentcolor; }
.picture { width: 12em; min-width: 8em; }
.left-out { border-left: 4px solid light-dark(#d9a514, #b98d1c); background: light-dark(#fff4d6, #3a3118); padding: 0.5em 1em; }
code { color: light-dark(#56606c, #a7b0bc); font-size: 12px; white-space: nowrap; }
h2 { border-top: 2px solid light-dark(#d8dde3, #363d47); padding-top: 1em; }
h1, h2, h3, li { overflow-wrap: anywhere; }
@media screen and (max-width: 60em) {
  table, tbody, tr { display: block; }
  tr:has(th) { display: none; }
  tr { border-bottom: 1px solid light-dark(#d8dde3, #363d47); padding: 0.4em 0; }
  td { border: 0; display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1em; padding: 0.1em 0; overflow-wrap: anywhere; }
  td::before { content: attr(data-head); color: light-dark(#56606c, #a7b0bc); }
  td[data-head=""] { font-weight: 600; }
  td[data-head=""]::before { content: none; }
  td.picture { display: block; width: 100%; }
}`

/** A document that may load nothing and run nothing. */
export const documentOf = (title: string, body: Markup): string =>
  markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
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
