/** The promises hold for any number of shards. Prints its seed; FLOW_SEED sets it. */
import { beforeAll, expect, test } from 'vitest'
import { expectProjectedAsModelled, foldAll } from '../../support/agreement.ts'
import { type Client, createClient, lists } from '../../support/client.ts'
import { commandSettings, expectFoundEqual, jsonLines, runCommand } from '../../support/commands.ts'
import { keyCreated, newKeyText } from '../../support/events.ts'
import { routeGenerations } from '../../support/layout.ts'
import type { Item, Model } from '../../support/model.ts'
import { type Api, type Projector, startApi, untilCaughtUp } from '../../support/processes.ts'
import { startProjection } from '../../support/projection.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { fileScope } from '../../support/scope.ts'
import { call } from '../../support/stored.ts'
import { createStream, organizationsIn } from '../../support/streams.ts'
import type { Topics } from '../../support/topics.ts'
import { totalsOf } from '../../support/totals.ts'
import { expectWalkedAsModelled, startWalkers } from '../../support/walkers.ts'

const PARTITIONS = 3
const SHARDS = 3
const LIMITS = [1, 2, 7, 50, 200]
const routed = routeGenerations(SHARDS, 1)
const seed = seedOfRun()
const random = createRandom(seed)
const organizations = organizationsIn(random, [0, 1, 1, 2], PARTITIONS)
const keys = new Map(organizations.map(org => [org, newKeyText()]))
const stream = createStream(random, organizations, PARTITIONS, { reps: 4, periods: 3 })

const file = fileScope()
let topics: Topics
let prefix: string
let projector: Projector
let api: Api
let model: Model

beforeAll(async () => {
  console.log(`seed ${seed}`)
  ;({ topics, prefix, projector } = await startProjection(
    file,
    [...keys].map(([org, text]) => keyCreated({ org_id: org, id: 'key_client', text })),
    {
      partitions: PARTITIONS,
      settings: { ELASTICSEARCH_SHARDS: String(SHARDS), ...routed },
    },
  ))
  await topics.publish(stream.take(300))
  await untilCaughtUp(projector)
  api = await startApi(file, prefix)
  const walkers = startWalkers({ apis: () => [api], keys, random: createRandom(seed + 1), walkers: 4, every: 5 })
  // Small portions, so that lists change between two pages.
  for (let part = 0; part < 40; part++) await topics.publish(stream.take(10))
  await untilCaughtUp(projector)
  const walked = await walkers.stop()
  model = foldAll(topics).model
  expectWalkedAsModelled(walked, model)
})

const clientOf = (org: string): Client => createClient([api], keys.get(org) ?? '')
const shardsOf = async (index: string): Promise<number[]> =>
  (JSON.parse((await call('GET', `/_cat/shards/${index}?format=json&h=docs`)).text) as { docs: string }[]).map(
    ({ docs }) => Number(docs),
  )
const walk = async (org: string, path: string, limit: number): Promise<Item[]> => {
  const records: Item[] = []
  for (let cursor = '', more = true; more; ) {
    const { status, text } = await clientOf(org).askInTime(
      `${path}?limit=${limit}${cursor && `&starting_after=${cursor}`}`,
    )
    expect([path, status]).toEqual([path, 200])
    const { data, has_more, next_cursor } = JSON.parse(text) as { data: Item[]; has_more: boolean; next_cursor: string }
    records.push(...data)
    more = has_more
    cursor = next_cursor
  }
  return records
}
const idsOf = (items: readonly Item[]): string[] => items.map(({ id }) => String(id))

const expectServed = async (): Promise<void> => {
  for (const org of organizations) {
    const view = model.view(org)
    for (const list of lists) {
      for (const limit of LIMITS) expect(await walk(org, `/${list}`, limit)).toEqual(view[list])
    }
    for (const payout of view.everyPayout) expect(await clientOf(org).read(`/payouts/${payout.id}`)).toEqual(payout)
    for (const statement of view.statements) {
      expect(await clientOf(org).read(`/statements/${statement.id}`)).toEqual(statement)
    }
    const changes = idsOf(await walk(org, '/changes', 7))
    expect(changes).toEqual(model.changes(org).map(({ id }) => id))
    for (const { id, rep_id, period_id } of view.payouts) {
      const chain = view.everyPayout.filter(item => item.rep_id === rep_id && item.period_id === period_id)
      expect(idsOf(await walk(org, `/payouts/${id}/history`, 2))).toEqual(idsOf(chain))
    }
    const { totals } = (await clientOf(org).read('/totals')) as { totals?: unknown }
    expect(totals).toEqual(totalsOf(view.payouts, view.payroll_files))
  }
}

test('the records are on several of three shards, and all of an organization on one', async () => {
  const documents = await shardsOf(`${prefix}-g1-payouts`)
  expect(documents).toHaveLength(SHARDS)
  expect(documents.filter(count => count > 0).length).toBeGreaterThan(1)
  for (const index of ['payouts', 'statements', 'chains'].map(kind => `${prefix}-g1-${kind}`)) {
    await call('POST', `/${index}/_refresh`)
    for (const org of organizations) {
      const query = { size: 0, query: { term: { org_id: org } }, track_total_hits: true }
      const count = async (routing: string) => {
        const { text } = await call('POST', `/${index}/_search${routing}`, query)
        const { hits, _shards } = JSON.parse(text) as Counted
        return { found: hits.total.value, shards: _shards.total }
      }
      const [all, routed] = [await count(''), await count(`?routing=${org}`)]
      expect(all.found).toBeGreaterThan(0)
      expect([all.shards, routed]).toEqual([SHARDS, { found: all.found, shards: 1 }])
    }
  }
})
type Counted = {
  readonly hits: { readonly total: { readonly value: number } }
  readonly _shards: { readonly total: number }
}

test('on three shards, everything published is stored, and served in lists, records, histories, the feed and sums', async () => {
  await expectProjectedAsModelled(prefix, topics)
  await expectServed()
})

test('a rebuild with another number of shards is found equal, is made live, and serves the same', async () => {
  const sizes = { ELASTICSEARCH_SHARDS: '2', ...routed }
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, ...sizes }
  const ended = async (...args: string[]) => {
    const ran = await runCommand(['projection', ...args, '--json'], settings)
    expect(ran, ran.said).toMatchObject({ code: 0 })
    return jsonLines(ran)
  }
  await ended('rebuild')
  expectFoundEqual(await ended('verify', 'g1', 'g2'), organizations)
  await ended('swap', 'g2')
  expect(await shardsOf(`${prefix}-g1-payouts`)).toHaveLength(SHARDS)
  expect(await shardsOf(`${prefix}-g2-payouts`)).toHaveLength(2)
  await expectServed()
})
