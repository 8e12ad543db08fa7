/** A counter in a Redis that answers, but refuses to count: as a master does that became a replica. */
import { expect, onTestFinished, test } from 'vitest'
import { createRedisCounter } from '../../../api/access/limit-rate.ts'
import { REDIS_RETRY_INTERVAL } from '../../../api/limits.ts'
import { startRespServer } from '../../support/resp-server.ts'
import { eventually, type Scope } from '../../support/scope.ts'

const RATE = { requests: 10, windowSeconds: 60 }
const REPLICA = "-READONLY You can't write against a read only replica. script: 1, on @user_script:1.\r\n"
const OLD_REPLICA = "-ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't.\r\n"

/** @param answers what each connection answers to a count, the last one from there on */
const counting = async (scope: Scope, ...answers: readonly string[]) => {
  const { url, connections } = await startRespServer(scope, (_, at) => answers[Math.min(at, answers.length - 1)] ?? '')
  const told: (readonly [boolean, string | undefined])[] = []
  let time = 0
  let alone = 0
  const counter = await createRedisCounter(url, 'test-rate', RATE, () => time, {
    onSharedChange: (shared, refusal) => void told.push([shared, refusal]),
    onLocalCount: () => void alone++,
  })
  scope.onTestFinished(async () => counter.stop())
  await eventually(() => expect(told).toEqual([[true, undefined]]))
  const pass = () => (time += REDIS_RETRY_INTERVAL)
  return { counter, connections, told, alone: () => alone, pass }
}

const COUNTED = '*2\r\n:3\r\n:60000\r\n'

test.each([REPLICA, OLD_REPLICA])(
  'a Redis that became a replica is left for the one that its name leads to by then; the word of Redis is told',
  async replica => {
    const { counter, connections, told, alone, pass } = await counting({ onTestFinished }, replica, COUNTED)
    expect((await counter.consume('key')).consumedPoints).toBe(1)
    expect([told.at(-1), alone()]).toEqual([[false, 'READONLY'], 1])
    await eventually(async () => {
      pass()
      expect((await counter.consume('key')).consumedPoints).toBe(3)
    })
    expect([told.at(-1), connections()]).toEqual([[true, undefined], 2])
  },
)

test('a Redis that refuses for long is told of once, asked once for each pause, and refuses no request', async () => {
  const { counter, connections, told, alone, pass } = await counting({ onTestFinished }, '-OOM no memory.\r\n')
  for (let count = 1; count <= 5; count++) expect((await counter.consume('key')).consumedPoints).toBe(count)
  await eventually(() => expect(connections()).toBe(2))
  for (const wanted of [3, 4]) {
    await eventually(async () => {
      if (connections() < wanted) {
        pass()
        await counter.consume('key')
      }
      expect(connections()).toBe(wanted)
    })
  }
  expect(told).toEqual([
    [true, undefined],
    [false, 'OOM'],
  ])
  expect(alone()).toBeGreaterThanOrEqual(7)
})

test('a Redis that refuses many requests at once is connected to once more', async () => {
  const { counter, connections, pass } = await counting({ onTestFinished }, '-OOM no memory.\r\n')
  pass()
  await Promise.all(Array.from({ length: RATE.requests }, () => counter.consume('key')))
  await eventually(() => expect(connections()).toBe(2))
})

test('a Redis that refuses the credentials is told of by its word', async () => {
  const { url } = await startRespServer({ onTestFinished }, () => '-NOAUTH Authentication required.\r\n')
  const told: (readonly [boolean, string | undefined])[] = []
  const counter = await createRedisCounter(`${url}/3`, 'test-rate', RATE, () => 0, {
    onSharedChange: (shared, refusal) => void told.push([shared, refusal]),
    onLocalCount: () => undefined,
  })
  onTestFinished(() => counter.stop())
  await eventually(() => expect(told).toEqual([[false, 'NOAUTH']]))
})
