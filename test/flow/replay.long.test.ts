/** `commission projection replay` into sandboxes, compared with the live documents of that moment. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, inject, test } from 'vitest'
import { partitionOf } from '../../schemas/partition.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { repRecorded, withData } from '../support/events.ts'
import { layoutOfFresh } from '../support/layout.ts'
import { type Projector, startProcess, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { startProxy } from '../support/proxy.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { allStored, call, indicesOf, readPosition, type Stored } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import type { Topics } from '../support/topics.ts'

const PARTITIONS = 3
const file = fileScope()
const seed = seedOfRun()
console.log(`seed ${seed}`)
const random = createRandom(seed)
const organizations = organizationsIn(random, [0, 1, 1, 2], PARTITIONS)
const stream = createStream(random, organizations, PARTITIONS, { reps: 2, periods: 2 })
const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains', 'parked']

type Everything = Readonly<Record<string, Stored[]>>
let topics: Topics
let prefix: string
let projector: Projector
const padding = 'x'.repeat(200_000)
/** The live documents and positions at an instant. */
let then: { readonly all: Everything; readonly bounds: readonly number[]; readonly time: string }

const settings = (): Record<string, string> => ({ ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
const projection = (...args: string[]): Promise<Ran> => runCommand(['projection', ...args], settings())
const replayed = async (...args: string[]) => {
  const ran = await projection('replay', '--json', ...args)
  expect(ran, ran.said).toMatchObject({ code: 0 })
  return jsonLines(ran)[0] as { sandbox: string; records: number; bounds: number[] }
}
const everything = async (generation: string): Promise<Everything> =>
  Object.fromEntries(
    await Promise.all(kinds.map(async kind => [kind, await allStored(`${prefix}-${generation}-${kind}`)] as const)),
  )
const positions = (place: string, generation: string): Promise<number[]> =>
  Promise.all(
    Array.from(
      { length: PARTITIONS },
      async (_, partition) => (await readPosition(place, generation, partition)).position,
    ),
  )

beforeAll(async () => {
  ;({ topics, prefix, projector } = await startProjection(file, stream.take(300), { partitions: PARTITIONS }))
  await sleep(20)
  const time = new Date().toISOString()
  then = { all: await everything('g1'), bounds: await positions(prefix, 'g1'), time }
  await sleep(20)
  await topics.publish(stream.take(200))
  await untilCaughtUp(projector)
  expect(await everything('g1')).not.toEqual(then.all)
})

test('a replay up to offsets has the live documents at those offsets, to the byte, and ends exactly there', async () => {
  const until = then.bounds.flatMap((bound, partition) => ['--until-offset', `${partition}:${bound}`])
  expect(await replayed(...until)).toMatchObject({ sandbox: 'sandbox:s1', bounds: then.bounds })
  expect(await positions(`${prefix}-sandbox`, 's1')).toEqual(then.bounds)
  expect(await everything('sandbox-s1')).toEqual(then.all)
  // A cut partition has no time of its data, because more records follow.
  const ends = await topics.admin.fetchTopicOffsets(topics.events)
  const cut = then.bounds.flatMap((bound, partition) =>
    bound < Number(ends.find(end => end.partition === partition)?.high) ? [partition] : [],
  )
  expect(cut.length).toBeGreaterThan(0)
  for (const partition of cut) expect((await readPosition(`${prefix}-sandbox`, 's1', partition)).time).toBe(0)
})

test('a replay up to a time has the live documents at that time', async () => {
  expect(await replayed('--until-time', then.time)).toMatchObject({ sandbox: 'sandbox:s2', bounds: then.bounds })
  expect(await everything('sandbox-s2')).toEqual(then.all)
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
  expect(await projection('replay', '--until-time', tomorrow)).toMatchObject({
    code: 1,
    said: expect.stringContaining('in the future'),
  })
  // There is no later record, and a record with that time may still come. A slow command asks too late.
  await eventually(async () => {
    const justNow = new Date(Date.now() - 1_000).toISOString()
    expect(await projection('replay', '--until-time', justNow)).toMatchObject({
      code: 1,
      said: expect.stringContaining('can still get records of that time'),
    })
  })
})

test('a replay that was stopped or killed continues, and has the same result as one without interruption', async () => {
  // More than is read ahead, because a stop publishes everything that was read.
  const [, , , large = ''] = organizations
  const padded = (number: number) => withData(repRecorded({ org_id: large, id: `rep_p${number}` }), { padding })
  await topics.publish(Array.from({ length: 80 }, (_, number) => padded(number)))
  const begin = async (name: string, ...args: string[]) => {
    const parameters = ['projection', 'replay', '--name', name, '--max-rate', '10', ...args]
    const running = startProcess(file, 'tools/main.ts', settings(), { parameters })
    await eventually(async () => {
      const reached = await positions(`${prefix}-sandbox`, name).catch(() => [0])
      expect(Math.max(...reached), running.log()).toBeGreaterThan(20)
    })
    return running
  }
  const stopped = await begin('stopped')
  expect(await stopped.stop(), stopped.log()).toEqual({ code: 1, signal: null })
  expect(stopped.log()).toContain('--name stopped continues')
  const [listed] = jsonLines(await projection('list', '--sandbox', '--json')).filter(
    ({ sandbox }) => sandbox === 'sandbox:stopped',
  )
  expect(Number(listed?.records)).toBeLessThan(Number(listed?.of))
  // New records are not included: the bounds were fixed when the replay began.
  await topics.publish(stream.take(20))
  await untilCaughtUp(projector)
  expect((await projection('replay', '--name', 'stopped', '--until-time', then.time)).said).toContain(
    'is there already',
  )
  expect((await projection('replay', '--name', 'stopped', '--org', String(organizations[0]))).said).toContain(
    'made of all organizations',
  )
  const { bounds } = await replayed('--name', 'stopped')
  const until = bounds.flatMap((bound, partition) => ['--until-offset', `${partition}:${bound}`])

  await (await begin('killed', ...until)).kill()
  const again = await projection('replay', '--name', 'killed', ...until)
  expect(again, again.said).toMatchObject({ code: 0, said: expect.stringContaining('continuing with sandbox:killed') })
  const once = await replayed('--name', 'once', ...until)
  expect(once.bounds).toEqual(bounds)
  expect(await everything('sandbox-stopped')).toEqual(await everything('sandbox-once'))
  expect(await everything('sandbox-killed')).toEqual(await everything('sandbox-once'))
  const done = await projection('replay', '--name', 'once', ...until)
  expect(done).toMatchObject({ code: 0, said: expect.stringContaining('sandbox:once exists already: ') })
})

test('a replay of one organization has only its records, good and bad, to the byte', async () => {
  const [, org = ''] = organizations
  const ours = partitionOf(org, PARTITIONS)
  const { bounds } = await replayed('--name', 'one', '--org', org)
  const live = await everything('g1')
  expect(bounds).toEqual((await positions(prefix, 'g1')).map((end, partition) => (partition === ours ? end : 0)))
  const mine = ({ source }: Stored): boolean =>
    source.org_id === org && (source.partition === undefined || source.partition === ours)
  expect(await everything('sandbox-one')).toEqual(
    Object.fromEntries(Object.entries(live).map(([kind, documents]) => [kind, documents.filter(mine)])),
  )
  const bound = Number(then.bounds[ours])
  expect((await replayed('--name', 'early', '--org', org, '--until-offset', String(bound))).records).toBe(bound)
  expect((await everything('sandbox-early')).payouts).toEqual(then.all.payouts?.filter(mine))
})

test('a bound may be at the end of a transaction, or among aborted records', async () => {
  const [org = ''] = organizations
  const partition = partitionOf(org, PARTITIONS)
  const producer = topics.kafka.producer({ idempotent: true, maxInFlightRequests: 1, transactionalId: `${prefix}-one` })
  await producer.connect()
  const ends = await topics.admin.fetchTopicOffsets(topics.events)
  const from = Number(ends.find(end => end.partition === partition)?.high)
  for (const [id, end] of [
    ['rep_aborted', 'abort'],
    ['rep_committed', 'commit'],
  ] as const) {
    const transaction = await producer.transaction()
    const { key, value, headers } = repRecorded({ org_id: org, id })
    const message = { key, value, headers: headers as Record<string, string>, partition }
    await transaction.send({ topic: topics.events, messages: [message, { ...message }] })
    await transaction[end]()
  }
  await producer.disconnect()
  await untilCaughtUp(projector)
  // Two aborted records and their marker, then two committed records and their marker.
  for (const bound of [from + 1, from + 3, from + 6]) {
    await replayed('--name', `t${bound}`, '--org', org, '--until-offset', String(bound))
    expect((await positions(`${prefix}-sandbox`, `t${bound}`))[partition]).toBe(bound)
    const ids = (await allStored(`${prefix}-sandbox-t${bound}-reps`)).map(({ id }) => id)
    expect(ids.includes(`${org}:rep_committed`)).toBe(bound > from + 3)
    expect(ids).not.toContain(`${org}:rep_aborted`)
  }
})

test('only indices of sandboxes are written, and the live ones do not change', async () => {
  const live = (await indicesOf(prefix)).filter(name => !name.startsWith(`${prefix}-sandbox`))
  expect(live.sort()).toEqual(
    [
      ...layoutOfFresh(prefix).indices,
      ...['api-keys', 'api-keys-parked', 'control'].map(name => `${prefix}-${name}`),
    ].sort(),
  )
  const { text } = await call('GET', `/${prefix}-control/_search?size=100`)
  expect(text).not.toContain('sandbox')
  expect(projector.exit()).toBeUndefined()
})

test('a replay under other rules has the result of those rules; unusable rules are refused', async () => {
  const rules = join(import.meta.dirname, '..', 'support', 'bonus-rules.ts')
  const until = then.bounds.flatMap((bound, partition) => ['--until-offset', `${partition}:${bound}`])
  await replayed('--name', 'bonus', '--rules', rules, ...until)
  const changed = (await everything('sandbox-bonus')).payouts?.filter(({ source }) =>
    (source.body as { line_items: { id: string }[] }).line_items.some(({ id }) => id === 'line_bonus'),
  )
  // Two organizations may have the same payout id, so documents are compared by organization and id.
  const wanted = then.all.payouts?.filter(({ source }) => {
    const { currency, calculated_at } = source.body as { currency: string; calculated_at: string | null }
    return currency === 'EUR' && calculated_at !== null
  })
  expect(changed?.map(({ id }) => id)).toEqual(wanted?.map(({ id }) => id))
  expect(wanted?.length).toBeGreaterThan(0)
  expect((await projection('replay', '--name', 'bonus', ...until)).said).toContain('made with bonus-rules.ts')
  expect(await projection('replay', '--rules', 'no-such-rules.ts')).toMatchObject({
    code: 1,
    said: 'the rules cannot be read: no-such-rules.ts\n',
  })
  expect(await projection('replay', '--rules', 'README.md')).toMatchObject({
    code: 1,
    said: expect.stringContaining('README.md cannot be loaded: '),
  })
})

test('a replay waits while Elasticsearch answers 503, at its begin and in the middle', async t => {
  const proxy = await startProxy(t, new URL(inject('elasticsearchUrl')).host)
  const answer = 'HTTP/1.1 503 Service Unanswered\r\ncontent-length: 0\r\nx-elastic-product: Elasticsearch\r\n\r\n'
  const fail = (concerns: (line: string) => boolean) => proxy.inject({ kind: 'other-answer', answer }, concerns, 3)
  await fail(line => line.includes('_doc/'))
  const until = then.bounds.flatMap((bound, partition) => ['--until-offset', `${partition}:${bound}`])
  const args = ['projection', 'replay', '--name', 'patient', ...until, '--json']
  const running = runCommand(args, { ...settings(), ELASTICSEARCH_URL: `http://${proxy.address}` })
  await proxy.passes(line => line.includes('_doc/'))
  expect(proxy.hits()).toBe(3)
  await fail(line => line.includes('_mget'))
  const ran = await running
  expect(ran, ran.said).toMatchObject({ code: 0 })
  expect(proxy.hits()).toBe(3)
  expect(await everything('sandbox-patient')).toEqual(then.all)
})

test('a dropped sandbox is gone, and its name is free', async () => {
  const names = async () => jsonLines(await projection('list', '--sandbox', '--json')).map(({ sandbox }) => sandbox)
  expect(await names()).toContain('sandbox:s1')
  const dropped = await projection('drop', 'sandbox:s1')
  expect(dropped, dropped.said).toMatchObject({ code: 0, said: 'sandbox:s1 is dropped\n' })
  expect(await names()).not.toContain('sandbox:s1')
  expect((await indicesOf(`${prefix}-sandbox-s1`)).length).toBe(0)
  const { groups } = await topics.admin.listGroups()
  const mine = groups.map(({ groupId }) => groupId).filter(id => id.startsWith(`${prefix}-sandbox-`))
  expect([mine.includes(`${prefix}-sandbox-s1`), mine.includes(`${prefix}-sandbox-s2`)]).toEqual([false, true])
  expect((await projection('drop', 'sandbox:s1')).said).toContain('there is no sandbox:s1')
})
