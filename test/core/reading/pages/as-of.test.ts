import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AGREED_AFTER, AS_OF_MARGIN } from '../../../../core/reading/limits.ts'
import { createPositionAsOf } from '../../../../core/reading/pages/as-of.ts'
import { Refusal } from '../../../../core/runtime/refusals.ts'
import { EVENT_TIME_MIN } from '../../../../schemas/limits.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const generation = generationOf()
const NOW = Date.UTC(2026, 0)
const position = { generation, publishedTo: 100, time: NOW, takenBack: 0 }

type Stored = { readonly seq: number; readonly at: number; readonly org?: string }

const answerOf = (hit: Stored | undefined): Buffer => {
  const hits = hit === undefined ? '' : `{"_index":"i","_id":"org_a:x","_score":null,"sort":[${hit.seq},${hit.at}]}`
  return Buffer.from(
    `{"took":1,"timed_out":false,"_shards":{"total":4,"successful":4,"skipped":0,"failed":0},"hits":{"max_score":null,"hits":[${hits}]}}`,
  )
}

type Range = { readonly gt?: number; readonly gte?: number; readonly lt?: number; readonly lte?: number }
type Filter = { readonly term?: { readonly org_id: string }; readonly range?: Partial<Record<'seq' | 'at', Range>> }

const isIn = (value: number, { gt = -Infinity, gte = -Infinity, lt = Infinity, lte = Infinity }: Range): boolean =>
  value > gt && value >= gte && value < lt && value <= lte

/** Answers a search as Elasticsearch does: filters, then the first event in the requested order. */
const searchIn = (events: readonly Stored[], body: string): Buffer => {
  const { query, sort } = JSON.parse(body)
  const found = events.filter(({ seq, at, org = 'org_a' }) =>
    (query.bool.filter as Filter[]).every(
      ({ term, range }) =>
        (term === undefined || term.org_id === org) &&
        (range?.seq === undefined || isIn(seq, range.seq)) &&
        (range?.at === undefined || isIn(at, range.at)),
    ),
  )
  found.sort((a, b) => (sort[0].seq === 'asc' ? a.seq - b.seq : b.seq - a.seq))
  return answerOf(found[0])
}

const moments = (events: readonly Stored[], ours = NOW) => {
  const asked: string[] = []
  let passed = 0
  let set = 0
  const positionAsOf = createPositionAsOf(
    async (_, body) => {
      asked.push(body)
      return searchIn(events, body)
    },
    async () => NOW,
    { now: () => ours + passed + set, elapsed: () => passed },
  )
  return {
    asked,
    setClock: (by: number) => (set += by),
    pass: (milliseconds: number) => (passed += milliseconds),
    positionAsOf,
    at: (milliseconds: number) =>
      positionAsOf(scopeOf('org_a'), position, { kind: 'instant', milliseconds }, undefined),
  }
}

const OVER = NOW - AS_OF_MARGIN
const MICROSECONDS = NOW * 1000

