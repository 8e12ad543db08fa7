/**
 * The promises about time: records at any moment, changes since, and sums. Runs on a random stream of organizations
 * that share a partition. Prints its seed; FLOW_SEED sets it.
 */
import { beforeAll, expect, test } from 'vitest'
import { foldAll } from '../../support/agreement.ts'
import { type Client, createClient, lists } from '../../support/client.ts'
import { keyCreated, newKeyText } from '../../support/events.ts'
import { timesInKafka } from '../../support/in-kafka.ts'
import type { Item, Model, ModelChange } from '../../support/model.ts'
import { partitionOf } from '../../support/model-record.ts'
import { type Projector, startApi, untilCaughtUp } from '../../support/processes.ts'
import { startProjection } from '../../support/projection.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { fileScope } from '../../support/scope.ts'
import { createStream, organizationsIn } from '../../support/streams.ts'
import type { Topics } from '../../support/topics.ts'
import { differenceOfAmounts, lineTotalsOf, totalsOf } from '../../support/totals.ts'

const PARTITIONS = 3
const MOMENTS = 1_000
const AT_ONCE = 8
const seed = seedOfRun()
const random = createRandom(seed)
const organizations = organizationsIn(random, [1, 1, 2], PARTITIONS)
const keys = new Map(organizations.map(org => [org, newKeyText()]))

const file = fileScope()
const stream = createStream(random, organizations, PARTITIONS, { reps: 2, periods: 2 })
let topics: Topics
let projector: Projector
let model: Model
let times: ReadonlyMap<number, number[]>
const clients = new Map<string, Client>()

