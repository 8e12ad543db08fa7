import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createHealth } from '../../projector/health.ts'

const setUp = () => {
  const lines: object[] = []
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  return { lines, health: createHealth(log) }
}

test('a part that does not work is said once, and once that it works again', () => {
  const { health, lines } = setUp()
  for (let time = 0; time < 3; time++) health.set('kafka', 'does not answer')
  expect(health.reasons()).toEqual({ kafka: 'does not answer' })
  for (let time = 0; time < 3; time++) health.set('kafka', undefined)
  expect(health.reasons()).toEqual({})
  expect(lines).toEqual([
    { level: 40, part: 'kafka', reason: 'does not answer', msg: 'does not work; trying again' },
    { level: 30, part: 'kafka', msg: 'works again' },
  ])
})

test('a part that always worked is not spoken of', () => {
  const { health, lines } = setUp()
  health.set('kafka', undefined)
  expect(lines).toEqual([])
})

test('another reason for the same trouble is shown, and is no new trouble in the log', () => {
  const { health, lines } = setUp()
  health.set('elasticsearch write', 'does not answer')
  health.set('elasticsearch write', 'answers 503')
  expect(health.reasons()).toEqual({ 'elasticsearch write': 'answers 503' })
  expect(lines).toHaveLength(1)
})

test('each part stands by itself', () => {
  const { health } = setUp()
  health.set('kafka', 'a')
  health.set('events consumer', 'b')
  health.set('kafka', undefined)
  expect(health.reasons()).toEqual({ 'events consumer': 'b' })
})
