import { expect, test } from 'vitest'
import { rebuildsFigure } from '../../../../bench/figures/nodes/rebuilds-figure.ts'
import { quickRun } from '../../../../bench/rig/sizes.ts'

test('the sum of the rates is compared with as many limits as there are processes', () => {
  const atOnce = (perSecond: number) => ({ perSecond, cores: { Elasticsearch: 0.5 } })
  const sizes = { ...quickRun.nodes.rebuilds, maxRate: 100 }
  const { rows } = rebuildsFigure(sizes, [
    { count: 2, groups: atOnce(200), together: atOnce(100) },
    { count: 4, groups: atOnce(360), together: atOnce(100) },
  ])
  const ratios = rows.filter(({ isRatio }) => isRatio)
  expect(ratios.map(({ what, value }) => [what, value])).toEqual([
    ['2 groups, a process each: sum / limits', 1],
    ['2 processes for one generation: sum / limits', 0.5],
    ['4 groups, a process each: sum / limits', 0.9],
    ['4 processes for one generation: sum / limits', 0.25],
  ])
  for (const { atLeast } of ratios) expect(atLeast).toBe(0.9)
})
