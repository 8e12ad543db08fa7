/** Records that the projector parks or applies: all published at once to a real Kafka, then checked one by one. */
import kafkajs from 'kafkajs'
import { beforeAll, describe, expect, test } from 'vitest'
import { parkCodes } from '../../schemas/errors.ts'
import { RECORD_VALUE_BYTES_MAX } from '../../schemas/limits.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import { expectProjectedAsModelled, foldAll } from '../support/agreement.ts'
import { tooLongChain } from '../support/bad-chain.ts'
import { makeBad } from '../support/bad-event.ts'
import { refused } from '../support/bad-events.ts'
import { appliedLarge, refusedLarge } from '../support/bad-large.ts'
import { registerCodecs } from '../support/codecs.ts'
import {
  keyCreated,
  newId,
  type Outgoing,
  periodRecorded,
  repRecorded,
  withData,
  withHeaders,
} from '../support/events.ts'
import { applied as appliedSmall, duplicates } from '../support/good-events.ts'
import type { Outcome } from '../support/model.ts'
import { type Projector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { indexNamed, parkedAt, readPosition, storedById } from '../support/stored.ts'
import type { Published, Topics } from '../support/topics.ts'

const file = fileScope()
let topics: Topics
let prefix: string
let projector: Projector
let tooLong: Published[]
let outcomes: ReadonlyMap<Published, Outcome>
let crowd: { readonly isAt: number; readonly endsAt: number; readonly flood: readonly Published[] }

beforeAll(async () => {
  registerCodecs()
  ;({ topics, prefix, projector } = await startProjection(file, [], { settings: { LOG_LEVEL: 'trace' } }))
  await publishAll()
  await publishCrowd()
  outcomes = foldAll(topics).outcomes
  await untilCaughtUp(projector)
})

/** The records of each case by its name: the record under test, and the good one behind it. */
const cases = new Map<string, { org: string; subject: Published; next: Published }>()

const publishAll = async (): Promise<void> => {
  const everything = new Map<string, { org: string; records: Outgoing[] }>()
  const add = (name: string, of: (org: string) => readonly Outgoing[]): void => {
    const org = newId('org')
    const records = [repRecorded({ org_id: org }), periodRecorded({ org_id: org }), ...of(org)]
    const isKey = records.at(-1)?.stream === 'api-keys'
    const next = isKey ? keyCreated({ org_id: org, id: 'key_next' }) : repRecorded({ org_id: org, id: 'rep_next' })
    everything.set(name, { org, records: [...records, next] })
  }
  for (const [code, name, make] of refusedCases) {
    add(`${code}: ${name}`, org => {
      const { before, bad } = makeBad(make, org, topics.partitions)
      return [...before, bad]
    })
  }
  for (const [name, make] of Object.entries(applied)) add(`applied: ${name}`, org => [make(org)])
  for (const [name, make] of Object.entries(duplicates)) add(`duplicate: ${name}`, make)

  const published = await topics.publish([...everything.values()].flatMap(({ records }) => records))
  let at = 0
  for (const [name, { org, records }] of everything) {
    const [subject, next] = published.slice(at, at + records.length).slice(-2)
    if (subject && next) cases.set(name, { org, subject, next })
    at += records.length
  }
}

/** Fills one partition with bad events and the longest chain. Then publishes one good event to another partition. */
const publishCrowd = async (): Promise<void> => {
  const crowded = newId('org')
  const { before, bad } = tooLongChain(crowded)
  const publish = async (records: readonly Outgoing[]): Promise<Published[]> => {
    const neighbour = inAnotherPartition(crowded)
    const flood = floodOf(crowded)
    const [published, isAt] = await Promise.all([
      topics.publish([...flood, ...records, repRecorded({ org_id: neighbour })]),
      eventually(() => positionOnceVisible(neighbour, crowded), { every: 5 }),
    ])
    crowd = { isAt, endsAt: published.at(-2)?.offset ?? 0, flood: published.slice(0, flood.length) }
    return published
  }
  tooLong = (await publish([...before, ...bad])).slice(-bad.length - 1, -1)
  // On a busy machine the test may look late, when the projector has done all: each next flood is larger.
  for (let floods = 4; crowd.isAt >= crowd.endsAt && floods <= 16; floods *= 2)
    await publish(Array.from({ length: floods }, () => floodOf(crowded)).flat())
}

const inAnotherPartition = (than: string): string => {
  for (;;) {
    const org = newId('org')
    if (partitionOf(org, topics.partitions) !== partitionOf(than, topics.partitions)) return org
  }
}

/** The slowest of the bad events, repeated. */
const floodOf = (org: string): Outgoing[] => {
  const { bad } = makeBad(refusedLarge.record_undecodable['lists nested 100,000 deep'], org, topics.partitions)
  const headers = appliedLarge['10,000 headers that nobody knows']?.(org).headers ?? {}
  const many = withHeaders({ ...repRecorded({ org_id: org }), value: '{' }, headers)
  return Array.from({ length: 1_000 }, (_, place) =>
    place % 100 === 0 ? bad : place % 100 === 50 ? many : { ...bad, value: '{' },
  )
}

/** The position of the crowded partition when readers can see the event of the neighbour. */
const positionOnceVisible = async (neighbour: string, crowded: string): Promise<number> => {
  const head = await storedById(indexNamed(prefix, 'reps'), `${neighbour}:rep_1`)
  expect(head).toBeDefined()
  const [version] = (head as { body: { versions: { seq: number }[] } }).body.versions
  expect(await publishedTo(neighbour)).toBeGreaterThan(version?.seq ?? Number.POSITIVE_INFINITY)
  return publishedTo(crowded)
}

const publishedTo = async (org: string): Promise<number> =>
  (await readPosition(prefix, FIRST_GENERATION, partitionOf(org, topics.partitions))).position

const applied = { ...appliedSmall, ...appliedLarge }
const refusedCases = [...Object.entries(refused), ...Object.entries(refusedLarge)].flatMap(([code, makes]) =>
  Object.entries(makes).map(([name, make]) => [code, name, make] as const),
)

const caseNamed = (name: string) => {
  const found = cases.get(name)
  if (found === undefined) throw new Error(`nothing was published for ${name}`)
  return found
}

test.for(parkCodes)('%s is tested with at least five inputs', code => {
  const tried = refusedCases.filter(([of]) => of === code)
  expect(tried.length + (code === 'chain_too_long' ? tooLong.length : 0)).toBeGreaterThanOrEqual(5)
})

describe.for(Object.keys(refused))('%s', code => {
  test.for(refusedCases.filter(([of]) => of === code).map(([, name]) => name))('%s', async name => {
    const { subject, next, org } = caseNamed(`${code}: ${name}`)
    const parked = await parkedAt(prefix, topics.name(subject.stream), subject)
    expect(parked?.code).toBe(code)
    expect(parked?.key).toEqual(subject.key)
    expect(parked?.headers).toEqual(subject.headers)
    expect(parked?.value).toEqual(subject.value)
    await expectApplied(next, org)
  })
})

/** Expects the next good event of the same organization to be applied. */
const expectApplied = async (next: Published, org: string): Promise<void> => {
  expect(await parkedAt(prefix, topics.name(next.stream), next)).toBeUndefined()
  if (next.stream === 'events') {
    const version = await storedById(indexNamed(prefix, 'reps'), `${org}:rep_next:${next.offset}`)
    expect(version).toMatchObject({ org_id: org, seq: next.offset })
  } else {
    const head = await storedById(indexNamed(prefix, 'api-keys'), `${org}:key_next`)
    expect(head).toMatchObject({ org_id: org, body: { created_seq: next.offset } })
  }
}

test.for(Object.keys(applied))('applied, not parked: %s', async name => {
  const { subject, next, org } = caseNamed(`applied: ${name}`)
  expect(await parkedAt(prefix, topics.name(subject.stream), subject)).toBeUndefined()
  expect(outcomes.get(subject)).toEqual({ outcome: 'applied' })
  await expectApplied(next, org)
})

test.for(Object.keys(duplicates))('a duplicate, not parked: %s', async name => {
  const { subject, next, org } = caseNamed(`duplicate: ${name}`)
  expect(await parkedAt(prefix, topics.name(subject.stream), subject)).toBeUndefined()
  expect(outcomes.get(subject)).toEqual({ outcome: 'duplicate' })
  await expectApplied(next, org)
})

test('chain_too_long: payouts and payroll records of every kind except voids, after 10,000 of each', async () => {
  for (const record of tooLong) {
    const parked = await parkedAt(prefix, topics.events, record)
    expect(parked).toMatchObject({ code: 'chain_too_long', key: record.key, value: record.value })
  }
})

test('an event of another organization, published after a flood of bad ones, is visible before that flood is done', async () => {
  expect(crowd.isAt).toBeLessThan(crowd.endsAt)
  for (const record of crowd.flood.slice(0, 100)) {
    expect((await parkedAt(prefix, topics.events, record))?.code).toBe('record_undecodable')
  }
})

test.for(['None', 'GZIP', 'Snappy', 'LZ4', 'ZSTD'] as const)(
  'applied, not parked: a batch compressed with %s',
  async name => {
    const org = newId('org')
    const records = Array.from({ length: 20 }, (_, place) => repRecorded({ org_id: org, id: `rep_${place}` }))
    await topics.publish(records, kafkajs.CompressionTypes[name])
    await untilCaughtUp(projector)
    const heads = records.map((_, place) => storedById(indexNamed(prefix, 'reps'), `${org}:rep_${place}`))
    for (const head of await Promise.all(heads)) expect(head).toMatchObject({ org_id: org })
  },
)

test('records of 8 MiB are applied, or parked byte for byte', async () => {
  const org = newId('org')
  const name = (length: number) => withData(repRecorded({ org_id: org }), { extra: 'x'.repeat(length) })
  const room = RECORD_VALUE_BYTES_MAX - Buffer.byteLength(String(name(0).value))
  const [good] = await topics.publish([name(room)])
  const [tooLarge] = await topics.publish([name(room + 1)])
  const [bad] = await topics.publish([{ ...name(room), value: 'x'.repeat(RECORD_VALUE_BYTES_MAX) }])
  await untilCaughtUp(projector)
  expect(good?.value).toHaveLength(RECORD_VALUE_BYTES_MAX)
  expect(await storedById(indexNamed(prefix, 'reps'), `${org}:rep_1:${good?.offset}`)).toMatchObject({ org_id: org })
  for (const record of [tooLarge, bad]) {
    const parked = record && (await parkedAt(prefix, topics.events, record))
    expect(parked?.code).toBe('record_undecodable')
    expect(record?.value && parked?.value?.equals(record.value)).toBe(true)
  }
})

test('every record of these tests has its outcome of the contract, and no other document exists', async () => {
  await expectProjectedAsModelled(prefix, topics)
})

test('the log contains nothing of a record, even at level trace', async () => {
  await projector.stop()
  expect(projector.log()).toContain('projecting')
  expect(projector.log()).not.toMatch(/CANARY/i)
  for (const { org } of cases.values()) expect(projector.log()).not.toContain(org)
  const ids = topics.published().flatMap(({ headers }) => headers.filter(([name]) => name === 'ce_id'))
  const logged = ids.filter(
    ([, id]) => id !== null && id.length >= 8 && projector.log().includes(id.toString('latin1')),
  )
  expect(logged).toEqual([])
})
