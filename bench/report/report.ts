/** The results as text, for the terminal and for docs/performance.md. */
import { type Figure, type FigureName, type FigureRow, figureNames, type Picture } from '../rig/bench.ts'
import type { Machine } from '../rig/machine.ts'
import type { ComparedRatio } from './compare.ts'

/** Returns the machine as a Markdown table. */
export const reportMachine = (machine: Machine): string => table([['', ''], ...Object.entries(machine)])

/** Returns a figure as Markdown, without its pictures. */
export const reportFigure = ({ title, rows, notes }: Figure): string =>
  [`## ${title}`, tableOf(rows), ...notes].join('\n\n')

/** Returns the compared ratios as a Markdown table. */
export const reportCompared = (compared: readonly ComparedRatio[]): string =>
  table([
    ['ratio', 'kept', 'now', 'worse by'],
    ...compared.map(({ key, before, now, worsePercent, isTooMuch }) => [
      key,
      amount(before),
      now === undefined ? 'not measured' : amount(now),
      worsePercent === undefined ? '' : `${worsePercent.toFixed(1)} %${isTooMuch ? ': too much' : ''}`,
    ]),
  ])

/** Path of a picture, relative to docs/. */
export const pictureFile = ({ name }: Picture): string => `pictures/bench-${name}.svg`

/**
 * Replaces `{{machine}}` and each figure's placeholder, such as `{{replay}}`, in the template.
 * @throws Error for a figure without a placeholder, or a placeholder without a figure
 */
export const renderPage = (template: string, machine: Machine, figures: readonly Figure[]): string => {
  for (const name of ['machine', ...figureNames]) {
    if (!template.includes(`{{${name}}}`)) throw new Error(`the template has no {{${name}}}`)
  }
  return template.replace(/\{\{(\w*)\}\}/g, (placeholder, name: string) => {
    if (name === 'machine') return reportMachine(machine)
    if (!isFigure(name)) throw new Error(`the template has ${placeholder}, and there is no such figure`)
    const measured = figures.filter(figure => figure.name === name)
    return measured.length === 0 ? 'Not measured in this run.' : measured.map(renderFigure).join('\n\n')
  })
}

const isFigure = (name: string): name is FigureName => figureNames.some(figure => figure === name)

const renderFigure = ({ title, rows, notes, pictures = [] }: Figure): string =>
  [
    `### ${title}`,
    ...pictures.map(picture => `![${picture.title}](${pictureFile(picture)})`),
    tableOf(rows),
    ...notes,
  ].join('\n\n')

const tableOf = (rows: readonly FigureRow[]): string =>
  table([
    ['', 'figure', 'lowest to highest', '', 'to reach'],
    ...rows.map(row => [
      row.isRatio ? `**${row.what}**` : row.what,
      row.isRatio ? `**${amount(row.value)}**` : amount(row.value),
      row.lowest === undefined || row.highest === undefined ? '' : `${amount(row.lowest)} to ${amount(row.highest)}`,
      row.unit,
      target(row),
    ]),
  ])

const target = ({ value, atLeast, atMost }: FigureRow): string => {
  if (atLeast !== undefined) return `≥ ${amount(atLeast)}: ${value >= atLeast ? 'reached' : 'not reached'}`
  if (atMost !== undefined) return `≤ ${amount(atMost)}: ${value <= atMost ? 'reached' : 'not reached'}`
  return ''
}

/** Three significant digits; whole numbers from 100 on. */
const amount = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)))

/** Formats rows of cells, the first as heading, as a Markdown table with aligned columns. */
const table = (rows: readonly (readonly string[])[]): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(3, ...rows.map(cells => cells[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [heading = [], ...others] = rows
  return [line(heading), line(widths.map(width => '-'.repeat(width))), ...others.map(line)].join('\n')
}
