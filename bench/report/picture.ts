/** Draws a picture of a figure as SVG. */
import * as echarts from 'echarts'
import type { Bar, Picture } from '../rig/bench.ts'

const WIDTH = 860
const LINES_HEIGHT = 380
/** Pixels of a bar with its margin, and of title and axis. */
const BAR = 42
const AROUND_BARS = 110
const COLORS = ['#4c78a8', '#f58518', '#54a24b', '#b279a2', '#e45756', '#9d755d']
const SPREAD = '#333333'
/** Width of a character in a wide font without serifs, as a part of its height. Nothing measures texts here. */
const CHARACTER_WIDTH = 0.62
const measureText = (text: string, font?: string) => ({
  width: text.length * Number(/([\d.]+)px/.exec(font ?? '')?.[1] ?? 12) * CHARACTER_WIDTH,
})
/** The maker of a bar is the first one whose pattern fits its name. A percentile of it has the second colour. */
const makers = [
  { maker: 'plain pipe', of: /plain pipe|helpers\.bulk|esutil/, colors: ['#8a8a8a', '#c8c8c8'] },
  { maker: 'Elasticsearch alone', of: /straight to|bare loop|ceiling/, colors: ['#f58518', '#fbc590'] },
  { maker: 'Elasticsearch', of: /: Elasticsearch$/, colors: ['#54a24b', '#a9d0a5'] },
  { maker: 'projector and API', of: /: p\d+$/, colors: ['#4c78a8', '#9ecae9'] },
  { maker: 'API', of: /, API$/, colors: ['#4c78a8', '#9ecae9'] },
  { maker: 'projector', of: /projector|^chains of /, colors: ['#4c78a8', '#9ecae9'] },
] as const
const PERCENTILE = /[:,] (p\d+)$/
const LEGEND = 28

/** Returns the picture as SVG. */
export const drawPicture = (picture: Picture): string => {
  const height = 'bars' in picture ? AROUND_BARS + LEGEND + BAR * picture.bars.length : LINES_HEIGHT
  echarts.setPlatformAPI({ measureText })
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  const title = { text: picture.title, left: 16, top: 12, textStyle: { fontSize: 15 } }
  const shown = 'bars' in picture ? barsOf(picture.bars, picture.unit) : linesOf(picture)
  chart.setOption({ animation: false, backgroundColor: '#ffffff', color: COLORS, title, ...shown })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return `${svg}\n`
}

/** Bars below each other, each with a line from lowest to highest. */
const barsOf = (bars: readonly Bar[], unit: string): echarts.EChartsCoreOption => ({
  grid: { left: 32, right: 60, top: 48 + LEGEND, bottom: 44, containLabel: true },
  legend: { top: 40, left: 16, itemGap: 24, selectedMode: false },
  xAxis: { type: 'value', name: unit, nameLocation: 'middle', nameGap: 28 },
  yAxis: { type: 'category', inverse: true, data: bars.map(labelOf), axisTick: { show: false } },
  series: [
    ...[...Map.groupBy(bars, entryOf)].map(([name, of]) => {
      const data = bars.map(bar => (of.includes(bar) ? bar.value : null))
      return { type: 'bar', name, color: colorOf(of), barWidth: BAR / 2, barGap: '-100%', data } as const
    }),
    {
      type: 'custom',
      renderItem: drawSpread,
      encode: { x: [1, 2], y: 0 },
      data: bars.flatMap(({ lowest, highest }, index) =>
        lowest === undefined || highest === undefined ? [] : [[index, lowest, highest]],
      ),
      z: 3,
    },
  ],
})

/** @throws Error for a bar of an unknown maker: its legend would be wrong */
const makerOf = ({ name }: Bar): (typeof makers)[number] => {
  const maker = makers.find(({ of }) => of.test(name))
  if (maker === undefined) throw new Error(`expected a bar whose name says its maker, got ${JSON.stringify(name)}`)
  return maker
}

/** Returns the maker of a bar, with its percentile if it has one. */
const entryOf = (bar: Bar): string => {
  const [, percentile] = PERCENTILE.exec(bar.name) ?? []
  return percentile === undefined ? makerOf(bar).maker : `${makerOf(bar).maker}, ${percentile}`
}

/** The bars are of one maker. p50 has the first colour. */
const colorOf = ([bar]: readonly Bar[]): string | undefined => bar && makerOf(bar).colors[/p99$/.test(bar.name) ? 1 : 0]

/** With the value, because a short bar has no room for it. */
const labelOf = ({ name, value }: Bar): string =>
  `${name}: ${value >= 100 ? Math.round(value).toLocaleString('en-US') : Number(value.toPrecision(3))}`

const drawSpread: echarts.CustomSeriesRenderItem = (_, api) => {
  const [left = 0, y = 0] = api.coord([api.value(1), api.value(0)])
  const [right = 0] = api.coord([api.value(2), api.value(0)])
  const stroke = (x1: number, y1: number, x2: number, y2: number) =>
    ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: SPREAD, lineWidth: 1.5 } }) as const
  const end = BAR / 8
  return {
    type: 'group',
    children: [stroke(left, y, right, y), stroke(left, y - end, left, y + end), stroke(right, y - end, right, y + end)],
  }
}

const linesOf = ({ unit, x, lines }: Extract<Picture, { readonly x: unknown }>): echarts.EChartsCoreOption => ({
  grid: { left: 32, right: 48, top: lines.length > 1 ? 104 : 72, bottom: 44, containLabel: true },
  legend: { show: lines.length > 1, top: 40, left: 16, itemGap: 24, data: lines.map(({ name }) => name) },
  xAxis: {
    type: x.isLog ? 'log' : 'value',
    name: x.title,
    nameLocation: 'middle',
    nameGap: 28,
    min: 'dataMin',
    max: 'dataMax',
  },
  yAxis: { type: 'value', name: unit, min: 0, nameTextStyle: { align: 'left' } },
  series: lines.map(({ name, points }) => ({ name, type: 'line', data: points, symbolSize: 6 })),
})
