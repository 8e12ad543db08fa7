import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Change, type Client, RefusedError } from '../../../../client/src/index.ts'
import { createCorrections } from '../../../../explorer/src/state/corrections.ts'

const now = Date.parse('2026-11-27T12:00:00Z')
/** A payout that was published some seconds before now, and replaced another one or none. */
type Given = { readonly id: string; readonly secondsAgo: number; readonly replaces: string | null }

const payout = (id: string, supersedes_id: string | null = null) => {
  const calculated_at = new Date(now - 1_000 * id.length).toISOString()
  return { id, net_amount: `${id.length}.5`, currency: 'EUR', supersedes_id, calculated_at }
}
const changeOf = ({ id, secondsAgo, replaces }: Given): Change => {
  const published_at = new Date(now - 1_000 * secondsAgo).toISOString()
  return {
    id,
    kind: 'payouts',
    published_at,
    supersedes_id: replaces,
    record: payout(id, replaces),
  } as unknown as Change
}

type Payouts = readonly ReturnType<typeof payout>[]

/** An API of an organization with these changes, the oldest first, as of one of them. It counts its requests. */
const organizationOf = (given: readonly Given[], asOf?: string, byPeriod: Record<string, Payouts> = {}) => {
  const everything = given.map(changeOf)
  const changes = everything.slice(
    0,
    asOf === undefined ? undefined : everything.findIndex(({ id }) => id === asOf) + 1,
  )
  const sent = { requests: 0 }
  const refusal = () =>
    new RefusedError(new Response(null, { status: 400 }), { code: 'invalid_request', message: 'not over' })
  async function* pages(startingAfter: string | null | undefined, limit: number) {
    // A cursor must be the id of a record of that moment.
    if (startingAfter && !changes.some(({ id }) => id === startingAfter)) throw refusal()
    for (let at = changes.findIndex(({ id }) => id === startingAfter) + 1; ; at += limit) {
      sent.requests++
      const hasMore = at + limit < changes.length
      yield {
        data: changes.slice(at, at + limit),
        hasMore,
        nextCursor: '',
        projectionTime: new Date(now).toISOString(),
      }
      if (!hasMore) return
    }
  }
  const client = {
    changes: ({ startingAfter, limit = 200 }: { startingAfter?: string | null; limit?: number }) => ({
      pages: () => pages(startingAfter, limit),
    }),
    payouts: async function* ({ ids, periodId }: { ids?: readonly string[]; periodId?: string }) {
      sent.requests++
      yield* ids === undefined ? (byPeriod[periodId ?? ''] ?? []) : ids.map(id => payout(id))
    },
    periods: async function* () {
      sent.requests++
      yield* Object.keys(byPeriod).map((id, at) => ({ id, starts_at: `202${at}-01-01T00:00:00Z` }))
    },
    asOf: (instant: string) => ({
      totals: async () => {
        sent.requests++
        if (Date.parse(instant) > now - 30_000) throw refusal()
        const before = everything.filter(({ published_at }) => published_at <= instant)
        return { last_change_id: before.at(-1)?.id ?? null }
      },
    }),
  } as unknown as Client
  return { client, sent }
}

const found = async (given: readonly Given[], asOf?: string) => {
  const { client, sent } = organizationOf(given, asOf)
  const { found, isPartial } = await createCorrections(client, asOf)([])
  return { ids: found.map(({ id, before }) => [id, before.id]), isPartial, requests: sent.requests }
}

/** The newest five of all, found by reading everything. */
const expected = (given: readonly Given[]) =>
  given
    .flatMap(({ id, replaces }) => (replaces === null ? [] : [[id, replaces]]))
    .toReversed()
    .slice(0, 5)

test('the latest corrections are found, whenever they were published', async () => {
  const anyGiven = fc
    .array(fc.record({ secondsAgo: fc.integer({ min: 0, max: 1_000_000_000 }), isCorrection: fc.boolean() }))
    .map(items =>
      items
        .toSorted((one, other) => other.secondsAgo - one.secondsAgo)
        .map(({ secondsAgo, isCorrection }, at) => ({
          ...{ id: `payout_${at}`, secondsAgo },
          replaces: isCorrection ? `payout_before_${at}` : null,
        })),
    )
  await fc.assert(
    fc.asyncProperty(anyGiven, async given => {
      expect(await found(given)).toMatchObject({ ids: expected(given), isPartial: false })
    }),
  )
})

test('as of a change, later corrections are not there', async () => {
  const given = Array.from({ length: 50 }, (_, at): Given => {
    return { id: `payout_${at}`, secondsAgo: 4_000 * (50 - at), replaces: at % 2 === 0 ? `payout_${at - 1}` : null }
  })
  const { ids, isPartial } = await found(given, 'payout_21')
  expect(ids).toEqual(expected(given.slice(0, 22)))
  expect(isPartial).toBe(false)
})

test('in a large organization few of its changes are read', async () => {
  // A payout every ten minutes for two years. Each thousandth replaces the one before.
  const given = Array.from({ length: 100_000 }, (_, at): Given => {
    const replaces = at % 1_000 === 0 ? `payout_${at - 1}` : null
    return { id: `payout_${at}`, secondsAgo: 600 * (100_000 - at), replaces }
  })
  const { ids, isPartial, requests } = await found(given)
  // A part of what is there: the window that would have more of them has too many changes.
  expect(ids).toEqual(expected(given).slice(0, ids.length))
  expect(isPartial).toBe(ids.length < 5)
  expect(requests).toBeLessThan(70)
})

test('of many changes at once the latest are looked at, and the others are said to be missing', async () => {
  const given = Array.from({ length: 5_000 }, (_, at): Given => {
    const replaces = at === 10 || at === 4_990 ? `payout_${at - 1}` : null
    return { id: `payout_${at}`, secondsAgo: 200 - at / 100, replaces }
  })
  const { ids, isPartial } = await found(given)
  expect(ids[0]).toEqual(['payout_4990', 'payout_4989'])
  expect(isPartial).toBe(true)
})

test('of many changes at once, those of the newest periods stand in for those that time cannot find', async () => {
  const given = Array.from({ length: 5_000 }, (_, at): Given => {
    return { id: `payout_${at}`, secondsAgo: 86_400, replaces: null }
  })
  const { client } = organizationOf(given, undefined, {
    period_old: [payout('payout_33', 'payout_0')],
    period_new: [payout('payout_200', 'payout_100'), payout('payout_3'), payout('payout_5', 'payout_4')],
  })
  const { found: corrections, isPartial } = await createCorrections(client, undefined)([])
  // The latest calculated first.
  expect(corrections.map(({ id, before }) => [id, before.id])).toEqual([
    ['payout_5', 'payout_4'],
    ['payout_33', 'payout_0'],
    ['payout_200', 'payout_100'],
  ])
  expect(isPartial).toBe(true)
})

test('a correction that comes while the page is open stands first, and the others are not read again', async () => {
  const given = [{ id: 'payout_1', secondsAgo: 1_000, replaces: 'payout_0' }]
  const { client, sent } = organizationOf(given)
  const read = createCorrections(client, undefined)
  expect((await read([])).found.map(({ id }) => id)).toEqual(['payout_1'])
  const { requests } = sent
  const latest = [changeOf({ id: 'payout_2', secondsAgo: 0, replaces: 'payout_1' })]
  for (let times = 0; times < 3; times++)
    expect((await read(latest)).found.map(({ id }) => id)).toEqual(['payout_2', 'payout_1'])
  expect(sent.requests).toBe(requests + 1)
})
