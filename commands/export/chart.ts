/** Draws what is owed and paid by period, a panel by currency. Amounts become numbers only here: a bar is not exact. */

import type { Totals } from '../../schemas/resources.ts'
import { CommandError } from '../failures.ts'

/** Of one period and currency; `period` is its name. */
export type TotalsRow = Totals['totals'][number] & { readonly period: string; readonly still_owed: string }

/**
 * Pixels: width of a period, width beside the bars, height of a panel, of its labels and of the legend, least width.
 */
const PERIOD = 10
const MARGIN = 130
const PANEL = 380
const LABELS = 170
const HEAD = 60
const WIDTH_MIN = 960

/** @throws CommandError if echarts is not installed: it is a development package, and not in the image */
export const drawTotals = async (rows: readonly TotalsRow[]): Promise<string> => {
  const echarts = await import('echarts').catch(() => {
    throw new CommandError('drawing needs the packages for development: npm ci')
  })
  const panels = [...Map.groupBy(rows, ({ currency }) => currency)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const chart = echarts.init(null, null, {
    renderer: 'svg',
    ssr: true,
    width: Math.max(WIDTH_MIN, MARGIN + PERIOD * Math.max(0, ...panels.map(([, of]) => of.length))),
    height: HEAD + PANEL * Math.max(1, panels.length),
  })
  const top = (panel: number): number => HEAD + PANEL * panel
  const series = [
    { name: 'owed', color: '#4c78a8', amount: (row: TotalsRow) => row.owed_amount },
    { name: 'paid', color: '#f58518', amount: (row: TotalsRow) => row.paid_amount },
  ]
  chart.setOption({
    animation: false,
    legend: { top: 16, data: series.map(({ name }) => name) },
    title: panels.map(([currency], panel) => ({
      text: currency,
      left: 16,
      top: top(panel),
      textStyle: { fontSize: 14 },
    })),
    grid: panels.map((_, panel) => ({ left: 90, right: 24, top: top(panel) + 36, height: PANEL - LABELS })),
    xAxis: panels.map(([, of], panel) => ({
      gridIndex: panel,
      type: 'category',
      data: of.map(({ period }) => period),
      axisLabel: { rotate: of.length > 8 ? 40 : 0 },
    })),
    yAxis: panels.map((_, panel) => ({ gridIndex: panel, type: 'value' })),
    series: panels.flatMap(([, of], panel) =>
      series.map(({ name, color, amount }) => ({
        name,
        type: 'bar',
        xAxisIndex: panel,
        yAxisIndex: panel,
        itemStyle: { color },
        data: of.map(row => Number(amount(row))),
      })),
    ),
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}
