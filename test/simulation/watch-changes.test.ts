/**
 * The watch of changes under random orders of publishing, waiting, leaving, failing reads and swaps. The reads are
 * fakes with random durations; the watch is the real one.
 */
import { expect, test } from 'vitest'
import type { ChangesAsked, FindChange } from '../../core/reading/find-changes.ts'
import { WAKES_PER_LOOK } from '../../core/reading/limits.ts'
import { createChangeWatch, type RunPermitted } from '../../core/reading/watch-changes.ts'
import { unavailable } from '../../core/runtime/refusals.ts'
import type { Generation, ReadPosition } from '../../core/store/positions/position.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { lastOffsetsAnswer } from '../api/answers.ts'
import { generationOf } from '../support/layout.ts'
import { createRandom } from '../support/random.ts'
import { scopeOf } from '../support/read-scope.ts'
import { Clock } from './clock.ts'

const PARTITIONS = 2
const ORGANIZATIONS = ['org_1', 'org_2', 'org_3', 'org_4']
const REPS = ['rep_1', 'rep_2']
const SECONDS = 120
const SEEDS = 40

type Log = { readonly org: string; readonly rep: string }[][]
const ANYTHING: ChangesAsked = { startingAfter: undefined }
const unbounded = { tryAcquire: () => () => undefined }
const runAtOnce: RunPermitted = (_scope, read) => read()
const permitted = { toBegin: runAtOnce, toFind: runAtOnce }
const events = { leaving: new AbortController().signal, onTurn: () => undefined, onWait: () => undefined }
const newLog = (): Log => Array.from({ length: PARTITIONS }, () => [])

