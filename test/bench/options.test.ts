import { expect, test } from 'vitest'
import { readOptions } from '../../bench/options.ts'
import { figureNames } from '../../bench/rig/bench.ts'

test('without options everything is measured and nothing is compared', () => {
  expect(readOptions([])).toEqual({
    help: false,
    quick: false,
    compare: false,
    render: false,
    store: true,
    figures: figureNames,
    profile: undefined,
  })
})

test('figures are measured in a fixed order, whatever the order of the options', () => {
  expect(readOptions(['--only', 'growth', '--only', 'replay']).figures).toEqual(['replay', 'growth'])
})

test.each([
  [['--only', 'repaly'], 'got repaly'],
  [['--compare', '--quick'], '--compare needs a whole run'],
  [['--render', '--quick'], '--render measures nothing'],
  [['--render', '--only', 'api'], '--render measures nothing'],
  [['--profile', 'here', '--only', 'api'], '--profile needs a replay round'],
  [['--store', '--quick'], '--store needs full sizes'],
  [['--store', '--render'], '--render measures nothing'],
  [['--fast'], '--fast'],
])('%j is refused with a message about the mistake', (args, message) => {
  expect(() => readOptions(args)).toThrow(message)
})

test('a part of the bench is stored only if that is asked for', () => {
  expect(readOptions(['--live']).store).toBe(false)
  expect(readOptions(['--live', '--store'])).toMatchObject({ store: true, figures: ['freshness'] })
})

test('a single figure can be compared', () => {
  expect(readOptions(['--compare', '--only', 'replay'])).toMatchObject({ compare: true, figures: ['replay'] })
})
