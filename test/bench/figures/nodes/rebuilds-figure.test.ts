import { expect, test } from 'vitest'
import { rebuildsFigure } from '../../../../bench/figures/nodes/rebuilds-figure.ts'
import { quickRun } from '../../../../bench/rig/sizes.ts'

test('the sum of the rates is compared with as many limits as there are processes', () => {
  const cores = { Elasticsearch: 0.5 }
  const { rows } = rebuildsFigure({ ...quickRun.nodes.rebuilds, maxRate: 100 }, [
    { count: 2, perSecond: 200, cores },
    { count: 4, perSecond: 360, cores },
  ])
  const ratios = rows.filter(({ isRatio }) => isRatio)
  expect(ratios.map(({ what, value, atLeast }) => [what, value, atLeast])).toEqual([
    ['2 rebuilds: sum / limits', 1, 0.9],
    ['4 rebuilds: sum / limits', 0.9, 0.9],
  ])
})
