import { expect, test } from 'vitest'
import { type CopyRound, copyFigure, cpuOfEach } from '../../../../bench/figures/nodes/nodes-figure.ts'
import { quickRun } from '../../../../bench/rig/sizes.ts'

const sizes = quickRun.nodes
const round = (times: number, cpu: (name: string) => number): CopyRound => ({
  pages: new Map([50, 200].map(limit => [limit, { p50: limit * times, cpu: cpu('Elasticsearch') }])),
  p50: 20 * times,
  p99: 100 * times,
  event: { Elasticsearch: cpu('Elasticsearch'), Kafka: cpu('Kafka'), 'the projector': 1 },
  replay: 1_000 / times,
  replayed: { Elasticsearch: cpu('Elasticsearch'), Kafka: cpu('Kafka'), 'the projector': 1 },
})
const rowsOf = (one: CopyRound[], three: CopyRound[]) =>
  new Map(copyFigure(sizes, { one, three }).rows.map(row => [row.what, row]))

test('three of each are compared with one of each in the same round, because the machine changes between rounds', () => {
  const cpu = (factor: number) => () => factor
  const rows = rowsOf([round(1, cpu(1)), round(10, cpu(1))], [round(2, cpu(2)), round(20, cpu(2))])
  expect(rows.get('200 events/s: publish → visible, p50, three / one')).toMatchObject({
    value: 2,
    lowest: 2,
    highest: 2,
  })
  expect(rows.get('200 events/s: publish → visible, p50, one of each')).toMatchObject({ lowest: 20, highest: 200 })
  expect(rows.get('replay, three / one')).toMatchObject({ value: 0.5, isRatio: true })
})

test('only the CPU has a bound: a copy may cost as much as the primary, and a page asks one copy', () => {
  const rows = rowsOf([round(1, () => 1)], [round(9, () => 1)])
  const bounds = [...rows].flatMap(([what, { atMost }]) => (atMost === undefined ? [] : [[what, atMost]]))
  expect(bounds).toEqual([
    ['200 events/s: CPU of Elasticsearch for each event, three / one', 2],
    ['page of 50: CPU of Elasticsearch for each, three / one', 1.2],
    ['page of 200: CPU of Elasticsearch for each, three / one', 1.2],
    ['replay: CPU of Elasticsearch for each record, three / one', 2],
  ])
})

test('where the CPU of servers is not known, the figure has the times alone', () => {
  const unknown = round(1, () => Number.NaN)
  const what = [...rowsOf([unknown], [unknown]).keys()]
  expect(what).toContain('page of 50, p50, three / one')
  expect(what.filter(name => /CPU of (?:Elasticsearch|Kafka)/.test(name))).toEqual([])
})

test('the CPU of a process is divided among the events, in milliseconds', () => {
  expect(cpuOfEach({ Elasticsearch: 2, Kafka: 0.5 }, 1_000)).toEqual({ Elasticsearch: 2, Kafka: 0.5 })
})
