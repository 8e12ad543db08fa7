/** The command line of the bench. */
import { expect, test } from 'vitest'
import { readOptions } from '../../bench/options.ts'
import { figureNames } from '../../bench/rig/bench.ts'

test('without options everything is measured, and nothing compared', () => {
  expect(readOptions([])).toEqual({
    help: false,
    quick: false,
    compare: false,
    render: false,
    figures: figureNames,
    profile: undefined,
  })
})

test('figures are measured in their own order, whatever order they are named in', () => {
  expect(readOptions(['--only', 'growth', '--only', 'replay']).figures).toEqual(['replay', 'growth'])
})

test.each([
  [['--only', 'repaly'], 'got repaly'],
  [['--compare', '--quick'], '--compare is with a whole run'],
  [['--render', '--quick'], '--render measures nothing'],
  [['--render', '--only', 'api'], '--render measures nothing'],
  [['--profile', 'here', '--only', 'api'], '--profile is of a replay round'],
  [['--fast'], '--fast'],
])('%j is refused with what is wrong', (args, message) => {
  expect(() => readOptions(args)).toThrow(message)
})

test('a figure can be compared by itself', () => {
  expect(readOptions(['--compare', '--only', 'replay'])).toMatchObject({ compare: true, figures: ['replay'] })
})
