/** The work of the watch of changes, on virtual time: no client makes it slow or expensive for the others. */
import { expect, test } from 'vitest'
import type { ChangesAsked } from '../../../core/reading/find-changes.ts'
import { AGREED_AFTER, FIND_INTERVAL, LAST_CURSOR_AGE_MAX, LOOK_INTERVAL } from '../../../core/reading/limits.ts'
import { createChangeWatch } from '../../../core/reading/watch-changes.ts'
import { createSemaphore, createSemaphores, within } from '../../../core/runtime/semaphore.ts'
import { abortReason, type Schedule, waitOrAbort } from '../../../core/runtime/time-limits.ts'
import type { ReadPosition } from '../../../core/store/positions/position.ts'
import { lastOffsetsAnswer } from '../../api/answers.ts'
import { Clock } from '../../simulation/clock.ts'
import { generationOf } from '../../support/layout.ts'
import { scopeOf } from '../../support/read-scope.ts'

const { signal } = new AbortController()
const nothing = () => undefined

/** A watch of one partition whose reads take no time. The organizations in `changed` have a change at each offset. */
const setUp = async (limits?: { ofOrganization: number; ofProcess: number }) => {
  const clock = new Clock()
  const generation = generationOf()
  const state = { publishedTo: 1, takenBack: 0, time: 0, queued: 0, changed: [] as string[], found: [] as string[] }
  /** Searches before the first one that finds a change after the cursor. */
  const old = { finds: Number.POSITIVE_INFINITY }
  const position = (): ReadPosition => ({
    generation,
    publishedTo: state.publishedTo,
    time: 0,
    takenBack: state.takenBack,
  })
  const finds: number[] = []
  const filtersAtOnce: number[] = []
  const later: Schedule = (milliseconds, callback) => clock.after(milliseconds, callback)
  const permits = (permits: number) => ({ permits, queue: 0, waitMax: 0 })
  const { ofOrganization, ofProcess } = limits ?? { ofOrganization: 1_000, ofProcess: 1_000 }
  const searchedFrom: number[] = []
  const watch = createChangeWatch({
    readServedPositions: async () => ({ generation, partitions: [position()] }),
    projectionTime: async (_, { time }) => time,
    permitted: {
      toBegin: async ({ signal: queueing }, read) => {
        if (state.queued > 0) {
          await waitOrAbort(new Promise<void>(resolve => clock.after(state.queued, resolve)), queueing)
        }
        return read()
      },
      toFind: async (_scope, read) => read(),
    },
    later,
    elapsed: () => clock.elapsed,
    latest: (_, position) => (position.publishedTo < state.publishedTo ? undefined : { ...position, time: state.time }),
    waits: within(createSemaphore(permits(ofProcess), later), createSemaphores(permits(ofOrganization), later)),
    findChange: async () => {
      finds.push(clock.elapsed)
      return { found: old.finds < finds.length, position: position() }
    },
    findLast: async (_scope, filters) => {
      finds.push(clock.elapsed)
      filtersAtOnce.push(filters.length)
      return filters.map(({ rep_id = '' }) => (state.found.includes(rep_id) ? state.publishedTo - 1 : undefined))
    },
    search: async (_indices, body) => {
      for (const { bool } of JSON.parse(body).query.bool.should) searchedFrom.push(bool.filter[1].range.seq.gte)
      return lastOffsetsAnswer(state.changed.map(org => [org, state.publishedTo - 1]))
    },
  })
  const wait = (org: string, asked: ChangesAsked, milliseconds: number, leaving = signal) => {
    const ended = { after: Number.NaN, position: undefined as ReadPosition | undefined }
    const begun = clock.elapsed
    void watch
      .wait(scopeOf(org, signal), asked, milliseconds, { leaving, onTurn: nothing, onWait: nothing })
      .then(last => {
        Object.assign(ended, { after: clock.elapsed - begun, position: last })
      })
    return ended
  }
  const pass = (milliseconds: number): Promise<boolean> => {
    let isOver = false
    clock.after(milliseconds, () => {
      isOver = true
    })
    return clock.runUntil(() => isOver)
  }
  const untilNobodyWaits = () => clock.runUntil(() => watch.waiting() === 0, 120_000)
  await pass(1)
  return { clock, state, old, position, finds, filtersAtOnce, searchedFrom, watch, wait, pass, untilNobodyWaits }
}

const cursor: ChangesAsked = { startingAfter: { kind: 'payouts', id: 'payout_1' } }

