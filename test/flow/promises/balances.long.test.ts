/**
 * Totals of an organization with thousands of changes are counted from its balances, and are the sums of its records at
 * any moment. Prints its seed; FLOW_SEED sets it.
 */
import { beforeAll, expect, test } from 'vitest'
import type { BalanceDocument } from '../../../schemas/stored/documents.ts'
import { foldAll } from '../../support/agreement.ts'
import { createClient, type Page } from '../../support/client.ts'
import { commandSettings, expectFoundEqual, jsonLines, runCommand } from '../../support/commands.ts'
import { keyCreated, newKeyText } from '../../support/events.ts'
import { routeGenerations } from '../../support/layout.ts'
import type { Model } from '../../support/model.ts'
import { type Api, type Projector, startApi, startProjector, untilCaughtUp } from '../../support/processes.ts'
import { startProjection } from '../../support/projection.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { eventually, fileScope } from '../../support/scope.ts'
import { call } from '../../support/stored.ts'
import { createStream, organizationsIn } from '../../support/streams.ts'
import type { Topics } from '../../support/topics.ts'
import { balanceRowsOf, totalsOf } from '../../support/totals.ts'

/** Changes from one balance to the next. */
const CHANGES = 1_000
const PARTITIONS = 3
const LAYOUT = { ELASTICSEARCH_SHARDS: '3', ...routeGenerations(3, 1) }
const seed = seedOfRun()
const random = createRandom(seed)
const [org = ''] = organizationsIn(random, [0], PARTITIONS)
const key = newKeyText()
const file = fileScope()
let topics: Topics
let prefix: string
let projector: Projector
let api: Api
let model: Model

beforeAll(async () => {
  console.log(`seed ${seed}`)
  const stream = createStream(random, [org], PARTITIONS, { reps: 40, periods: 12 })
  const settings = { settings: LAYOUT, partitions: PARTITIONS }
  ;({ topics, prefix, projector } = await startProjection(
    file,
    [keyCreated({ org_id: org, id: 'key_client', text: key })],
    settings,
  ))
  await topics.publish(stream.take(1_500))
  await untilCaughtUp(projector)
  // The next balance is made by another process, which must find out how far the first one came.
  await projector.stop()
  projector = await startProjector(file, { topics, prefix, settings: LAYOUT })
  await topics.publish(stream.take(3_000))
  await untilCaughtUp(projector)
  api = await startApi(file, prefix)
  model = foldAll(topics).model
})

const balancesOf = async (generation: string): Promise<BalanceDocument[]> => {
  const query = { size: 100, query: { term: { org_id: org } }, sort: [{ seq: 'asc' }] }
  const { text } = await call('POST', `/${prefix}-${generation}-periods/_search`, query)
  const { hits } = JSON.parse(text) as { hits: { hits: { _source: BalanceDocument }[] } }
  return hits.hits.map(({ _source }) => _source)
}
const untilMade = (generation: string): Promise<BalanceDocument[]> =>
  eventually(async () => {
    const balances = await balancesOf(generation)
    expect(balances.length, projector.log()).toBe(Math.floor(model.changes(org).length / CHANGES))
    return balances
  })

