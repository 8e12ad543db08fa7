import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createHealth, REASONS_LOGGED, type ReportTrouble } from '../../../core/runtime/health.ts'

const setUp = () => {
  const lines: object[] = []
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  let time = 0
  const wait = (milliseconds: number): void => {
    time += milliseconds
  }
  return { lines, wait, health: createHealth(log, () => time) }
}

test('a failing part is logged once, and once more when it works again', () => {
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

test('a part that always worked is not logged', () => {
  const { health, lines } = setUp()
  health.set('kafka', undefined)
  expect(lines).toEqual([])
})

test('a new reason for the same trouble is shown, and logged once', () => {
  const { health, lines } = setUp()
  for (let time = 0; time < 3; time++) {
    health.set('kafka', 'does not answer')
    health.set('kafka', 'does not answer for commission.events 3')
  }
  expect(health.reasons()).toEqual({ kafka: 'does not answer for commission.events 3' })
  expect(lines).toMatchObject([{ reason: 'does not answer' }, { reason: 'does not answer for commission.events 3' }])
  health.set('kafka', undefined)
  health.set('kafka', 'does not answer')
  expect(lines.slice(2)).toMatchObject([{ msg: 'works again' }, { reason: 'does not answer' }])
})

test('the reason of another task of a part is logged, too', async () => {
  const { health, lines } = setUp()
  await health.during('kafka', async first => {
    first('does not answer')
    await health.during('kafka', async second => second('does not answer for commission.events 3'))
  })
  expect(lines).toMatchObject([{ reason: 'does not answer' }, { reason: 'does not answer for commission.events 3' }])
})

test('reasons that follow each other without end do not fill the log', () => {
  const { health, lines } = setUp()
  for (let partition = 0; partition < 100; partition++) health.set('kafka', `does not answer for events ${partition}`)
  expect(lines).toHaveLength(REASONS_LOGGED)
  expect(health.reasons()).toEqual({ kafka: 'does not answer for events 99' })
})

test('a slow start keeps the projector from being ready, but is not logged as trouble', () => {
  const { health, lines } = setUp()
  health.prepare('start', 'preparing')
  health.prepare('start', 'still preparing')
  expect(health.reasons()).toEqual({ start: 'still preparing' })
  health.set('start', undefined)
  expect(health.reasons()).toEqual({})
  expect(lines).toEqual([
    { level: 30, part: 'start', what: 'preparing', msg: 'not ready yet' },
    { level: 30, part: 'start', msg: 'ready' },
  ])
})

test('trouble during a start is logged', () => {
  const { health, lines } = setUp()
  health.prepare('start', 'preparing')
  health.set('start', 'does not answer')
  expect(health.reasons()).toEqual({ start: 'does not answer' })
  expect(lines.at(-1)).toMatchObject({ level: 40, reason: 'does not answer' })
})

test('parts are independent', () => {
  const { health } = setUp()
  health.set('kafka', 'a')
  health.set('events consumer', 'b')
  health.set('kafka', undefined)
  expect(health.reasons()).toEqual({ 'events consumer': 'b' })
})

test('a generation that is released is forgotten without a log line, and no other is', () => {
  const { health, lines } = setUp()
  health.prepare({ generation: 'g2', name: 'consumer' }, 'joining the group')
  health.set({ generation: 'g2', name: 'following g1' }, 'waits')
  health.set({ generation: 'g21', name: 'consumer' }, 'a')
  health.set('kafka', 'b')
  const said = lines.length
  health.forget('g2')
  expect(health.reasons()).toEqual({ 'g21 consumer': 'a', kafka: 'b' })
  expect(lines).toHaveLength(said)
})

describe('several tasks of one part', () => {
  const held = () => Promise.withResolvers<void>()

  test('are in trouble while one of them is; this is logged once, and once more when all work again', async () => {
    const { health, lines } = setUp()
    const [one, other] = [held(), held()]
    const tells: ReportTrouble[] = []
    const both = [one, other].map(({ promise }) =>
      health.during('elasticsearch write', tell => {
        tells.push(tell)
        return promise
      }),
    )
    for (const tell of tells) tell('does not answer')
    tells[0]?.(undefined)
    expect(health.reasons()).toEqual({ 'elasticsearch write': 'does not answer' })
    tells[1]?.(undefined)
    expect(health.reasons()).toEqual({})
    for (const { resolve } of [one, other]) resolve()
    await Promise.all(both)
    expect(lines.map(line => 'msg' in line && line.msg)).toEqual(['does not work; trying again', 'works again'])
  })

  test('leave no reason behind if they are given up, and do not log that the part works', async () => {
    const { health, lines } = setUp()
    const task = health.during('elasticsearch write', async tell => {
      tell('does not answer')
      throw new Error('given up')
    })
    await expect(task).rejects.toThrow('given up')
    expect(health.reasons()).toEqual({})
    expect(lines).toHaveLength(1)
  })

  test('are a reason once they take too long, until they end', async () => {
    const { health, wait } = setUp()
    const one = held()
    const task = health.during('elasticsearch write', () => one.promise, 5_000)
    wait(4_999)
    expect(health.reasons()).toEqual({})
    wait(1)
    expect(health.reasons()).toEqual({ 'elasticsearch write': 'no answer for some seconds' })
    one.resolve()
    await task
    expect(health.reasons()).toEqual({})
  })
})