type Fetched = { readonly status: number; readonly json: { data: unknown; error?: unknown } & Record<string, unknown> }
const get = async (org: string, path: string): Promise<Fetched> => {
  const { status, text } = await (clients.get(org) as Client).askInTime(path)
  return { status, json: JSON.parse(text) }
}
const withQuery = (path: string, query: Record<string, string | number | undefined>): string => {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
const walk = async (
  org: string,
  path: string,
  query: { as_of?: string; limit?: number; starting_after?: string } = {},
): Promise<Item[]> => {
  const records: Item[] = []
  for (let starting_after = query.starting_after, more = true; more; ) {
    const { status, json } = await get(org, withQuery(path, { ...query, starting_after }))
    expect({ path, status, error: json.error }).toEqual({ path, status: 200, error: undefined })
    records.push(...(json.data as Item[]))
    more = json.has_more as boolean
    starting_after = json.next_cursor as string
  }
  return records
}

beforeAll(async () => {
  console.log(`seed ${seed}`)
  const projection = await startProjection(
    file,
    [...keys].map(([org, text]) => keyCreated({ org_id: org, id: 'key_client', text })),
    { partitions: PARTITIONS },
  )
  ;({ topics, projector } = projection)
  // Small portions, with different timestamps.
  for (let part = 0; part < 60; part++) await topics.publish(stream.take(12))
  await untilCaughtUp(projector)
  const api = await startApi(file, projection.prefix)
  for (const [org, text] of keys) clients.set(org, createClient([api], text))
  model = foldAll(topics).model
  times = await timesInKafka(topics)
})

/** A moment of an organization: its text in a request, and the position of the partition at it. */
const anyMoment = (org: string): { readonly as_of: string; readonly position: number } => {
  const changes = model.changes(org)
  if (random.chance(0.5)) {
    const change = random.pick(changes)
    return { as_of: change.id, position: change.seq + 1 }
  }
  const all = times.get(partitionOf(org, PARTITIONS)) ?? []
  // An instant before a later event of the organization is over.
  const last = all[changes.at(-1)?.seq ?? 0] ?? 0
  const time = random.pick(all.filter(one => one + 1 < last)) + random.pick([-1, 0, 0, 1])
  // Fractions of a millisecond are dropped: 0.9 ms is not the next one.
  const as_of = new Date(time).toISOString().replace('Z', random.pick(['Z', '9Z', '999999Z', '+00:00']))
  const after = all.findIndex(one => one > time)
  return { as_of, position: after === -1 ? all.length : after }
}

test(`as of ${MOMENTS} random moments every list, record, history and sum equals that of the model`, async () => {
  const counts: Record<string, number> = {}
  const asked = Array.from({ length: MOMENTS }, () => {
    const org = random.pick(organizations)
    const what = random.pick([...lists, 'record', 'statement', 'history', 'changes', 'totals'] as const)
    counts[what] = (counts[what] ?? 0) + 1
    // A payout of any time. At the moment it may not exist yet.
    const { id } = random.pick(model.view(org).everyPayout)
    return { org, what, id: String(id), limit: random.pick([3, 20, 50, 200]), ...anyMoment(org) }
  })
  for (let from = 0; from < MOMENTS; from += AT_ONCE) await Promise.all(asked.slice(from, from + AT_ONCE).map(check))
  console.log(JSON.stringify(counts))
})

type Asked = {
  readonly org: string
  readonly what: (typeof lists)[number] | 'record' | 'statement' | 'history' | 'changes' | 'totals'
  readonly id: string
  readonly limit: number
  readonly as_of: string
  readonly position: number
}
const check = async ({ org, what, id, limit, as_of, position }: Asked): Promise<void> => {
  const view = model.view(org, position)
  if (what === 'changes') {
    const expected = model.changes(org).filter(({ seq }) => seq < position)
    const walked = await walk(org, '/changes', { as_of, limit })
    expect(walked.map(comparable)).toEqual(expected.map(({ seq: _, ...change }) => change))
  } else if (what === 'totals') {
    const changes = model.changes(org).filter(({ seq }) => seq < position)
    expect((await get(org, withQuery('/totals', { as_of }))).json.data).toEqual({
      last_change_id: changes.at(-1)?.id ?? null,
      last_sequence: changes.length,
      totals: totalsOf(view.payouts, view.payroll_files),
    })
    const ofDeal = (await get(org, withQuery('/totals', { as_of, deal_id: 'deal_1' }))).json.data
    expect(ofDeal).toMatchObject({ totals: [], line_totals: lineTotalsOf(view.payouts, 'deal_1') })
  } else if (what === 'record' || what === 'statement' || what === 'history') {
    const then = view.everyPayout.find(item => item.id === id)
    const path = { record: `/payouts/${id}`, statement: `/statements/${id}`, history: `/payouts/${id}/history` }[what]
    const { status, json } = await get(org, withQuery(path, { as_of }))
    expect([path, as_of, status]).toEqual([path, as_of, then ? 200 : 404])
    if (!then) return
    if (what === 'record') expect(json.data).toEqual(then)
    else if (what === 'statement') expect(json.data).toEqual(view.statements.find(item => item.id === id))
    else {
      const chain = view.everyPayout.filter(item => isSamePair(item, then))
      expect((json.data as Item[]).map(({ difference: _, ...payout }) => payout)).toEqual(chain)
    }
  } else expect(await walk(org, `/${what}`, { as_of, limit })).toEqual(view[what])
}

const isSamePair = (a: Item, b: Item): boolean => a.rep_id === b.rep_id && a.period_id === b.period_id
const comparable = ({ published_at: _, ...change }: Item): Item => change

test('the feed has every applied event once, in order, with its timestamp in Kafka, and nothing of other organizations', async () => {
  for (const org of organizations) {
    const walked = await walk(org, '/changes', { limit: 7 })
    const ofPartition = times.get(partitionOf(org, PARTITIONS))
    expect(walked).toEqual(
      model.changes(org).map(({ seq, ...change }) => ({
        ...change,
        published_at: new Date(ofPartition?.[seq] ?? 0).toISOString(),
      })),
    )
  }
})

test('a history has, for every payout of a chain, the changes since the one before, at any page size', async () => {
  for (const org of organizations) {
    const view = model.view(org)
    for (const payout of view.payouts) {
      const chain = view.everyPayout.filter(item => isSamePair(item, payout))
      const expected = chain.map((item, place) => ({ ...item, difference: differenceOf(chain[place - 1], item) }))
      const of = random.pick(chain)
      expect(await walk(org, `/payouts/${of.id}/history`, { limit: random.pick([1, 2, 200]) })).toEqual(expected)
      const [from] = chain
      const behind = await walk(org, `/payouts/${of.id}/history`, { starting_after: String(from?.id) })
      expect(behind).toEqual(expected.slice(1))
    }
  }
})

type Line = { readonly id: string }
const differenceOf = (before: Item | undefined, after: Item): unknown => {
  if (before === undefined) return null
  const [old, now] = [before.line_items, after.line_items] as unknown as [Line[], Line[]]
  const minus = (field: string) =>
    before.currency === after.currency ? differenceOfAmounts(before[field], after[field]) : null
  return {
    net_amount: minus('net_amount'),
    earned_amount: minus('earned_amount'),
    line_items_added: now.filter(({ id }) => !old.some(line => line.id === id)),
    line_items_removed: old.filter(({ id }) => !now.some(line => line.id === id)),
    line_items_changed: now.flatMap(line => {
      const same = old.find(({ id }) => id === line.id)
      return same && JSON.stringify(same) !== JSON.stringify(line) ? [{ before: same, after: line }] : []
    }),
  }
}

test('changes of another organization and unknown ids are not moments, and get the same message', async () => {
  const [ours = '', neighbour = ''] = organizations
  const theirs = model.changes(neighbour).filter(({ id }) => !model.changes(ours).some(change => change.id === id))
  const answers = new Set<string>()
  for (const as_of of [
    ...theirs.slice(-20).map(({ id }) => id),
    'payout_nobody',
    'rep_1.9999',
    'rep_1',
    'rep_1.0',
    'x',
    '',
  ]) {
    for (const path of ['/payouts', '/payouts/payout_1', '/changes', '/totals', '/payouts/payout_1/history']) {
      const { status, json } = await get(ours, withQuery(path, { as_of }))
      expect([path, as_of, status]).toEqual([path, as_of, 400])
      answers.add(JSON.stringify(json))
    }
  }
  expect([...answers]).toEqual([expect.stringContaining('"invalid_request"')])
})

test('a later record is not a cursor at an earlier moment; a record of that moment is', async () => {
  for (const org of organizations) {
    const changes = model.changes(org)
    for (const kind of [...lists, 'changes'] as const) {
      // A record that changes again keeps the place of its first version.
      const ids = [...new Set(changes.filter(change => kind === 'changes' || change.kind === kind).map(idIn(kind)))]
      const [first = '', last = ''] = [ids[0], ids.at(-1)]
      const as_of = changes.find(change => idIn(kind)(change) === first)?.id
      const pageAfter = (starting_after: string) => get(org, withQuery(`/${kind}`, { as_of, starting_after }))
      expect((await pageAfter(first)).status).toBe(200)
      // Valid without a moment, so that the API caches it.
      expect((await get(org, withQuery(`/${kind}`, { starting_after: last }))).status).toBe(200)
      expect(await pageAfter(last)).toMatchObject({ status: 400, json: { error: { code: 'invalid_cursor' } } })
    }
  }
})

const idIn =
  (kind: string) =>
  (change: ModelChange): string =>
    kind === 'changes' ? change.id : String(change.record.id)

test('a moment that is not over is refused, and the message gives the last one that is', async () => {
  const [org = ''] = organizations
  const answer = await get(org, withQuery('/payouts', { as_of: new Date(Date.now() + 60_000).toISOString() }))
  expect([answer.status, answer.json.error]).toEqual([400, { code: 'invalid_request', message: expect.any(String) }])
  const [last = ''] = /\d{4}-\S+Z/.exec(JSON.stringify(answer.json)) ?? []
  expect(Date.now() - Date.parse(last)).toBeGreaterThan(29_000)
  expect((await get(org, withQuery('/payouts', { as_of: last }))).status).toBe(200)
})

test('a copy made from the lists as of one moment and the feed from there is exact during recalculations', async () => {
  let copying = true
  const publish = async (): Promise<void> => {
    while (copying) {
      await topics.publish(stream.take(10))
      await untilCaughtUp(projector)
    }
  }
  const copies: Awaited<ReturnType<typeof startCopy>>[] = []
  const copyAll = async (): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      for (const org of organizations) copies.push(await startCopy(org))
      for (const one of copies) await follow(one)
    }
    copying = false
  }
  const before = topics.published().length
  await Promise.all([publish(), copyAll()])
  await untilCaughtUp(projector)
  for (const one of copies) {
    await follow(one)
    for (const list of lists) expect([...one.copy[list].values()]).toEqual(await walk(one.org, `/${list}`))
  }
  console.log(`${copies.length} copies while ${topics.published().length - before} records were published`)
})

