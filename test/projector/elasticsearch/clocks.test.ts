import { describe, expect, test } from 'vitest'
import { type Answer, Unavailable } from '../../../projector/elasticsearch/client.ts'
import { createClocks } from '../../../projector/elasticsearch/clocks.ts'
import { StopError } from '../../../projector/failures.ts'
import { CLOCK_LOOK_MS, CLOCKS_APART_MS } from '../../../projector/limits.ts'
import { everythingRuns } from '../held.ts'

const START = 1_770_000_000_000
const HOUR = 3_600_000

const setUp = () => {
  const machine = {
    elapsed: 50,
    ours: START,
    theirs: START,
    asked: 0,
    roundTrip: 0,
    failure: undefined as unknown,
    answer: undefined as unknown,
  }
  const changes: string[] = []
  const clocks = createClocks({
    now: () => machine.ours,
    elapsed: () => machine.elapsed,
    send: async (): Promise<Answer> => {
      machine.asked++
      await Promise.resolve()
      const timestamp = machine.theirs
      pass(machine.roundTrip)
      if (machine.failure !== undefined) throw machine.failure
      return { status: 200, body: machine.answer ?? { nodes: { node: { timestamp } } } }
    },
    onChange: code => changes.push(code),
  })
  const pass = (milliseconds: number): void => {
    machine.elapsed += milliseconds
    machine.ours += milliseconds
    machine.theirs += milliseconds
  }
  /** Two readings: the first may begin a look at Elasticsearch's clock. */
  const read = async () => {
    clocks.read()
    await everythingRuns()
    return clocks.read()
  }
  return { machine, changes, clocks, pass, read }
}

describe('the time that may be published', () => {
  test('is not known before Elasticsearch was asked', async () => {
    const { clocks, read } = setUp()
    expect(clocks.read()).toBeUndefined()
    expect(await read()).toEqual({ reached: START, latest: START })
  })

  test('goes on between two looks, and few are taken', async () => {
    const { machine, pass, read } = setUp()
    await read()
    for (let passed = 0; passed < 3 * CLOCK_LOOK_MS; passed += 400) {
      pass(400)
      expect((await read())?.reached).toBe(machine.ours)
    }
    expect(machine.asked).toBe(3)
  })

  test.each([
    ['ours jumps ahead', 'ours', HOUR, { reached: START, latest: START + HOUR }],
    ['ours is set back', 'ours', -HOUR, { reached: START - HOUR, latest: START }],
  ] as const)('is the earlier of both at once when %s', async (_, clock, jump, expected) => {
    const { machine, changes, clocks, read } = setUp()
    await read()
    machine[clock] += jump
    expect(await read()).toEqual(expected)
    expect(changes).toEqual(['clocks_disagree'])
    expect(clocks.state()).toEqual({ elasticsearch_ahead_ms: -jump, agree: false })
    machine[clock] -= jump
    await read()
    expect(changes).toEqual(['clocks_disagree', 'clocks_agree'])
  })

  test.each([HOUR, -HOUR])(
    'is the earlier of both after the next look when that of Elasticsearch jumps by %s',
    async jump => {
      const { machine, pass, read } = setUp()
      await read()
      pass(CLOCK_LOOK_MS)
      machine.theirs += jump
      const { ours } = machine
      expect(await read()).toEqual({ reached: Math.min(ours, ours + jump), latest: Math.max(ours, ours + jump) })
    },
  )

  test('is late rather than early where an answer takes its time, and goes by no answer that takes long', async () => {
    const { machine, pass, read } = setUp()
    const lateBy = async () => {
      const { reached = 0, latest = 0 } = (await read()) ?? {}
      return latest - reached
    }
    machine.roundTrip = 300
    expect(await lateBy()).toBe(300)
    machine.roundTrip = CLOCKS_APART_MS + 1
    pass(CLOCK_LOOK_MS)
    expect(await lateBy()).toBe(300)
  })

  test('is that of the last look while Elasticsearch does not answer', async () => {
    const { machine, pass, read } = setUp()
    await read()
    machine.failure = new Unavailable(0)
    machine.ours += HOUR
    pass(10 * CLOCK_LOOK_MS)
    expect((await read())?.reached).toBe(machine.ours - HOUR)
  })

  test.each([
    ['an answer of no node', { nodes: {} }],
    ['a refusal', new StopError('access_refused', 'Elasticsearch answers 403')],
  ])('is that of the last look, never ours alone, after %s', async (_, answer) => {
    const { machine, changes, pass, read } = setUp()
    await read()
    if (answer instanceof Error) machine.failure = answer
    else machine.answer = answer
    machine.ours += HOUR
    pass(CLOCK_LOOK_MS)
    expect((await read())?.reached).toBe(machine.ours - HOUR)
    expect(changes).toEqual(['clocks_disagree'])
  })

  test('is ours alone where Elasticsearch does not tell its clock to us, and that is said once', async () => {
    const { machine, changes, clocks, pass, read } = setUp()
    machine.failure = new StopError('access_refused', 'Elasticsearch answers 403')
    expect(await read()).toEqual({ reached: START, latest: START })
    pass(CLOCK_LOOK_MS)
    await read()
    expect(changes).toEqual(['clock_unknown'])
    expect(clocks.state()).toEqual({ elasticsearch_ahead_ms: null, agree: true })
  })
})
