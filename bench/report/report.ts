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
 * Rows that a reader decides by, as "title: row". The page has them beside the rows whose bound is missed, and says how
 * many other bounds are reached. Pictures have more, and bench/results.json has all rows and the notes.
 */
const headlines: ReadonlyMap<FigureName, RegExp> = new Map([
  ['replay', /indices.*: (?:projector$|bulk ceiling$|projector \/ the fastest)|: projector$/],
  ['growth', /: (?:last |restart |1,000,000: (?:replay|on disk|page at the end \/|publish))/],
  ['freshness', /at 200 events\/s: publish → visible, p/],
  ['corrections', /: publish → visible, p50$/],
  ['api', /(?:0|read), compared .*: 8 .*: API, p99$|: from the first|projected: (?:alone|while .*projected)$/],
  ['archive', /: restore, (?:appending|.*: p99 .*)$/],
  ['crowd', /: (?:page of 50 |another’s slower)/],
  ['nodes', /: CPU of (?:Elasticsearch|Kafka) .*, three \/ one$|: 6 rebuilds: sum$/],
  ['shards', /: page of 200, .*, 96 shards \/ 1$/],
  ['totals', /: 1,000,000: (?:totals (?:now|as of a change), p99|first checkpoint)/],
])

const isHeadline = ({ name, title }: Figure, { what, unit }: FigureRow): boolean =>
  headlines.get(name)?.test(`${title}: ${what}`) === true && unit !== 'documents/s'

/** Undefined for a row without a bound. */
const isReached = ({ value, atLeast, atMost }: FigureRow): boolean | undefined => {
  if (atLeast !== undefined) return value >= atLeast
  return atMost === undefined ? undefined : value <= atMost
}

/** The rows of a figure that the page has, and how many rows it leaves out because their bound is reached. */
const shownRows = (figure: Figure): { readonly rows: readonly FigureRow[]; readonly reached: number } => {
  const rows = figure.rows.filter(row => isHeadline(figure, row) || isReached(row) === false)
  return { rows, reached: figure.rows.filter(row => !rows.includes(row) && isReached(row) === true).length }
}

/**
 * Replaces the machine and each figure in the page: the text between `<!--replay-->` and `<!--/replay-->`. All other
 * text is written by hand.
 * @throws Error for a figure without its markers, or markers without a figure
 */
export const renderPage = (page: string, machine: Machine, figures: readonly Figure[]): string => {
  for (const name of ['machine', ...figureNames]) {
    if (!generated(name).test(page)) throw new Error(`the page has no <!--${name}--> and <!--/${name}-->`)
  }
  return page.replace(
    generated('\\w+'),
    (_, name: string) => `<!--${name}-->\n\n${contentOf(name, machine, figures)}\n\n<!--/${name}-->`,
  )
}

const generated = (name: string): RegExp => new RegExp(`<!--(${name})-->.*?<!--/\\1-->`, 'gs')

const contentOf = (name: string, machine: Machine, figures: readonly Figure[]): string => {
  if (name === 'machine') return reportMachine(machine)
  if (!isFigure(name)) throw new Error(`the page has <!--${name}-->, and there is no such figure`)
  const measured = figures.filter(figure => figure.name === name)
  return measured.length === 0 ? 'Not measured in this run.' : renderFigures(measured)
}

const isFigure = (name: string): name is FigureName => figureNames.some(figure => figure === name)

/** One table for all figures of a name, after their pictures, and after the run that measured them apart. */
const renderFigures = (figures: readonly Figure[]): string => {
  const rows = figures.flatMap(rowsOf)
  return [
    ...figures.flatMap(({ notes }) => notes.filter(note => note.startsWith(measuredApart))),
    ...figures.flatMap(({ pictures = [] }) => pictures.map(each => `![${each.title}](${pictureFile(each)})`)),
    ...(rows.length === 0 ? [] : [table([['', 'figure'], ...rows])]),
  ].join('\n\n')
}

const rowsOf = (figure: Figure): string[][] => {
  const { rows, reached } = shownRows(figure)
  if (rows.length + reached === 0) return []
  return [
    [`**${figure.title}**`, reached === 0 ? '' : `${reached} more: reached`],
    ...rows.map(row => [row.what, [withSpread(row), target(row)].filter(text => text !== '').join('; ')]),
  ]
}

/** A note that begins so names the run of a figure that was not measured with the others. */
export const measuredApart = 'Measured apart: '

const withSpread = ({ value, lowest, highest, unit }: FigureRow): string => {
  const spread = lowest === undefined || highest === undefined ? [] : [`(${amount(lowest)}–${amount(highest)})`]
  return [amount(value), ...(unit === '' ? [] : [unit]), ...spread].join(' ')
}

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

const target = (row: FigureRow): string => {
  const outcome = isReached(row) === true ? 'reached' : 'missed'
  if (row.atLeast !== undefined) return `≥ ${amount(row.atLeast)}: ${outcome}`
  return row.atMost === undefined ? '' : `≤ ${amount(row.atMost)}: ${outcome}`
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