type Copy = Record<(typeof lists)[number], Map<string, Item>>

/** The lists as of the last change, checked against the totals. */
const startCopy = async (org: string): Promise<{ org: string; copy: Copy; cursor: string }> => {
  const { last_change_id, totals } = (await get(org, '/totals')).json.data as {
    last_change_id: string
    totals: unknown
  }
  const copy = { reps: new Map(), periods: new Map(), payouts: new Map(), payroll_files: new Map() } as Copy
  for (const list of lists) {
    const limit = random.pick([5, 20])
    for (const item of await walk(org, `/${list}`, { as_of: last_change_id, limit }))
      copy[list].set(String(item.id), item)
  }
  expect(totalsOf([...copy.payouts.values()], [...copy.payroll_files.values()])).toEqual(totals)
  return { org, copy, cursor: last_change_id }
}

const follow = async (one: { readonly org: string; readonly copy: Copy; cursor: string }): Promise<void> => {
  const changes = await walk(one.org, '/changes', { starting_after: one.cursor, limit: random.pick([7, 50]) })
  for (const { id, kind, supersedes_id, record } of changes as unknown as ModelChange[]) {
    // A payout replaces the one that it supersedes. A version replaces its own record, which keeps its place.
    if (kind === 'payouts' && supersedes_id !== null) expect(one.copy.payouts.delete(supersedes_id)).toBe(true)
    one.copy[kind].set(String(record.id), record)
    one.cursor = id
  }
}