/** One run. Returns how often each outcome was seen. */
const run = async (seed: number) => {
  const random = createRandom(seed)
  const clock = new Clock()
  let log = newLog()
  const logs = new Map([['g1', log]])
  let generation: Generation = generationOf({ source: 'cluster/topic', partitions: PARTITIONS })
  let isAway = false
  const seen = { page: 0, empty: 0, left: 0, refused: 0, looks: 0, finds: 0 }

  const partitionIn = (org: string): number => partitionOf(org, PARTITIONS)
  const positionIn = (partition: number): ReadPosition => ({
    generation,
    publishedTo: log[partition]?.length ?? 0,
    time: clock.now(),
    takenBack: 0,
  })
  /** A read takes some milliseconds, sees the state at one moment of them, and can fail. */
  const read = async <Result>(look: () => Result): Promise<Result> => {
    await new Promise<void>(resolve => clock.after(random.below(20), resolve))
    const result = look()
    const fails = isAway
    await new Promise<void>(resolve => clock.after(random.below(20), resolve))
    if (fails) throw unavailable('elasticsearch_connection')
    return result
  }
  const after = ({ startingAfter }: ChangesAsked): number => startingAfter?.ordinal ?? -1
  const offsets = (of: Log, org: string, asked: ChangesAsked, from: number, to: number): number[] =>
    (of[partitionIn(org)] ?? []).flatMap((change, offset) => {
      const matches = change.org === org && (asked.filter?.rep_id ?? change.rep) === change.rep
      return matches && offset > from && offset < to ? [offset] : []
    })
  const findChange: FindChange = ({ org }, asked) =>
    read(() => {
      const position = positionIn(partitionIn(org))
      return { position, found: offsets(log, org, asked, after(asked), position.publishedTo).length > 0 }
    })
  const watch = createChangeWatch({
    findChange,
    readServedPositions: () =>
      read(() => {
        seen.looks++
        return { generation, partitions: log.map((_, partition) => positionIn(partition)) }
      }),
    projectionTime: async (_, position) => position.time,
    search: async (_indices, body) => {
      const { query } = JSON.parse(body)
      const last = await read(() => {
        const newestOf = new Map<string, number>()
        for (const { bool } of query.bool.should) {
          const [{ terms }, { range }] = bool.filter
          for (const org of terms.org_id) {
            const of = offsets(log, org, ANYTHING, range.seq.gte - 1, range.seq.lt)
            const newest = of.at(-1)
            if (newest !== undefined) newestOf.set(org, newest)
          }
        }
        return newestOf
      })
      return lastOffsetsAnswer(last)
    },
    findLast: ({ org }, filters, from, { publishedTo }) =>
      read(() => {
        seen.finds++
        return filters.map(filter => offsets(log, org, { ...ANYTHING, filter }, from - 1, publishedTo).at(-1))
      }),
    latest: (_, position) => position,
    waits: unbounded,
    permitted,
    later: (milliseconds, callback) => clock.after(milliseconds, callback),
    elapsed: () => clock.elapsed,
  })

  const waitOnce = async (org: string): Promise<void> => {
    const ordinal = random.below((log[partitionIn(org)]?.length ?? 0) + 1) - 1
    const asked: ChangesAsked = {
      startingAfter: random.chance(0.8) ? { kind: 'reps', id: org, ordinal } : undefined,
      ...(random.chance(0.3) && { filter: { rep_id: random.pick(REPS) } }),
    }
    const then = { generation, position: positionIn(partitionIn(org)) }
    const leaving = new AbortController()
    const milliseconds = 1_000 * (1 + random.below(10))
    if (random.chance(0.2))
      clock.after(random.below(milliseconds), () => leaving.abort(new DOMException('client_gone', 'AbortError')))
    const began = clock.elapsed
    try {
      const nothingBefore = await watch.wait(scopeOf(org, leaving.signal), asked, milliseconds, events)
      if (nothingBefore === undefined) {
        seen.page++
        return
      }
      seen.empty++
      const of = logs.get(nothingBefore.generation.name) ?? newLog()
      const missed = offsets(of, org, asked, after(asked), nothingBefore.publishedTo)
      expect(missed, `${org} was told that nothing is before ${nothingBefore.publishedTo}`).toEqual([])
      if (nothingBefore.generation === then.generation) {
        expect(nothingBefore.publishedTo).toBeGreaterThanOrEqual(then.position.publishedTo)
        expect(nothingBefore.time).toBeGreaterThanOrEqual(then.position.time)
      }
      expect(clock.elapsed - began).toBeLessThan(milliseconds + 200)
    } catch (error) {
      if (!(error instanceof Error && error.name === 'Refusal')) throw error
      seen[leaving.signal.aborted ? 'left' : 'refused']++
    }
  }

  const failures: unknown[] = []
  let waiting = 0
  const client = async (org: string): Promise<void> => {
    while (clock.elapsed < SECONDS * 1_000) {
      waiting++
      await waitOnce(org).catch(error => failures.push(error))
      waiting--
      await new Promise<void>(resolve => clock.after(1 + random.below(200), resolve))
    }
  }
  for (const org of ORGANIZATIONS) for (let count = 0; count < 3; count++) void client(org)
  const publish = (): void => {
    const org = random.pick(ORGANIZATIONS)
    log[partitionIn(org)]?.push({ org, rep: random.pick(REPS) })
    // Sometimes nothing happens for longer than any wait.
    if (clock.elapsed < SECONDS * 1_000) clock.after(random.chance(0.05) ? 15_000 : random.below(1_000), publish)
  }
  publish()
  for (let second = 10; second < SECONDS; second += 10 + random.below(30)) {
    clock.after(second * 1_000, () => {
      isAway = true
      clock.after(random.below(8_000), () => {
        isAway = false
      })
    })
  }
  clock.after((SECONDS / 2) * 1_000, () => {
    // New rules have applied other records: the log of changes is another one.
    log = log.map(changes =>
      changes.map(change => (random.chance(0.2) ? { ...change, org: random.pick(ORGANIZATIONS) } : change)),
    )
    generation = { ...generation, name: 'g2', id: 'g2', rules: 2 }
    logs.set('g2', log)
  })
  expect(await clock.runUntil(() => waiting === 0 && clock.elapsed > SECONDS * 1_000, SECONDS * 2_000)).toBe(true)
  expect(failures, `seed ${seed}`).toEqual([])
  expect(watch.waiting()).toBe(0)
  return seen
}

test('no wait ends with an empty page that hides a change, and none is forgotten', async () => {
  const all = { page: 0, empty: 0, left: 0, refused: 0, looks: 0, finds: 0 }
  for (let seed = 1; seed <= SEEDS; seed++) {
    const seen = await run(seed)
    for (const outcome of ['page', 'empty', 'left', 'refused', 'looks', 'finds'] as const) all[outcome] += seen[outcome]
  }
  for (const [outcome, count] of Object.entries(all)) expect(count, outcome).toBeGreaterThan(SEEDS)
})

const positionOf = (name: string, publishedTo: number): ReadPosition => ({
  generation: generationOf({ name }),
  publishedTo,
  time: 0,
  takenBack: 0,
})

type WatchParts = Parameters<typeof createChangeWatch>[0]

