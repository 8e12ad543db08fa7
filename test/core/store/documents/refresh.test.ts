import { describe, expect, test } from 'vitest'
import { StopError } from '../../../../core/runtime/failures.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import { createRefresh } from '../../../../core/store/documents/refresh.ts'
import type { Answer } from '../../../../core/store/elasticsearch/client.ts'
import { WRITES_HELD_MS } from '../../../../core/store/limits.ts'
import { Clock } from '../../../projector/clock.ts'
import { everythingRuns, Held } from '../../../projector/held.ts'
import { sending } from '../../../support/answering.ts'
import { heapInUse } from '../../../support/heap.ts'

const shards = (total: number, successful: number): Answer => ({
  status: 200,
  body: { _shards: { total, successful, failed: 0 } },
})
const fine = shards(2, 2)
const health = (status: string, active_shards: number): Answer => ({ status: 200, body: { status, active_shards } })

const setUp = (interval = 0) => {
  const clock = new Clock()
  const requests = new Held<string, Answer>()
  const done: string[] = []
  const { refresh, untilRefreshed, endAllDelays } = createRefresh({
    keepTrying: async attempt => {
      for (;;) {
        try {
          return await attempt()
        } catch (error) {
          if (!(error instanceof Unanswered)) throw error
        }
      }
    },
    send: sending(({ method, path }) => requests.call(`${method} ${path}`)),
    elapsed: clock.now,
    sleep: clock.sleep,
    interval,
  })
  /** Asks for a refresh, and adds this name to `done` when it ends. */
  const ask = async (name: string, indices: string[], delay = 0): Promise<void> => {
    refresh(indices, delay).then(
      () => done.push(name),
      (error: unknown) => done.push(`${name}: ${error instanceof StopError ? error.code : error}`),
    )
    await everythingRuns()
  }
  const paths = () => requests.calls.map(({ argument }) => argument)
  return { clock, requests, done, ask, paths, untilRefreshed, endAllDelays }
}

