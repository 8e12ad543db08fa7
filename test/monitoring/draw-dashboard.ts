/** Draws a Grafana dashboard of deploy/monitoring/ as SVG: its panels, in its order, two in a row. */
import * as echarts from 'echarts'
import type { PanelUnit } from '../contract/dashboards.ts'

export type DrawnSeries = { readonly name: string; readonly points: readonly (readonly [number, number | null])[] }
export type DrawnPanel = { readonly title: string; readonly unit: PanelUnit; readonly series: readonly DrawnSeries[] }

const WIDTH = 560
const HEIGHT = 250
const HEAD = 44
/** Series of a panel that are drawn: those with the highest values. */
const SERIES_MAX = 8
/** Grafana's classic colors. */
const COLORS = ['#3274d9', '#56a64b', '#e0b400', '#e02f44', '#ff780a', '#8f3bb8', '#37872d', '#5794f2']

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

const drawPanel = ({ title, unit, series }: DrawnPanel, seconds: number): string => {
  const shown = series.toSorted((a, b) => maxOf(b) - maxOf(a)).slice(0, SERIES_MAX)
  const more = series.length - shown.length
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  const rows = Math.ceil(shown.length / 2)
  chart.setOption({
    animation: false,
    color: COLORS,
    title: {
      text: title + (more > 0 ? `  (and ${more} more, not drawn)` : ''),
      left: 16,
      top: 6,
      textStyle: { fontSize: 13 },
    },
    legend: {
      left: 12,
      bottom: 4,
      width: WIDTH - 24,
      itemWidth: 14,
      itemHeight: 3,
      icon: 'rect',
      itemGap: 6,
      textStyle: { fontSize: 10, width: (WIDTH - 90) / 2, overflow: 'truncate' },
      data: shown.map(({ name }) => name),
    },
    grid: { left: 70, right: 16, top: 34, bottom: 28 + 15 * Math.max(rows, 1) },
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
      min: Math.min(0, ...series.map(minOf)),
      max: Math.max(...series.map(maxOf)) > 0 ? undefined : 1,
      splitNumber: 3,
      axisLabel: { fontSize: 10, formatter: (value: number) => formatValue(value, unit) },
    },
    series: shown.map(({ name, points }) => ({
      name,
      type: 'line',
      silent: true,
      symbol: 'none',
      lineStyle: { width: 1.5 },
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

const short = (value: number): string => Number(value.toPrecision(3)).toLocaleString('en-US')

const formatValue = (value: number, unit: PanelUnit): string => {
  switch (unit) {
    case 's':
      return Math.abs(value) < 1 && value !== 0 ? `${short(value * 1000)} ms` : `${short(value)} s`
    case 'bytes':
      return `${short(value / 2 ** 20)} MiB`
    case 'percentunit':
      return `${short(value * 100)} %`
    case 'reqps':
      return `${short(value)}/s`
    case 'short':
      return short(value)
    default:
      return unit satisfies never
  }
}
