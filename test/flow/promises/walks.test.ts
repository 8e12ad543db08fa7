/** Walks through two API processes at several limits, while payouts are recalculated as fast as possible. */
import { beforeAll, expect, test } from 'vitest'
import { type Client, createClient, type Page } from '../../support/client.ts'
import { keyCreated, newId, newKeyText, payoutCalculated, periodRecorded, repRecorded } from '../../support/events.ts'
import type { Item } from '../../support/model.ts'
import { type Api, type Projector, startApi, startProjector, untilCaughtUp } from '../../support/processes.ts'
import { startProjection } from '../../support/projection.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { fileScope } from '../../support/scope.ts'
import { createPrefix } from '../../support/stored.ts'
import type { Topics } from '../../support/topics.ts'

const REPS = 8
const PERIODS = 5
const RECALCULATIONS = 500
const LIMITS = [1, 7, 50]

const seed = seedOfRun()
const random = createRandom(seed)
const org = newId('org')
const key = newKeyText()
const pairs = Array.from({ length: REPS * PERIODS }, (_, place) => ({
  rep_id: `rep_${place % REPS}`,
  period_id: `period_${Math.floor(place / REPS)}`,
}))
/** The pairs that are recalculated again and again. The others do not change. */
const moving = pairs.filter((_, place) => place % 2 === 0)

const file = fileScope()
let topics: Topics
let prefix: string
let projector: Projector
let apis: Api[]
let client: Client

/** A walk: its pages, and the current payouts just before the first page and just after the last. */
type Walk = { readonly limit: number; readonly before: Page; readonly pages: readonly Page[]; readonly after: Page }
const walks: Walk[] = []
const whole: Page[] = []
const repWalks: string[][] = []
const crossReads: { readonly listed: Item; readonly read: Item; readonly replacement: Item | undefined }[] = []

beforeAll(async () => {
  console.log(`seed ${seed}`)
  ;({ topics, prefix, projector } = await startProjection(
    file,
    [
      keyCreated({ org_id: org, text: key }),
      ...pairs.flatMap(({ rep_id, period_id }) => [
        repRecorded({ org_id: org, id: rep_id }),
        periodRecorded({ org_id: org, id: period_id }),
      ]),
      ...pairs.map(pair => calculated(pair)),
    ],
    { partitions: 2 },
  ))
  apis = await Promise.all([startApi(file, prefix), startApi(file, prefix)])
  client = createClient(apis, key)

  let publishing = true
  const walkers = LIMITS.map(async limit => {
    while (publishing) walks.push(await walkOnce(limit))
    walks.push(await walkOnce(limit))
  })
  await recalculate()
  publishing = false
  await Promise.all(walkers)
  await untilCaughtUp(projector)
})

const current = new Map<string, string>()
let ids = 0
const calculated = (pair: { rep_id: string; period_id: string }) => {
  const of = `${pair.rep_id} ${pair.period_id}`
  const id = `payout_${++ids}`
  const supersedes_id = current.get(of) ?? null
  current.set(of, id)
  return payoutCalculated({ org_id: org, id, ...pair, supersedes_id, net_amount: `${ids}.00` })
}

/** The walks during which the list changed. */
const changed = (): Walk[] =>
  walks.filter(({ before, after }) => String(idsOf(before.data)) !== String(idsOf(after.data)))
const isEnough = (): boolean =>
  walks.length > LIMITS.length * 2 &&
  changed().length > LIMITS.length &&
  crossReads.some(({ replacement }) => replacement !== undefined)

/**
 * Publishes a few at a time, sometimes twice for one pair, until there is enough to check. Reading a page after each
 * portion sets the pace.
 */
const recalculate = async (): Promise<void> => {
  for (let done = 0; done < RECALCULATIONS || !isEnough(); ) {
    const some = Array.from({ length: 1 + random.below(6) }, () => calculated(random.pick(moving)))
    if (random.chance(0.2)) some.push(repRecorded({ org_id: org, id: `rep_${random.below(REPS)}`, name: `Ada ${ids}` }))
    await topics.publish(some)
    done += some.length
    whole.push(await client.page('payouts', { limit: 200 }))
  }
}

const walkOnce = async (limit: number): Promise<Walk> => {
  const own = createClient(apis, key)
  const before = await own.page('payouts', { limit: 200 })
  const pages: Page[] = []
  for await (const page of own.walk('payouts', limit)) {
    pages.push(page)
    if (page.data[0] && random.chance(0.2)) crossReads.push(await readAgain(own, page.data[0]))
  }
  for (const listed of sample(
    pages.flatMap(({ data }) => data),
    5,
  ))
    crossReads.push(await readAgain(own, listed))
  const after = await own.page('payouts', { limit: 200 })
  repWalks.push((await own.all('reps', 3)).map(({ id }) => String(id)))
  return { limit, before, pages, after }
}

/** Reads a listed payout by its id, and the payout that superseded it, each from the next process. */
const readAgain = async (own: Client, listed: Item) => {
  const read = await own.read(`/payouts/${listed.id}`)
  const by = read.superseded_by_id
  return { listed, read, replacement: by === null ? undefined : await own.read(`/payouts/${by}`) }
}