describe('a refresh', () => {
  test('starts at once, and ends when every shard has answered', async () => {
    const { ask, requests, done, paths } = setUp()
    await ask('one', ['payouts', 'reps'])
    expect(paths()).toEqual(['POST /payouts,reps/_refresh'])
    expect(done).toEqual([])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['one'])
  })

  test('runs alone: requests that come meanwhile share the next one, with the indices of all', async () => {
    const { ask, requests, done, paths } = setUp()
    await ask('first', ['reps'])
    await ask('second', ['payouts'])
    await ask('third', ['reps', 'payroll_files'])
    expect(paths()).toEqual(['POST /reps/_refresh'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first'])
    expect(paths()).toEqual(['POST /payouts,payroll_files,reps/_refresh'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second', 'third'])
    expect(requests.count).toBe(2)
  })

  test('never counts for a request that came after it began', async () => {
    const { ask, requests, done } = setUp()
    await ask('first', ['reps'])
    await ask('second', ['reps'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first'])
    await ask('third', ['reps'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second', 'third'])
  })

  test('with a failed shard, or without the number of failed shards, is retried', async () => {
    const { ask, requests, done } = setUp()
    await ask('one', ['reps'])
    for (const answer of [
      { status: 200, body: { _shards: { failed: 1 } } },
      { status: 200, body: {} },
      { status: 200, body: undefined },
      { status: 409, body: fine.body },
    ]) {
      await requests.at(0).letGo(answer)
      expect(done).toEqual([])
    }
    await requests.at(0).fail(new Unanswered('elasticsearch', 503))
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['one'])
    expect(requests.count).toBe(6)
  })

  test('that only an unassigned replica missed is enough, for each index', async () => {
    const { ask, requests, done, paths } = setUp()
    await ask('one', ['payouts', 'reps'])
    await requests.at(0).letGo(shards(4, 3))
    expect(paths()).toEqual(['POST /payouts/_refresh', 'POST /reps/_refresh'])
    await requests.at(1).letGo(shards(2, 2))
    await requests.at(0).letGo(shards(2, 1))
    expect(paths()).toEqual(['GET /_cluster/health/payouts'])
    expect(done).toEqual([])
    await requests.at(0).letGo(health('yellow', 1))
    expect(done).toEqual(['one'])
  })

  test.each([
    ['is unassigned', health('red', 0)],
    ['has moved to another node', health('yellow', 1)],
    ['is unknown', { status: 200, body: {} }],
  ])('that missed a shard which %s is retried, although no shard failed', async (_, answer) => {
    const { ask, requests, done, paths } = setUp()
    await ask('one', ['reps'])
    await requests.at(0).letGo(shards(2, 0))
    await requests.at(0).letGo(answer)
    expect(paths()).toEqual(['POST /reps/_refresh'])
    expect(done).toEqual([])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['one'])
  })

  test('of a missing index stops all who wait for it, and not the next request', async () => {
    const { ask, requests, done } = setUp()
    await ask('first', ['reps'])
    await ask('second', ['reps'])
    await requests.at(0).letGo({ status: 404, body: {} })
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first: index_missing', 'second'])
  })
})

describe('the interval between refreshes', () => {
  test('counts from the beginning of the last one, and requests that come meanwhile share the next', async () => {
    const { ask, requests, done, clock, paths } = setUp(100)
    await ask('first', ['reps'])
    await clock.move(60)
    await ask('second', ['reps'])
    await requests.at(0).letGo(fine)
    await clock.move(39)
    await ask('third', ['payouts'])
    expect(paths()).toEqual([])
    await clock.move(1)
    expect(paths()).toEqual(['POST /payouts,reps/_refresh'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second', 'third'])
  })

  test('delays no refresh after a longer time without one', async () => {
    const { ask, requests, clock, paths } = setUp(100)
    await ask('first', ['reps'])
    await requests.at(0).letGo(fine)
    await clock.move(100)
    await ask('second', ['reps'])
    expect(paths()).toEqual(['POST /reps/_refresh'])
  })

  test('ends when the stream stops', async () => {
    const { ask, requests, paths, endAllDelays } = setUp(10_000)
    await ask('first', ['reps'])
    await requests.at(0).letGo(fine)
    await ask('second', ['reps'])
    expect(paths()).toEqual([])
    endAllDelays()
    await everythingRuns()
    expect(paths()).toEqual(['POST /reps/_refresh'])
  })
})

describe('a write', () => {
  const waiting = async ({ untilRefreshed }: ReturnType<typeof setUp>) => {
    const state = { isOver: false }
    void untilRefreshed().then(() => {
      state.isOver = true
    })
    await everythingRuns()
    return state
  }

  test('waits for the refresh under way', async () => {
    const given = setUp()
    await given.ask('first', ['reps'])
    const write = await waiting(given)
    expect(write.isOver).toBe(false)
    await given.requests.at(0).letGo(fine)
    expect(write.isOver).toBe(true)
  })

  test('waits for a while only: a refresh that takes long must not stop the writes', async () => {
    const given = setUp()
    await given.ask('first', ['reps'])
    const write = await waiting(given)
    await given.clock.move(WRITES_HELD_MS)
    expect(write.isOver).toBe(true)
  })

  test('does not wait for a refresh that failed and is tried again', async () => {
    const given = setUp()
    await given.ask('first', ['reps'])
    const write = await waiting(given)
    await given.requests.at(0).fail(new Unanswered('elasticsearch', 503))
    expect(write.isOver).toBe(true)
  })

  test('does not wait without a refresh, nor for one with a long delay', async () => {
    const given = setUp()
    expect((await waiting(given)).isOver).toBe(true)
    await given.ask('first', ['reps'], WRITES_HELD_MS + 1)
    await given.clock.move(0)
    expect(given.paths()).toHaveLength(1)
    expect((await waiting(given)).isOver).toBe(true)
  })
})

describe('a delay', () => {
  const LONG = 5_000

  test('counts from the beginning of the last refresh, and all calls meanwhile share the next one', async () => {
    const { ask, requests, done, clock, paths } = setUp()
    await ask('first', ['reps'], LONG)
    expect(paths()).toHaveLength(1)
    await clock.move(LONG / 4)
    await requests.at(0).letGo(fine)
    await ask('second', ['reps'], LONG)
    await clock.move(LONG / 2)
    await ask('third', ['payouts'], LONG)
    await clock.move(LONG / 4 - 1)
    expect(paths()).toEqual([])
    await clock.move(1)
    expect(paths()).toEqual(['POST /payouts,reps/_refresh'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second', 'third'])
  })

  test('is the shortest one of the calls that share a refresh', async () => {
    const { ask, requests, done, clock, paths } = setUp()
    await ask('first', ['reps'])
    await requests.at(0).letGo(fine)
    await ask('second', ['reps'], LONG)
    await ask('third', ['payouts'], 200)
    await ask('fourth', ['reps'], LONG)
    await clock.move(199)
    expect(paths()).toEqual([])
    await clock.move(1)
    expect(paths()).toEqual(['POST /payouts,reps/_refresh'])
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second', 'third', 'fourth'])
  })

  test('is never shorter than the interval', async () => {
    const { ask, requests, clock, paths } = setUp(100)
    await ask('first', ['reps'])
    await requests.at(0).letGo(fine)
    await ask('second', ['reps'], 10)
    await clock.move(99)
    expect(paths()).toEqual([])
    await clock.move(1)
    expect(paths()).toHaveLength(1)
  })

  test('is shortened by a later call for the refresh that gathers, and not for the next one', async () => {
    const { ask, requests, done, clock, paths } = setUp()
    await ask('first', ['reps'])
    await requests.at(0).letGo(fine)
    await ask('second', ['reps'], LONG)
    await ask('shorter', ['reps'], 300)
    await ask('longer', ['reps'], 400)
    await clock.move(100)
    await ask('shortest', ['reps'], 200)
    await clock.move(99)
    expect(paths()).toEqual([])
    await clock.move(1)
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second', 'shorter', 'longer', 'shortest'])
    await ask('next', ['payouts'], LONG)
    await clock.move(200)
    expect(paths()).toEqual([])
  })

  test('is shortened by a call without an index, which refreshes nothing itself', async () => {
    const { ask, requests, done, clock, paths } = setUp()
    await ask('nothing', [], 0)
    expect([paths(), done]).toEqual([[], ['nothing']])
    await ask('first', ['reps'])
    await requests.at(0).letGo(fine)
    await ask('second', ['reps'], LONG)
    await ask('shorter', [], 300)
    expect(done).toEqual(['nothing', 'first', 'shorter'])
    await clock.move(300)
    expect(paths()).toEqual(['POST /reps/_refresh'])
  })

  test('ends when the stream stops: waiting and new calls are refreshed at once', async () => {
    const { ask, requests, done, paths, endAllDelays } = setUp()
    await ask('first', ['reps'])
    await requests.at(0).letGo(fine)
    await ask('second', ['reps'], LONG)
    expect(paths()).toEqual([])
    endAllDelays()
    await everythingRuns()
    await requests.at(0).letGo(fine)
    await ask('third', ['payouts'], LONG)
    await requests.at(0).letGo(fine)
    expect(done).toEqual(['first', 'second', 'third'])
  })

  test('does not hold up a refresh that a call without one waits for', async () => {
    const { ask, requests, paths } = setUp()
    await ask('first', ['reps'])
    await ask('second', ['reps'])
    await ask('third', ['payouts'], LONG)
    await requests.at(0).letGo(fine)
    expect(paths()).toEqual(['POST /payouts,reps/_refresh'])
  })
})

test('nothing is kept of a refresh that waited for its interval: a stream that runs for months takes no more memory', async () => {
  let now = 0
  const { refresh } = createRefresh({
    keepTrying: attempt => attempt(),
    send: sending(async () => fine),
    elapsed: () => now,
    sleep: async milliseconds => {
      now += milliseconds
    },
    interval: 25,
  })
  const rounds = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round++) await refresh(['payouts'], 0)
  }
  await rounds(2_000)
  const before = heapInUse()
  await rounds(10_000)
  expect(now).toBeGreaterThan(10_000 * 25)
  // A reaction of a promise takes some 300 bytes, so 3 MB.
  expect(heapInUse() - before).toBeLessThan(1024 * 1024)
})