test('an old remembered cursor of one organization does not make the common search begin there', async () => {
  const { state, position, finds, searchedFrom, watch, wait, pass } = await setUp()
  watch.remember('org_idle', cursor, position())
  await pass(LAST_CURSOR_AGE_MAX + 1)
  state.publishedTo = 5_000_000
  wait('org_busy', cursor, 60_000)
  wait('org_idle', cursor, 60_000)
  await pass(10 * LOOK_INTERVAL)
  state.publishedTo++
  await pass(10 * LOOK_INTERVAL)
  expect(searchedFrom).toEqual([5_000_000])
  // Each of both began with a search of its own.
  expect(finds.length).toBe(2)
})

test('a cursor that is remembered of a restored copy does not hide a change that the copy lacked', async () => {
  const { state, position, watch, wait, untilNobodyWaits } = await setUp()
  watch.remember('org_a', cursor, position())
  // The copy is adopted, and read again to the same position.
  state.takenBack++
  const waited = wait('org_a', cursor, 5_000)
  await untilNobodyWaits()
  expect(waited).toEqual({ after: LOOK_INTERVAL, position: undefined })
})

test('the time in which the first search of a wait queues is a part of the wait', async () => {
  const { state, wait, untilNobodyWaits, pass } = await setUp()
  state.queued = 5_000
  const [long, short] = [wait('org_a', cursor, 20_000), wait('org_b', cursor, 2_000)]
  await pass(5_100)
  await untilNobodyWaits()
  // The last look of the long one is recent. The short one had no turn when its time was up: its page is read.
  expect(long).toMatchObject({ after: 20_000, position: { publishedTo: state.publishedTo } })
  expect(short).toEqual({ after: 2_000, position: undefined })
})

test('a wait that queues ends at once if its client leaves, and if the process stops it searches nothing', async () => {
  const { state, finds, wait, watch, pass } = await setUp()
  state.queued = 5_000
  const leaving = new AbortController()
  const [left, stopped] = [wait('org_a', cursor, 20_000, leaving.signal), wait('org_b', cursor, 20_000)]
  await pass(1_000)
  leaving.abort(abortReason('client_gone'))
  await pass(1_000)
  expect(left).toEqual({ after: 1_000, position: undefined })
  watch.end()
  const late = wait('org_c', cursor, 20_000)
  await pass(4_000)
  expect([stopped, late]).toEqual([
    { after: 5_000, position: undefined },
    { after: 0, position: undefined },
  ])
  expect(finds).toEqual([])
})

test('a client that waits again soon after its last answer causes no search', async () => {
  const { position, finds, watch, wait, pass } = await setUp()
  watch.remember('org_a', cursor, position())
  await pass(LAST_CURSOR_AGE_MAX / 2)
  wait('org_a', cursor, 60_000)
  await pass(1_000)
  expect([watch.waiting(), finds]).toEqual([1, []])
})

test('while its organization changes all the time, a filtered wait searches at intervals, the first time at once', async () => {
  const { clock, state, finds, wait, pass, untilNobodyWaits } = await setUp()
  const filtered = { ...cursor, filter: { rep_id: 'rep_1' } }
  const ended = wait('org_a', filtered, 10_000)
  await pass(2 * LOOK_INTERVAL)
  finds.length = 0
  state.changed = ['org_a']
  const begun = clock.elapsed
  const change = (): void => {
    state.publishedTo++
    clock.after(10, change)
  }
  change()
  await untilNobodyWaits()
  const [first = Number.NaN, ...later] = finds
  expect(first - begun).toBeLessThan(3 * LOOK_INTERVAL)
  expect(later.length).toBeGreaterThan(10)
  for (const [index, time] of later.entries()) {
    expect(time - (finds[index] ?? Number.NaN)).toBeGreaterThanOrEqual(FIND_INTERVAL)
  }
  // The wait ended with an empty page, without a read of it.
  expect(ended).toMatchObject({ after: 10_000, position: { publishedTo: expect.any(Number) } })
})

test('a change behind a filter ends the wait after one interval, however often the organization changes', async () => {
  const { clock, state, finds, wait, pass, untilNobodyWaits } = await setUp()
  const ended = wait('org_a', { ...cursor, filter: { rep_id: 'rep_1' } }, 60_000)
  state.changed = ['org_a']
  const change = (): void => {
    state.publishedTo++
    clock.after(10, change)
  }
  change()
  await pass(5_000)
  const { length } = finds
  // The worst moment: a search has just begun.
  await clock.runUntil(() => finds.length > length)
  state.found = ['rep_1']
  const published = clock.elapsed
  await untilNobodyWaits()
  expect(ended.position).toBeUndefined()
  expect(clock.elapsed - published).toBeLessThan(FIND_INTERVAL + 3 * LOOK_INTERVAL)
})

