/** Draws a Grafana dashboard of deploy/monitoring/ as SVG: its panels, in its order, two in a row. */
import * as echarts from 'echarts'
import type { PanelUnit } from '../contract/dashboards.ts'

export type DrawnSeries = { readonly name: string; readonly points: readonly (readonly [number, number | null])[] }
export type DrawnPanel = {
  readonly title: string
  readonly unit: PanelUnit
  readonly isStacked: boolean
  /** Each series is red, except for the one of this name. */
  readonly calm?: string | undefined
  readonly series: readonly DrawnSeries[]
}

const WIDTH = 560
const HEIGHT = 250
const HEAD = 44
/** Series of a panel that are drawn: those with the highest values. */
const SERIES_MAX = 8
/** Grafana's classic colors. */
const COLORS = ['#3274d9', '#56a64b', '#e0b400', '#e02f44', '#ff780a', '#8f3bb8', '#37872d', '#5794f2']

/** Of alerts: Grafana's shades of red, and its green. */
const ALARM_COLORS = ['#e02f44', '#c4162a', '#f2495c', '#ad0317', '#ff7383']
const CALM_COLOR = '#56a64b'

const FONT = 'sans-serif'
/** Width of a character in a wide font without serifs, as a part of its height. Nothing measures texts here. */
const CHARACTER_WIDTH = 0.62
echarts.setPlatformAPI({
  measureText: (text, font) => ({
    width: text.length * Number(/([\d.]+)px/.exec(font ?? '')?.[1] ?? 12) * CHARACTER_WIDTH,
  }),
})

/** @param seconds length of the time axis */
export const drawDashboard = (title: string, panels: readonly DrawnPanel[], seconds: number): string => {
  const height = HEAD + HEIGHT * Math.ceil(panels.length / 2)
  const drawn = panels.map((panel, at) => {
    const [x, y] = [(at % 2) * WIDTH, HEAD + Math.floor(at / 2) * HEIGHT]
    return drawPanel(panel, seconds).replace('<svg ', `<svg x="${x}" y="${y}" `)
  })
  const head = `<text x="16" y="29" font-family="sans-serif" font-size="18" font-weight="bold">${escapeText(title)}</text>`
  const size = `width="${2 * WIDTH}" height="${height}" viewBox="0 0 ${2 * WIDTH} ${height}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n<rect width="100%" height="100%" fill="#ffffff"/>\n${head}\n${drawn.join('\n')}\n</svg>\n`
}

const escapeText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

const drawPanel = ({ title, unit, isStacked, calm, series }: DrawnPanel, seconds: number): string => {
  const highest = series.toSorted((a, b) => maxOf(b) - maxOf(a)).slice(0, SERIES_MAX)
  // The lowest of a stack carries the others.
  const shown = isStacked ? highest.toReversed() : highest
  const more = series.length - shown.length
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  const rows = Math.ceil(shown.length / 2)
  chart.setOption({
    animation: false,
    color: calm === undefined ? COLORS : ALARM_COLORS,
    title: {
      text: title + (more > 0 ? `  (and ${more} more, not drawn)` : ''),
      left: 16,
      top: 6,
      textStyle: { fontSize: 13, fontFamily: FONT },
    },
    legend: {
      left: 12,
      bottom: 4,
      width: WIDTH - 24,
      itemWidth: 14,
      itemHeight: 3,
      icon: 'rect',
      itemGap: 12,
      textStyle: { fontSize: 10, fontFamily: FONT, width: (WIDTH - 90) / 2, overflow: 'truncate' },
      data: shown.map(({ name }) => name),
    },
    grid: { left: 70, right: 24, top: 34, bottom: 28 + 18 * Math.max(rows, 1) },
    xAxis: {
      type: 'value',
      min: 0,
      max: seconds,
      interval: 60,
      axisLabel: {
        formatter: (at: number) => `${Math.floor(at / 60)}:${String(Math.round(at % 60)).padStart(2, '0')}`,
      },
    },
    yAxis: {
      type: 'value',
      ...axisOf(isStacked ? [totalOf(shown)] : shown, unit),
      axisLabel: { fontSize: 10, formatter: (value: number) => formatValue(value, unit) },
    },
    series: shown.map(({ name, points }) => ({
      name,
      type: 'line',
      silent: true,
      symbol: 'none',
      lineStyle: { width: 1.5 },
      ...(name === calm && { color: CALM_COLOR }),
      ...(isStacked && { stack: 'all', areaStyle: { opacity: 0.2 } }),
      data: points.map(([x, y]) => [x, y === null ? '-' : Number(y.toPrecision(4))]),
    })),
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}

const valuesOf = ({ points }: DrawnSeries): number[] => points.flatMap(([, value]) => (value === null ? [] : [value]))
const maxOf = (series: DrawnSeries): number => Math.max(0, ...valuesOf(series))
const minOf = (series: DrawnSeries): number => Math.min(0, ...valuesOf(series))

/** The sum of series, step by step. */
const totalOf = (series: readonly DrawnSeries[]): DrawnSeries => {
  const steps = series[0]?.points ?? []
  const points = steps.map(
    ([x], step) => [x, series.reduce((sum, one) => sum + (one.points[step]?.[1] ?? 0), 0)] as const,
  )
  return { name: 'total', points }
}

const MEBIBYTE = 2 ** 20
/** The highest value of the axis of a panel at rest. */
const restOf: Readonly<Record<PanelUnit, number>> = {
  s: 1,
  bytes: MEBIBYTE,
  locale: 1,
  short: 1,
  reqps: 1,
  cps: 1,
  percentunit: 0.01,
}

/** Returns the range of an axis, and steps of 1, 2 or 5 times a power of ten (of bytes: times a MiB). */
const axisOf = (series: readonly DrawnSeries[], unit: PanelUnit): { min: number; max: number; interval: number } => {
  const [low, high] = [Math.min(0, ...series.map(minOf)), Math.max(0, ...series.map(maxOf))]
  const one = unit === 'bytes' ? MEBIBYTE : 1
  const range = high - low || restOf[unit]
  const least = unit === 'locale' ? Math.max(1, range / 4) : range / one / 4
  const power = 10 ** Math.floor(Math.log10(least))
  const factor = [1, 2, 5, 10].find(candidate => candidate * power >= least) ?? 10
  const interval = factor * power * one
  const min = Math.floor(low / interval) * interval
  return { min, max: high === 0 && low === 0 ? restOf[unit] : Math.ceil(high / interval) * interval, interval }
}

const short = (value: number): string => Number(value.toPrecision(3)).toLocaleString('en-US')

const formatValue = (value: number, unit: PanelUnit): string => {
  switch (unit) {
    case 's':
      return Math.abs(value) < 1 && value !== 0 ? `${short(value * 1000)} ms` : `${short(value)} s`
    case 'bytes':
      return `${short(value / MEBIBYTE)} MiB`
    case 'percentunit':
      return `${short(value * 100)} %`
    case 'reqps':
    case 'cps':
      return `${short(value)}/s`
    case 'locale':
      return value.toLocaleString('en-US')
    case 'short':
      return short(value)
    default:
      return unit satisfies never
  }
}
