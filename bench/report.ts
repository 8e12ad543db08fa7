/** The result as text: for the terminal and, the same, for bench/results.md. */
import type { Figure, Row } from './bench.ts'
import type { Machine } from './machine.ts'

export const reportMachine = (machine: Machine): string => table([['', ''], ...Object.entries(machine)])

export const reportFigure = ({ title, rows, notes }: Figure): string =>
  [
    `## ${title}`,
    table([
      ['', 'figure', 'lowest to highest', '', 'first figure to reach'],
      ...rows.map(row => [
        row.isRatio ? `**${row.what}**` : row.what,
        row.isRatio ? `**${amount(row.value)}**` : amount(row.value),
        row.lowest === undefined || row.highest === undefined ? '' : `${amount(row.lowest)} to ${amount(row.highest)}`,
        row.unit,
        target(row),
      ]),
    ]),
    ...notes,
  ].join('\n\n')

/** What a whole run leaves behind. */
export const reportAll = (machine: Machine, figures: readonly Figure[]): string =>
  [
    '# What was measured last',
    'Written by `npm run bench`. Ratios compare what was measured side by side in one run; times and rates are of this machine, on which everything ran together.',
    reportMachine(machine),
    ...figures.map(reportFigure),
    '',
  ].join('\n\n')

const target = ({ value, atLeast, atMost }: Row): string => {
  if (atLeast !== undefined) return `≥ ${amount(atLeast)}: ${value >= atLeast ? 'reached' : 'not reached'}`
  if (atMost !== undefined) return `≤ ${amount(atMost)}: ${value <= atMost ? 'reached' : 'not reached'}`
  return ''
}

/** Three digits that count; whole numbers from 100 on. */
const amount = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)))

/** Rows of cells, the first the heading, as a Markdown table that also reads well as plain text. */
const table = (rows: readonly (readonly string[])[]): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(3, ...rows.map(cells => cells[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [heading = [], ...others] = rows
  return [line(heading), line(widths.map(width => '-'.repeat(width))), ...others.map(line)].join('\n')
}