test('one search for an organization and interval serves all its filters, and wakes only those with a change', async () => {
  const { clock, state, finds, filtersAtOnce, searchedFrom, wait, pass, watch } = await setUp()
  const REPS = 40
  const ofRep = (rep: number) => wait('org_a', { ...cursor, filter: { rep_id: `rep_${rep}` } }, 60_000)
  const waits = Array.from({ length: 3 * REPS }, (_, n) => ofRep(n % REPS))
  await pass(2 * LOOK_INTERVAL)
  finds.length = 0
  state.changed = ['org_a']
  const change = (): void => {
    state.publishedTo++
    clock.after(10, change)
  }
  change()
  await pass(10_000)
  expect([watch.waiting(), Math.max(...filtersAtOnce)]).toEqual([3 * REPS, REPS])
  expect(finds.length).toBeGreaterThan(10_000 / FIND_INTERVAL / 2)
  expect(finds.length).toBeLessThanOrEqual(10_000 / FIND_INTERVAL + 1)
  // The search for all organizations leaves out those whose filters are searched: it finds nothing that is not known.
  expect(searchedFrom.length).toBeLessThanOrEqual(finds.length + 1)
  state.found = ['rep_7', 'rep_8']
  await pass(2 * FIND_INTERVAL)
  expect(waits.flatMap(({ after }, n) => (after > 0 ? [n % REPS] : [])).sort()).toEqual([7, 7, 7, 8, 8, 8])
})

test('above the waits of an organization, or of the process, a request does not wait; a wait that ends makes room', async () => {
  const { wait, pass, watch } = await setUp({ ofOrganization: 3, ofProcess: 5 })
  const short = wait('org_a', cursor, 1_000)
  for (let n = 0; n < 2; n++) wait('org_a', cursor, 60_000)
  const above = wait('org_a', cursor, 60_000)
  for (let n = 0; n < 2; n++) wait('org_b', cursor, 60_000)
  const ofOthers = ['org_b', 'org_c'].map(org => wait(org, cursor, 60_000))
  await pass(LOOK_INTERVAL)
  expect(watch.waiting()).toBe(5)
  // Each reads its page at once.
  for (const one of [above, ...ofOthers]) expect(one).toEqual({ after: 0, position: undefined })
  await pass(2_000)
  expect(short.after).toBe(1_000)
  const next = ['org_c', 'org_d'].map(org => wait(org, cursor, 60_000))
  await pass(LOOK_INTERVAL)
  expect([watch.waiting(), next.map(({ after }) => after)]).toEqual([5, [Number.NaN, 0]])
})

test('an empty page has the latest time that was shown, and is read if a later position was shown', async () => {
  const { state, position, watch } = await setUp()
  const last = position()
  state.time = 7
  expect(await watch.confirm(scopeOf('org_a'), cursor, last)).toEqual({ ...last, time: 7 })
  state.publishedTo++
  expect(await watch.confirm(scopeOf('org_a'), cursor, last)).toBeUndefined()
})

test('a change that an old copy hid from the first search of a wait ends one of the next waits within 20 s', async () => {
  const { clock, old, finds, wait, untilNobodyWaits } = await setUp()
  old.finds = 1
  const begun = clock.elapsed
  for (;;) {
    const waited = wait('org_a', cursor, 3_000)
    await untilNobodyWaits()
    if (waited.position === undefined) break
    expect(clock.elapsed - begun).toBeLessThan(20_000)
  }
  expect(finds.length).toBe(2)
  // Until then, no wait searched again.
  expect((finds[1] ?? 0) - (finds[0] ?? 0)).toBeGreaterThanOrEqual(LAST_CURSOR_AGE_MAX)
})

test.each([
  ['all changes', {}],
  ['those of a rep', { filter: { rep_id: 'rep_1' } }],
])(
  'a change that an old copy hid from one look at %s is found by a look a second later, in the same wait',
  async (_, filter) => {
    const { state, wait, pass, untilNobodyWaits } = await setUp()
    const ended = wait('org_a', { ...cursor, ...filter }, 30_000)
    await pass(10 * LOOK_INTERVAL)
    state.publishedTo++
    await pass(10 * LOOK_INTERVAL)
    Object.assign(state, { changed: ['org_a'], found: ['rep_1'] })
    await untilNobodyWaits()
    expect(ended.position).toBeUndefined()
    expect(ended.after).toBeLessThan(20 * LOOK_INTERVAL + 2 * AGREED_AFTER)
  },
)

test('a look that found nothing is repeated once, and then the search begins behind it', async () => {
  const { state, searchedFrom, wait, pass } = await setUp()
  wait('org_a', cursor, 60_000)
  await pass(10 * LOOK_INTERVAL)
  state.publishedTo = 8
  await pass(5 * AGREED_AFTER)
  expect(searchedFrom).toEqual([1, 1])
  state.publishedTo = 9
  await pass(5 * AGREED_AFTER)
  expect(searchedFrom).toEqual([1, 1, 8, 8])
})
