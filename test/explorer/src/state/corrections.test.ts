import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Change } from '../../../../client/src/index.ts'
import { CHANGES_LOOKED_AT, createCorrections } from '../../../../explorer/src/state/corrections.ts'
import { changeOf, type GivenPayout, organizationOf } from './organization.ts'

const found = async (given: readonly GivenPayout[]) => {
  const { client, sent } = organizationOf(given)
  const { found, isPartial } = await createCorrections()(client, [])
  return { ids: found.map(({ id, before }) => [id, before.id]), isPartial, requests: sent.requests }
}

/** The newest five of all, found by reading everything. */
const expected = (given: readonly GivenPayout[]) =>
  given
    .flatMap(({ id, replaces }) => (replaces === null ? [] : [[id, replaces]]))
    .toReversed()
    .slice(0, 5)

test('the latest corrections are found, wherever they are among the changes that are looked at', async () => {
  const anyGiven = fc
    .array(fc.boolean(), { maxLength: 500 })
    .map(items =>
      items.map((isCorrection, at) => ({ id: `payout_${at}`, replaces: isCorrection ? `payout_before_${at}` : null })),
    )
  await fc.assert(
    fc.asyncProperty(anyGiven, async given => {
      expect(await found(given)).toMatchObject({ ids: expected(given), isPartial: false })
    }),
  )
})

test('of a large organization the last 2,000 changes are looked at, and the others are said to be missing', async () => {
  const count = 100_000
  const given = Array.from({ length: count }, (_, at): GivenPayout => {
    const isCorrection = at === count - 10 || at === count - CHANGES_LOOKED_AT || at < count - CHANGES_LOOKED_AT
    return { id: `payout_${at}`, replaces: isCorrection ? `payout_before_${at}` : null }
  })
  const { ids, isPartial, requests } = await found(given)
  expect(ids).toEqual([
    ['payout_99990', 'payout_before_99990'],
    ['payout_98000', 'payout_before_98000'],
  ])
  expect(isPartial).toBe(true)
  expect(requests).toBe(13)
})

test('an organization with as many changes as are looked at misses nothing', async () => {
  const given = Array.from({ length: CHANGES_LOOKED_AT }, (_, at) => ({ id: `payout_${at}`, replaces: null }))
  expect(await found(given)).toMatchObject({ ids: [], isPartial: false })
})

test('a correction that comes while the page is open stands first, and the others are not read again', async () => {
  const { client, sent } = organizationOf([{ id: 'payout_1', replaces: 'payout_0' }])
  const read = createCorrections()
  expect((await read(client, [])).found.map(({ id }) => id)).toEqual(['payout_1'])
  const { requests } = sent
  const latest = [changeOf({ id: 'payout_2', replaces: 'payout_1' }, 1)]
  for (let times = 0; times < 3; times++)
    expect((await read(client, latest)).found.map(({ id }) => id)).toEqual(['payout_2', 'payout_1'])
  expect(sent.requests).toBe(requests + 1)
})

/** Corrections 1 to `count`, one after the other, read after each, and after a rep that changed between two of them. */
const shownAfterEach = async (count: number, repAfter: number): Promise<number[][]> => {
  const { client } = organizationOf([{ id: 'payout_100', replaces: null }])
  const read = createCorrections()
  const shown: number[][] = []
  let latest: Change[] = []
  const publish = async (given: GivenPayout): Promise<void> => {
    latest = [changeOf(given, latest.length + 1), ...latest]
    shown.push((await read(client, latest)).found.map(({ id }) => Number(id.slice('payout_'.length))))
  }
  await read(client, [])
  for (let at = 1; at <= count; at++) {
    await publish({ id: `payout_${at}`, replaces: `payout_before_${at}` })
    if (at === repAfter) await publish({ id: 'rep_1.2', replaces: null })
  }
  return shown
}

test.for([
  { count: 7, repAfter: 0 },
  { count: 9, repAfter: 8 },
])('of $count corrections that come while the page is open, the five newest stand in order', async given => {
  const numbers = Array.from({ length: given.count }, (_, at) => at + 1)
  const readings = numbers.flatMap(at => (at === given.repAfter ? [at, at] : [at]))
  const newest = readings.map(last => numbers.slice(0, last).toReversed().slice(0, 5))
  expect(await shownAfterEach(given.count, given.repAfter)).toEqual(newest)
})

test('where the latest changes are corrections, few of them are read', async () => {
  const given = Array.from({ length: 1_000 }, (_, at) => ({ id: `payout_${at}`, replaces: `payout_before_${at}` }))
  const { client, sent } = organizationOf(given)
  expect((await createCorrections()(client, [])).found).toHaveLength(5)
  expect(sent).toEqual({ requests: 3, changes: 50 })
})