const expectTotals = async (): Promise<void> => {
  const client = createClient([api], key)
  const changes = model.changes(org)
  const at = (place: number) => changes[place]
  const near = [999, 1_000, 1_001, 1_999, 2_000].map(at)
  const asked = [...near, ...Array.from({ length: 30 }, () => random.pick(changes)), changes.at(-1)]
  for (const change of asked) {
    if (change === undefined) throw new Error('too few changes')
    const view = model.view(org, change.seq + 1)
    const wanted = totalsOf(view.payouts, view.payroll_files)
    const { totals, last_sequence } = (await client.read(`/totals?as_of=${change.id}`)) as {
      totals: { period_id: string }[]
      last_sequence: number
    }
    expect(totals, `as of ${change.id}`).toEqual(wanted)
    expect(last_sequence, `as of ${change.id}`).toBe(change.sequence)
    const period = random.pick([...wanted.map(({ period_id }) => period_id), 'period_1'])
    const one = (await client.read(`/totals?as_of=${change.id}&period_id=${period}`)) as { totals: unknown }
    expect(one.totals).toEqual(wanted.filter(({ period_id }) => period_id === period))
    const reps = [...view.payouts, ...view.payroll_files].map(({ rep_id }) => String(rep_id))
    const rep = random.pick([...reps, 'rep_unknown'])
    const [owed, paid] = [view.payouts, view.payroll_files].map(items => items.filter(({ rep_id }) => rep_id === rep))
    const ofRep = (await client.read(`/totals?as_of=${change.id}&rep_id=${rep}`)) as { totals: unknown }
    expect(ofRep.totals, `${rep} as of ${change.id}`).toEqual(totalsOf(owed ?? [], paid ?? []))
  }
  const view = model.view(org)
  const now = (await client.read('/totals')) as { totals: unknown; last_change_id: string; last_sequence: number }
  expect(now.totals).toEqual(totalsOf(view.payouts, view.payroll_files))
  expect([now.last_change_id, now.last_sequence]).toEqual([changes.at(-1)?.id, changes.length])
}

/** Pages of the feed from any change on, whole and filtered, now and as of a change, by cursor and by sequence. */
const expectSequences = async (): Promise<void> => {
  const client = createClient([api], key)
  const changes = model.changes(org)
  const between = (low: number, high: number) => low + Math.floor(random.next() * (high - low + 1))
  const near = [0, 1, 999, 1_000, 1_001, 1_999, 2_000, changes.length - 1, changes.length]
  for (const begin of [...near, ...Array.from({ length: 30 }, () => between(0, changes.length))]) {
    const last = random.chance(0.5) ? changes.length : between(Math.max(begin, 1), changes.length)
    const { rep_id = '' } = random.pick(changes).record
    const filter = random.chance(0.5) && rep_id !== '' ? `&rep_id=${rep_id}` : ''
    const cursor = changes[begin - 1]
    const after = random.chance(0.5) && cursor ? `starting_after=${cursor.id}` : `after=${begin}`
    const path = `/changes?limit=7&${after}${filter}&as_of=${changes[last - 1]?.id}`
    const page: Page = JSON.parse((await client.askInTime(path)).text)
    const wanted = changes
      .slice(begin, last)
      .filter(({ record }) => filter === '' || record.rep_id === rep_id)
      .slice(0, 7)
    expect(
      page.data.map(({ id, sequence }) => [id, sequence]),
      path,
    ).toEqual(wanted.map(({ id, sequence }) => [id, sequence]))
    expect(page.next_cursor, path).toBe(wanted.at(-1)?.id ?? cursor?.id ?? '')
  }
  const beyond = await client.askInTime(`/changes?after=${changes.length + 1}`)
  expect(beyond.status).toBe(400)
}

test('each balance has the sums of the records after its change, also across a restart', async () => {
  const balances = await untilMade('g1')
  expect(balances.length).toBeGreaterThan(1)
  for (const [place, { seq, sequence, body }] of balances.entries()) {
    expect(sequence).toBe((place + 1) * CHANGES)
    expect(seq).toBe(model.changes(org)[sequence - 1]?.seq)
    const view = model.view(org, seq + 1)
    expect(body.rows).toEqual(balanceRowsOf(view.payouts, view.payroll_files))
  }
})

test('totals at any moment are the sums of the lists', expectTotals)

test('changes are numbered from 1 without a gap, and a page begins after any number', expectSequences)

test('a rebuild makes the same bytes, and serves the same totals and numbers', async () => {
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, ...LAYOUT }
  const ended = async (...args: string[]) => {
    const ran = await runCommand(['projection', ...args, '--json'], settings)
    expect(ran, ran.said).toMatchObject({ code: 0 })
    return jsonLines(ran)
  }
  await ended('rebuild')
  expectFoundEqual(await ended('verify', 'g1', 'g2'), [org])
  expect(JSON.stringify(await untilMade('g2'))).toBe(JSON.stringify(await untilMade('g1')))
  await ended('swap', 'g2')
  await expectTotals()
  await expectSequences()
})