const idsOf = (items: readonly Item[]): string[] => items.map(({ id }) => String(id))
const pairOf = ({ rep_id, period_id }: Item): string => `${rep_id} ${period_id}`
const recordsOf = ({ pages }: Walk): Item[] => pages.flatMap(({ data }) => data)

/** The offset of each payout in the log. */
const offsets = (): ReadonlyMap<string, number> =>
  new Map(
    topics.published().flatMap(({ stream, value, offset }) => {
      return stream === 'events' ? [[String(JSON.parse(String(value)).id), offset] as const] : []
    }),
  )

test('the test had enough to check: walks over many pages, and many superseded payouts', () => {
  expect(isEnough()).toBe(true)
})

test("3. A walk never skips a record that was current from before the walk's first page to after its last, never returns an id twice, and moves strictly forward; a replacement comes later than what it replaced.", () => {
  const places = offsets()
  for (const walk of walks) {
    const records = recordsOf(walk)
    const walked = idsOf(records)
    const throughout = new Set(idsOf(walk.before.data)).intersection(new Set(idsOf(walk.after.data)))
    expect(throughout.size).toBeGreaterThanOrEqual(pairs.length - moving.length)
    expect([...throughout].filter(id => !walked.includes(id))).toEqual([])
    expect(new Set(walked).size).toBe(walked.length)

    const offsetsWalked = walked.map(id => places.get(id) ?? -1)
    expect(offsetsWalked).toEqual(offsetsWalked.toSorted((a, b) => a - b))
    for (const [place, { supersedes_id }] of records.entries()) {
      expect(walked.indexOf(String(supersedes_id))).toBeLessThan(place)
    }
  }
})

test('a walk that keeps the last payout of each (rep, period) has all pairs', () => {
  for (const walk of walks) {
    const last = new Map(recordsOf(walk).map(record => [pairOf(record), record]))
    expect([...last.keys()].sort()).toEqual(pairs.map(pairOf).sort())
  }
})

test('4. Replaced and replacement change places in one step: no read sees neither, and no single page sees both as current.', () => {
  const everyPair = pairs.map(pairOf).sort()
  for (const { data } of [...whole, ...walks.flatMap(({ before, after }) => [before, after])]) {
    expect(data.map(pairOf).sort()).toEqual(everyPair)
  }
  for (const { data } of walks.flatMap(({ pages }) => pages)) {
    expect(new Set(data.map(pairOf)).size).toBe(data.length)
    expect(data.filter(({ superseded_by_id }) => superseded_by_id !== null)).toEqual([])
  }
})

test('6. /payouts/{id} and /payouts agree: a listed id is readable; a superseded_by_id names a readable payout.', async () => {
  for (const { listed, read, replacement } of crossReads) {
    expect({ ...read, superseded_by_id: null }).toEqual(listed)
    if (replacement) expect(replacement).toMatchObject({ id: read.superseded_by_id, supersedes_id: read.id })
  }
  for (const id of sample(idsOf(walks.flatMap(recordsOf)), 40)) {
    const { superseded_by_id } = await client.read(`/payouts/${id}`)
    if (superseded_by_id !== null) {
      expect(await client.read(`/payouts/${superseded_by_id}`)).toMatchObject({ supersedes_id: id })
    }
  }
})

test('every walk of the reps returns each of them once, in the order of their first versions, despite changes', () => {
  for (const walked of repWalks) expect(walked).toEqual(Array.from({ length: REPS }, (_, place) => `rep_${place}`))
})

test('limits 1, 7, 50 and 200 return the same sequence, and 201 and 100000 work like 200', async () => {
  const all = await client.all('payouts', 200)
  for (const limit of [1, 7, 50]) expect(await client.all('payouts', limit)).toEqual(all)
  for (const limit of [201, 100_000]) {
    expect(await client.page('payouts', { limit })).toEqual(await client.page('payouts', { limit: 200 }))
  }
})

test('5. Any id a list ever returned is good as starting_after for ever: after supersession, restart, rebuild and swap.', async t => {
  const everListed = sample([...new Set(idsOf(walks.flatMap(recordsOf)))], 40)
  const places = offsets()
  const now = await client.all('payouts')
  const expectGood = async (by: Client): Promise<void> => {
    for (const id of everListed) {
      const { data } = await by.page('payouts', { limit: 200, starting_after: id })
      const later = now.filter(item => (places.get(String(item.id)) ?? 0) > (places.get(id) ?? 0))
      expect(idsOf(data)).toEqual(idsOf(later))
    }
  }
  expect(everListed.some(id => !idsOf(now).includes(id))).toBe(true)
  await expectGood(client)

  for (const api of apis) expect(await api.stop()).toEqual({ code: 0, signal: null })
  expect(await projector.stop()).toEqual({ code: 0, signal: null })
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  await expectGood(createClient([await startApi(t, prefix)], key))

  const again = createPrefix(t)
  await untilCaughtUp(await startProjector(t, { topics, prefix: again, groupId: `${again}-rebuild` }))
  await expectGood(createClient([await startApi(t, again)], key))
})

const sample = <Value>(values: readonly Value[], count: number): Value[] =>
  values.length === 0 ? [] : Array.from({ length: count }, () => random.pick(values))
