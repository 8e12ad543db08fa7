import { describe, expect, test } from 'vitest'
import { StopError } from '../../../../core/runtime/failures.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import { createClocks } from '../../../../core/store/elasticsearch/clocks.ts'
import { CLOCK_INTERVAL_MS, CLOCK_SILENCES, CLOCKS_APART_MS } from '../../../../core/store/limits.ts'
import { everythingRuns } from '../../../projector/held.ts'
import { proxied, sending } from '../../../support/answering.ts'

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
    isForbidden: false,
  }
  const changes: string[] = []
  const clocks = createClocks({
    now: () => machine.ours,
    elapsed: () => machine.elapsed,
    send: sending(async ({ isOptional = false }) => {
      machine.asked++
      await Promise.resolve()
      const timestamp = machine.theirs
      pass(machine.roundTrip)
      if (machine.failure !== undefined) throw machine.failure
      if (machine.isForbidden) return proxied(isOptional)
      return { status: 200, body: machine.answer ?? { _nodes: { failed: 0 }, nodes: { node: { timestamp } } } }
    }),
    onChange: code => changes.push(code),
  })
  const pass = (milliseconds: number): void => {
    machine.elapsed += milliseconds
    machine.ours += milliseconds
    machine.theirs += milliseconds
  }
  /** Reads twice: the first read may start a request for the clock of Elasticsearch. */
  const read = async () => {
    clocks.read()
    await everythingRuns()
    return clocks.read()
  }
  return { machine, changes, clocks, pass, read }
}

describe('the time that may be published', () => {
  test('is unknown until Elasticsearch has answered', async () => {
    const { clocks, read } = setUp()
    expect(clocks.read()).toBeUndefined()
    expect(await read()).toEqual({ reached: START, latest: START })
  })

  test('advances between two requests, and requests are rare', async () => {
    const { machine, pass, read } = setUp()
    await read()
    for (let passed = 0; passed < 3 * CLOCK_INTERVAL_MS; passed += 400) {
      pass(400)
      expect((await read())?.reached).toBe(machine.ours)
    }
    expect(machine.asked).toBe(3)
  })

  test.each([
    ['ours jumps ahead', 'ours', HOUR, { reached: START, latest: START + HOUR }],
    ['ours is set back', 'ours', -HOUR, { reached: START - HOUR, latest: START }],
  ] as const)('is at once the earlier of both clocks when %s', async (_, clock, jump, expected) => {
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
    'is the earlier of both clocks after the next request when that of Elasticsearch jumps by %s',
    async jump => {
      const { machine, pass, read } = setUp()
      await read()
      pass(CLOCK_INTERVAL_MS)
      machine.theirs += jump
      const { ours } = machine
      expect(await read()).toEqual({ reached: Math.min(ours, ours + jump), latest: Math.max(ours, ours + jump) })
    },
  )

  test('is late rather than early if a response takes time, and ignores a response that takes too long', async () => {
    const { machine, pass, read } = setUp()
    const lateBy = async () => {
      const { reached = 0, latest = 0 } = (await read()) ?? {}
      return latest - reached
    }
    machine.roundTrip = 300
    expect(await lateBy()).toBe(300)
    machine.roundTrip = CLOCKS_APART_MS + 1
    pass(CLOCK_INTERVAL_MS)
    expect(await lateBy()).toBe(300)
  })

  test('follows the last response while Elasticsearch does not answer', async () => {
    const { machine, pass, read } = setUp()
    await read()
    machine.failure = new Unanswered('elasticsearch', 0)
    machine.ours += HOUR
    pass(10 * CLOCK_INTERVAL_MS)
    expect((await read())?.reached).toBe(machine.ours - HOUR)
  })

  test.each([
    ['a response without a node', { _nodes: { failed: 0 }, nodes: {} }],
    ['a refusal', new StopError('access_refused', 'Elasticsearch answers 403')],
  ])('follows the last response, and never our clock alone, after %s', async (_, answer) => {
    const { machine, changes, pass, read } = setUp()
    await read()
    if (answer instanceof Error) machine.failure = answer
    else machine.answer = answer
    machine.ours += HOUR
    pass(CLOCK_INTERVAL_MS)
    expect((await read())?.reached).toBe(machine.ours - HOUR)
    expect(changes).toEqual(['clocks_disagree'])
  })

  test('is our clock alone if Elasticsearch refuses to tell its clock, and that is reported once', async () => {
    const { machine, changes, clocks, pass, read } = setUp()
    machine.failure = new StopError('access_refused', 'Elasticsearch answers 403')
    expect(await read()).toEqual({ reached: START, latest: START })
    pass(CLOCK_INTERVAL_MS)
    await read()
    expect(changes).toEqual(['clock_unknown'])
    expect(clocks.state()).toEqual({ elasticsearch_ahead_ms: null, agree: true })
  })
  test('is unknown while a proxy reloads at the first question, also if our clock is ahead', async () => {
    const { machine, changes, pass, read } = setUp()
    machine.isForbidden = true
    machine.ours += HOUR
    expect(await read()).toBeUndefined()
    machine.isForbidden = false
    pass(CLOCK_INTERVAL_MS)
    expect((await read())?.reached).toBe(machine.theirs)
    expect(changes).toEqual(['clocks_disagree'])
  })
  test('is our clock alone while a proxy answers 404 to the question', async () => {
    const { machine, changes, pass, read } = setUp()
    machine.isForbidden = true
    machine.theirs -= HOUR
    for (let silences = 1; silences < CLOCK_SILENCES; silences++) {
      expect(await read()).toBeUndefined()
      pass(CLOCK_INTERVAL_MS)
    }
    expect(await read()).toEqual({ reached: machine.ours, latest: machine.ours })
    machine.isForbidden = false
    pass(CLOCK_INTERVAL_MS)
    expect((await read())?.reached).toBe(machine.theirs)
    expect(changes).toEqual(['clock_unknown', 'clocks_disagree'])
  })
})
