/** Draws what is owed and paid by period, a panel by currency. Amounts become numbers only here: a bar is not exact. */

import type { Totals } from '../../schemas/resources.ts'
import { markup } from '../markup.ts'

/** Of one period and currency; `period` is its name. */
export type TotalsRow = Totals['totals'][number] & { readonly period: string; readonly still_owed: string }

/** Least widths, in pixels: of a period, of a label, of the picture. */
const PERIOD = 10
const LABEL = 26
const WIDTH_MIN = 960
/** Widths beside the bars, in pixels. */
const LEFT = 120
const RIGHT = 24
/** Heights, in pixels: of the legend, of a panel, of its title, of its bars. */
const HEAD = 60
const PANEL = 380
const TITLE = 36
const BARS = 210
/** About how many lines a panel has. */
const TICKS = 5

const series = [
  { name: 'owed', color: '#4c78a8', amount: (row: TotalsRow) => Number(row.owed_amount) },
  { name: 'paid', color: '#f58518', amount: (row: TotalsRow) => Number(row.paid_amount) },
] as const

/** The organization of the picture, and its moment in words. `made`: of the generation that was named. */
export type TotalsTitle = {
  readonly organization: string
  readonly moment: string
  readonly made?: string | undefined
}

/** Returns an SVG document. */
export const drawTotals = (rows: readonly TotalsRow[], { organization, moment, made }: TotalsTitle): string => {
  const panels = [...Map.groupBy(rows, ({ currency }) => currency)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const longest = panels.reduce((max, [, { length }]) => Math.max(max, length), 0)
  const width = Math.max(WIDTH_MIN, LEFT + RIGHT + PERIOD * longest)
  const height = HEAD + PANEL * Math.max(1, panels.length)
  const legend = series.map(
    ({ name, color }, index) =>
      markup`<rect x="${width - RIGHT - 70 * (series.length - index)}" y="14" width="14" height="14" fill="${color}"/><text x="${width - RIGHT - 70 * (series.length - index) + 20}" y="25">${name}</text>\n`,
  )
  const named = made === undefined ? [] : [markup`\n<text x="16" y="59" font-size="10" fill="#666">${made}</text>`]
  const drawn = panels.map(([currency, of], index) => drawPanel(currency, of, HEAD + PANEL * index, width))
  return markup`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="#333">
<rect width="100%" height="100%" fill="#fff"/>
<text x="16" y="26" font-size="15" font-weight="bold">Owed and paid: ${organization}</text>
<text x="16" y="45" fill="#666">${moment}</text>${named}
${legend}${drawn}</svg>
`.text
}

const drawPanel = (currency: string, rows: readonly TotalsRow[], top: number, width: number) => {
  const ticks = ticksOf(rows.flatMap(row => series.map(({ amount }) => amount(row))))
  const [low = 0, high = 1] = [ticks[0], ticks.at(-1)]
  const y = (amount: number): number => round(top + TITLE + (BARS * (high - amount)) / (high - low))
  const pitch = (width - LEFT - RIGHT) / rows.length
  const lines = ticks.map(
    tick =>
      markup`<path d="M${LEFT} ${y(tick)}H${width - RIGHT}" stroke="${tick === 0 ? '#666' : '#ddd'}"/><text x="${LEFT - 8}" y="${y(tick) + 4}" text-anchor="end">${labelOf(tick)}</text>\n`,
  )
  const bar = pitch * 0.38
  const bars = rows.flatMap((row, index) =>
    series.map(({ color, amount }, at) => {
      const x = round(LEFT + pitch * (index + 0.12) + bar * at)
      const [from, to] = [y(Math.max(0, amount(row))), y(Math.min(0, amount(row)))]
      return markup`<rect x="${x}" y="${from}" width="${round(bar)}" height="${round(to - from)}" fill="${color}"/>\n`
    }),
  )
  // As many labels as there is room for.
  const every = Math.ceil(LABEL / pitch)
  const labels = rows.flatMap(({ period }, index) => {
    if (index % every !== 0) return []
    const [x, under] = [round(LEFT + pitch * (index + 0.5)), top + TITLE + BARS + 18]
    return [
      markup`<text x="${x}" y="${under}" text-anchor="end" transform="rotate(-40 ${x} ${under})">${shorten(period)}</text>\n`,
    ]
  })
  return markup`<text x="16" y="${top + 20}" font-size="14" font-weight="bold">${currency}</text>\n${lines}${bars}${labels}`
}

/** `150,000` with a minus sign below zero; `1.5e+12` if it is very large or very small. */
const labelOf = (tick: number): string => {
  const isPlain = tick === 0 || (Math.abs(tick) >= 1e-3 && Math.abs(tick) < 1e12)
  const text = isPlain ? tick.toLocaleString('en-US') : tick.toExponential(1)
  return text.replace(/^-/, '\u2212')
}

const round = (pixels: number): number => Math.round(pixels * 100) / 100

const LABEL_CHARACTERS = 24
const shorten = (label: string): string =>
  [...label].length <= LABEL_CHARACTERS ? label : `${[...label].slice(0, LABEL_CHARACTERS - 1).join('')}…`

/** Round numbers from at most the least amount to at least the greatest one, with zero. */
const ticksOf = (amounts: readonly number[]): number[] => {
  const [low, high] = amounts.reduce(([low, high], amount) => [Math.min(low, amount), Math.max(high, amount)], [0, 0])
  const rough = (high - low || 1) / TICKS
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find(factor => factor * power >= rough) ?? 10)
  const [first, last] = [Math.floor(low / step), Math.max(Math.ceil(high / step), 1)]
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step)
}