describe('the position at an instant', () => {
  test('is that of the first event after it', async () => {
    const { at } = moments([
      { seq: 10, at: OVER - 5 },
      { seq: 42, at: OVER + 1 },
      { seq: 50, at: OVER + 2 },
    ])
    expect(await at(OVER)).toEqual({ ...position, publishedTo: 42 })
    expect((await at(OVER - 6)).publishedTo).toBe(10)
  })

  test('is looked up again after a second, and kept once both look-ups agree: an old copy may answer one', async () => {
    const events = [{ seq: 60, at: OVER + 1 }]
    const { asked, at, pass } = moments(events)
    expect((await at(OVER)).publishedTo).toBe(60)
    events.push({ seq: 50, at: OVER + 1 })
    expect((await at(OVER)).publishedTo).toBe(60)
    for (let times = 0; times < 3; times++) {
      pass(AGREED_AFTER)
      expect((await at(OVER)).publishedTo).toBe(50)
    }
    const { length } = asked
    pass(60_000)
    expect([(await at(OVER)).publishedTo, asked.length]).toEqual([50, length])
  })

  test.each([10 * AGREED_AFTER, -10 * AGREED_AFTER])(
    'is looked up again after a second, although the clock of the machine was set by %i ms between two look-ups',
    async step => {
      const events = [{ seq: 60, at: OVER + 1 }]
      const { at, pass, setClock } = moments(events)
      expect((await at(OVER)).publishedTo).toBe(60)
      setClock(step)
      expect((await at(OVER)).publishedTo).toBe(60)
      events.push({ seq: 50, at: OVER + 1 })
      pass(AGREED_AFTER)
      expect((await at(OVER)).publishedTo).toBe(50)
    },
  )

  test('never changes, whatever comes later, and is looked up once', async () => {
    const { asked, at } = moments([])
    expect(await at(OVER)).toEqual(position)
    const { length } = asked
    expect(await at(OVER)).toEqual(position)
    expect(asked.length).toBe(length)
  })

  test('is known at once if a later event exists, whatever the projector has passed', async () => {
    expect((await moments([{ seq: 42, at: NOW + 1 }]).at(NOW)).publishedTo).toBe(42)
  })

  test('is refused without a later event until the instant is surely over; the message gives the last sure instant', async () => {
    const { at } = moments([])
    expect((await at(OVER)).publishedTo).toBe(100)
    const refusal = await at(OVER + 1).catch((error: unknown) => error as Refusal)
    expect(refusal).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(new Date(OVER).toISOString()),
    })
  })

  test('is refused while the instant is not over by the clock of the API, whatever time is published', async () => {
    const { at } = moments([], NOW - 3_600_000)
    expect((await at(OVER - 3_600_000)).publishedTo).toBe(100)
    await expect(at(OVER)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test.each([
    ['in microseconds', MICROSECONDS],
    ['two hours ahead', NOW + 7_200_000],
    ['years ahead', Date.UTC(2500, 0)],
    ['far behind', Date.UTC(2020, 0)],
    ['of the beginning of 1970', 0],
    ['that is none', -1],
    ['before 1970', -(2 ** 40)],
  ])('does not depend on an event of another organization with a time %s', async (_, at) => {
    const ours = [10, 20, 30].map(seq => ({ seq, at: OVER - 1_000 + seq }))
    const strangers = [5, 15, 25, 35].map(seq => ({ seq, at, org: 'org_b' }))
    for (const milliseconds of [OVER - 1_000, OVER - 990, OVER - 985, OVER - 980, OVER - 970, OVER]) {
      const expected = await moments(ours).at(milliseconds)
      expect(await moments([...ours, ...strangers]).at(milliseconds)).toEqual(expected)
    }
  })

  test('is refused between the neighbours of an event whose time says nothing, and known elsewhere', async () => {
    for (const wrong of [MICROSECONDS, NOW + 7_200_000, -1, 0, 1_700_000_000]) {
      const { at } = moments([
        { seq: 10, at: OVER - 100 },
        { seq: 20, at: wrong },
        { seq: 30, at: OVER - 50 },
        { seq: 40, at: OVER - 10 },
      ])
      expect((await at(OVER - 101)).publishedTo).toBe(10)
      for (const unknown of [OVER - 100, OVER - 51]) {
        await expect(at(unknown)).rejects.toMatchObject({ message: expect.stringContaining('do not say') })
      }
      expect((await at(OVER - 50)).publishedTo).toBe(40)
      expect((await at(OVER)).publishedTo).toBe(100)
      await expect(moments([{ seq: 20, at: wrong }]).at(OVER)).rejects.toMatchObject({ code: 'invalid_request' })
    }
  })

  test('is refused if an event after it has an earlier time, and known before and after both times', async () => {
    const { at } = moments([
      { seq: 10, at: OVER - 100 },
      { seq: 20, at: OVER - 20 },
      { seq: 30, at: OVER - 50 },
      { seq: 40, at: OVER - 10 },
    ])
    expect((await at(OVER - 51)).publishedTo).toBe(20)
    for (const unknown of [OVER - 50, OVER - 21]) await expect(at(unknown)).rejects.toBeInstanceOf(Refusal)
    expect((await at(OVER - 20)).publishedTo).toBe(40)
  })

  const time = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: NOW - 40_000, max: NOW }) },
    fc.integer({ min: NOW, max: NOW + 20_000 }),
    fc.constantFrom(-1, 0, MICROSECONDS, Number.MAX_SAFE_INTEGER, Date.UTC(2020, 0)),
  )
  /** Times that go up, but for some. */
  const history = fc
    .array(
      fc.record({ step: fc.nat(4_000), other: fc.option(time, { freq: 6 }), org: fc.constantFrom('org_a', 'org_b') }),
      {
        maxLength: 12,
        size: 'max',
      },
    )
    .map(steps => {
      let clock = NOW - 45_000
      return steps.map(({ step, other, org }, index) => {
        clock += step
        return { seq: index * 2, at: other ?? clock, org }
      })
    })
  const answerAt = (events: readonly Stored[], instant: number, ours: number): Promise<number | 'refused'> =>
    moments(events, ours)
      .at(instant)
      .then(({ publishedTo }) => events.filter(({ seq, org }) => org === 'org_a' && seq < publishedTo).length)
      .catch((error: Refusal) => (error.code === 'invalid_request' ? 'refused' : Promise.reject(error)))

  test('is the only one that separates the times, or it is refused, for any history', async () => {
    let answered = 0
    await fc.assert(
      fc.asyncProperty(history, fc.integer({ min: 0, max: 50_000 }), async (events, back) => {
        const instant = NOW - back
        const ours = events.filter(({ org }) => org === 'org_a').map(({ at }) => at)
        const says = (at: number) => at >= EVENT_TIME_MIN && at <= NOW + 5_000
        const separating = Array.from({ length: ours.length + 1 }, (_, count) => count).filter(
          count =>
            ours.slice(0, count).every(at => !says(at) || at <= instant) &&
            ours.slice(count).every(at => !says(at) || at > instant),
        )
        const isOver = ours.some(at => says(at) && at > instant) || instant <= OVER
        const expected = isOver && separating.length === 1 ? separating[0] : 'refused'
        if (expected !== 'refused') answered++
        expect(await answerAt(events, instant, NOW)).toEqual(expected)
      }),
      { numRuns: 500 },
    )
    expect(answered).toBeGreaterThan(100)
  })

  test('never has two answers when a wrong time comes true: the instant is answered alike, or refused', async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.integer({ min: 0, max: 50_000 }), fc.nat(30_000), async (events, back, later) => {
        const before = await answerAt(events, NOW - back, NOW)
        const after = await answerAt(events, NOW - back, NOW + later)
        if (before !== 'refused' && after !== 'refused') expect(after).toBe(before)
      }),
      { numRuns: 500 },
    )
  })

  test('is looked up again after a published time was taken back', async () => {
    const { asked, positionAsOf } = moments([])
    const lengths: number[] = []
    for (const takenBack of [0, 0, 1]) {
      await positionAsOf(
        scopeOf('org_a'),
        { ...position, takenBack },
        { kind: 'instant', milliseconds: OVER },
        undefined,
      )
      lengths.push(asked.length)
    }
    const [once = 0] = lengths
    expect(lengths).toEqual([once, once, 2 * once])
  })

  test('is unavailable if the search is incomplete', async () => {
    const partial = answerOf({ seq: 42, at: NOW }).toString().replace('"failed":0', '"failed":1')
    const positionAsOf = createPositionAsOf(
      async () => Buffer.from(partial),
      async () => NOW,
      { now: () => NOW, elapsed: () => 0 },
    )
    const asked = positionAsOf(scopeOf('org_a'), position, { kind: 'instant', milliseconds: OVER }, undefined)
    await expect(asked).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('the position just after a change', () => {
  const name = { kind: 'payouts', id: 'payout_1' } as const
  const justAfter = (changeOffset: number | undefined) =>
    createPositionAsOf(
      async () => answerOf({ seq: 1, at: NOW }),
      async () => NOW,
      { now: () => NOW, elapsed: () => 0 },
    )(scopeOf('org_a'), position, { kind: 'change', name }, changeOffset)

  test('is the next offset', async () => {
    expect((await justAfter(7)).publishedTo).toBe(8)
    expect((await justAfter(99)).publishedTo).toBe(100)
  })

  test('does not exist for a change that is missing or not yet published', async () => {
    for (const changeOffset of [undefined, 100, 101])
      await expect(justAfter(changeOffset)).rejects.toBeInstanceOf(Refusal)
  })
})