/** A watch of one partition, whose reads take no time unless they are given. */
const watchOn = (
  clock: Clock,
  position: () => ReadPosition,
  reads: Pick<WatchParts, 'findChange' | 'search'> & Partial<Pick<WatchParts, 'findLast'>>,
) =>
  createChangeWatch({
    findLast: async (_, filters) => filters.map(() => undefined),
    latest: (_, position) => position,
    waits: unbounded,
    readServedPositions: async () => ({ generation: position().generation, partitions: [position()] }),
    projectionTime: async (_, { time }) => time,
    permitted,
    later: (milliseconds, callback) => clock.after(milliseconds, callback),
    elapsed: () => clock.elapsed,
    ...reads,
  })

test('a change ends all waits of its organization soon; a swap ends at most some at each look', async () => {
  const clock = new Clock()
  let publishedTo = 1
  let name = 'g1'
  const ended: number[] = []
  const position = (): ReadPosition => ({
    generation: generationOf({ name }),
    publishedTo,
    time: 0,
    takenBack: 0,
  })
  const watch = watchOn(clock, position, {
    findChange: async () => ({ found: false, position: position() }),
    search: () => Promise.reject(unavailable('elasticsearch_partial')),
  })
  const { signal } = new AbortController()
  for (let count = 0; count < 3 * WAKES_PER_LOOK; count++) {
    void watch
      .wait(scopeOf(`org_${count}`, signal), { startingAfter: undefined }, 60_000, events)
      .then(() => ended.push(clock.elapsed))
  }
  await clock.runUntil(() => false, 1_000)
  expect([watch.waiting(), ended.length]).toEqual([3 * WAKES_PER_LOOK, 0])
  // The search fails: nobody is told anything.
  publishedTo = 2
  await clock.runUntil(() => false, 5_000)
  expect(ended.length).toBe(0)
  name = 'g2'
  await clock.runUntil(() => watch.waiting() === 0, 10_000)
  const together = Map.groupBy(ended, time => time)
  expect(Math.max(...[...together.values()].map(({ length }) => length))).toBe(WAKES_PER_LOOK)
})

test('a search for a filter that takes long delays no other wait', async () => {
  const clock = new Clock()
  let publishedTo = 1
  const position = (): ReadPosition => positionOf('g1', publishedTo)
  const changed = ['org_filtered', 'org_other']
  const watch = watchOn(clock, position, {
    findChange: async () => ({ found: false, position: position() }),
    findLast: async (_, filters) => {
      await new Promise<void>(resolve => clock.after(2_000, resolve))
      return filters.map(() => publishedTo - 1)
    },
    search: async () => lastOffsetsAnswer(changed.map(org => [org, publishedTo - 1])),
  })
  const ended = new Map<string, number>()
  const wait = (org: string, filter: { rep_id?: string }) => {
    const { signal } = new AbortController()
    const waiting = watch.wait(scopeOf(org, signal), { startingAfter: undefined, filter }, 60_000, events)
    void waiting.then(() => ended.set(org, clock.elapsed))
  }
  wait('org_filtered', { rep_id: 'rep_1' })
  wait('org_other', {})
  await clock.runUntil(() => watch.waiting() === 2, 1_000)
  publishedTo = 2
  const published = clock.elapsed
  await clock.runUntil(() => watch.waiting() === 0, 10_000)
  expect((ended.get('org_other') ?? 0) - published).toBeLessThan(200)
  const ofFilter = (ended.get('org_filtered') ?? 0) - published
  expect(ofFilter).toBeGreaterThan(2_000)
  expect(ofFilter).toBeLessThan(2_300)
})

test('a batch that changes many organizations wakes some at each look, and all in the end', async () => {
  const clock = new Clock()
  let publishedTo = 1
  const organizations = Array.from({ length: 3 * WAKES_PER_LOOK }, (_, n) => `org_${n}`)
  const position = (): ReadPosition => positionOf('g1', publishedTo)
  const watch = watchOn(clock, position, {
    findChange: async () => ({ found: false, position: position() }),
    search: async () => lastOffsetsAnswer(organizations.map(org => [org, publishedTo - 1])),
  })
  const { signal } = new AbortController()
  const ended: number[] = []
  for (const org of organizations) {
    const waiting = watch.wait(scopeOf(org, signal), { startingAfter: undefined }, 2_000, events)
    void waiting.then(position => ended.push(position === undefined ? clock.elapsed : Number.NaN))
  }
  await clock.runUntil(() => watch.waiting() === organizations.length, 1_000)
  publishedTo = 2
  await clock.runUntil(() => watch.waiting() === 0, 10_000)
  const together = Map.groupBy(ended, time => time)
  expect([...together.values()].map(({ length }) => length)).toEqual([WAKES_PER_LOOK, WAKES_PER_LOOK, WAKES_PER_LOOK])
})
