import { expect, test } from 'vitest'
import { figureOfReplay, type Mix, type Round } from '../../../bench/figures/replay-figure.ts'

const data = { payouts: 1_000, organizations: 2, recalculated: 0.1, lines: 6, steps: 8 }
const mix = { others: 500, bulks: { documents: 3_000, bytes: 1e6 } } as Mix

const roundOf = (ceiling: number, projector: number, pipes: Readonly<Record<string, number>>): Round => ({
  ceiling: { seconds: ceiling, cpu: { Elasticsearch: 1, bench: 0.1 } },
  projection: {
    prefix: 'bench-1',
    seconds: projector,
    cpu: { 'the projector': 1, Elasticsearch: 2, Kafka: 1 },
    peakMebibytes: 300,
    records: { applied: 1_500 },
    documents: { written: 3_000 },
    [Symbol.asyncDispose]: async () => {},
  },
  pipes: Object.fromEntries(
    Object.entries(pipes).map(([name, seconds]) => [name, { seconds, cpu: { [name]: 1 }, peakMebibytes: 100 }]),
  ),
})
const rowOf = (rounds: readonly Round[], what: string) =>
  figureOfReplay(data, mix, rounds).rows.find(row => row.what === what)

test('the projector is compared with the ceiling, and with the fastest pipe of its round', () => {
  const rounds = [roundOf(1, 2, { slow: 3, fast: 1 }), roundOf(1, 1, { slow: 2, fast: 4 })]
  expect(rowOf(rounds, 'projector / ceiling')).toMatchObject({ value: 0.75, lowest: 0.5, highest: 1, isRatio: true })
  // 1,500 documents/s against 1,500, then 3,000 against 750.
  expect(rowOf(rounds, 'projector / the fastest plain pipe, documents/s')).toMatchObject({ lowest: 1, highest: 4 })
  expect(rowOf(rounds, 'fast')).toMatchObject({ unit: 'documents/s', highest: 1_500 })
  expect(rowOf(rounds, 'CPU of fast')).toMatchObject({ unit: 'ms per event', value: 1 })
})

test('without a pipe there is no comparison with one', () => {
  expect(rowOf([roundOf(1, 2, {})], 'projector / the fastest plain pipe, documents/s')).toBeUndefined()
})

test('the notes give the limit of shared cores, and the CPU times that it comes from', () => {
  const { notes } = figureOfReplay(data, mix, [roundOf(1, 2, {})])
  expect(notes.join()).toContain('2.000 / (2.000 + 1.000 + 1.000) = 0.50')
})
