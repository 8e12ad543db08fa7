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
/** The maker of a bar is the first one whose pattern fits its name. The legend shows each maker with its colour. */
const makers = [
  { maker: 'plain pipe', of: /plain pipe|helpers\.bulk|esutil/, color: '#9d9d9d' },
  { maker: 'Elasticsearch alone', of: /straight to|bare loop|ceiling/, color: '#f58518' },
  { maker: 'Elasticsearch', of: /: Elasticsearch$/, color: '#54a24b' },
  { maker: 'projector and API, p50', of: /: p50$/, color: '#4c78a8' },
  { maker: 'projector and API, p99', of: /: p99$/, color: '#9ecae9' },
  { maker: 'API', of: /, API$/, color: '#4c78a8' },
  { maker: 'projector', of: /./, color: '#4c78a8' },
] as const
const LEGEND = 28

/** Returns the picture as SVG. */
export const drawPicture = (picture: Picture): string => {
  const height = 'bars' in picture ? AROUND_BARS + LEGEND + BAR * picture.bars.length : LINES_HEIGHT
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
    ...makers.flatMap(one => {
      const data = bars.map(bar => (makerOf(bar) === one ? bar.value : null))
      if (data.every(value => value === null)) return []
      return [{ type: 'bar', name: one.maker, color: one.color, barWidth: BAR / 2, barGap: '-100%', data } as const]
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

const makerOf = ({ name }: Bar) => makers.find(({ of }) => of.test(name))

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
