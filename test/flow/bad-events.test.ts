/**
 * What the projector refuses and what it does not: real records through the real Kafka. All are published at once, each for
 * an organization of its own, and looked at one by one.
 */
import kafkajs from 'kafkajs'
import { beforeAll, describe, expect, test } from 'vitest'
import { registerCodecs } from '../../projector/codecs.ts'
import { RECORD_VALUE_BYTES_MAX } from '../../schemas/limits.ts'
import { expectProjectedAsModelled, foldAll } from '../support/agreement.ts'
import { makeBad } from '../support/bad-event.ts'
import { refused, tooLongChain } from '../support/bad-events.ts'
import { keyCreated, newId, type Outgoing, periodRecorded, repRecorded, withData } from '../support/events.ts'
import { applied, duplicates } from '../support/good-events.ts'
import type { Outcome } from '../support/model.ts'
import { caughtUp, type Projector, startProjector } from '../support/processes.ts'
import { fileScope } from '../support/scope.ts'
import { createPrefix, indexNamed, parkedAt, storedById } from '../support/stored.ts'
import { createTopics, type Published, type Topics } from '../support/topics.ts'

const file = fileScope()
let topics: Topics
let prefix: string
let projector: Projector
let tooLong: Published[]
let outcomes: ReadonlyMap<Published, Outcome>

beforeAll(async () => {
  registerCodecs()
  topics = await createTopics(file)
  prefix = createPrefix(file)
  projector = await startProjector(file, { topics, prefix, settings: { LOG_LEVEL: 'trace' } })
  await publishAll()
  const { before, bad } = tooLongChain(newId('org'))
  tooLong = (await topics.publish([...before, ...bad])).slice(-bad.length)
  outcomes = foldAll(topics).outcomes
  await caughtUp(projector)
})

/** What was published for a case, by its name: the record it is about, and the good one behind it. */
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

const refusedCases = Object.entries(refused).flatMap(([code, makes]) =>
  Object.entries(makes).map(([name, make]) => [code, name, make] as const),
)

const caseNamed = (name: string) => {
  const found = cases.get(name)
  if (found === undefined) throw new Error(`nothing was published for ${name}`)
  return found
}

describe.for(Object.keys(refused))('%s', code => {
  test('is tried with at least three inputs', () => {
    expect(refusedCases.filter(([of]) => of === code).length).toBeGreaterThanOrEqual(3)
  })

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

/** The next good event of the same organization is applied. */
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

test.for(Object.keys(applied))('applied, not refused: %s', async name => {
  const { subject, next, org } = caseNamed(`applied: ${name}`)
  expect(await parkedAt(prefix, topics.name(subject.stream), subject)).toBeUndefined()
  expect(outcomes.get(subject)).toEqual({ outcome: 'applied' })
  await expectApplied(next, org)
})

test.for(Object.keys(duplicates))('a duplicate, not refused: %s', async name => {
  const { subject, next, org } = caseNamed(`duplicate: ${name}`)
  expect(await parkedAt(prefix, topics.name(subject.stream), subject)).toBeUndefined()
  expect(outcomes.get(subject)).toEqual({ outcome: 'duplicate' })
  await expectApplied(next, org)
})

test('chain_too_long: a calculated payout, a recorded one and a payroll record, after 10,000 of each kind', async () => {
  expect(tooLong).toHaveLength(3)
  for (const record of tooLong) {
    const parked = await parkedAt(prefix, topics.events, record)
    expect(parked).toMatchObject({ code: 'chain_too_long', key: record.key, value: record.value })
  }
})

test.for(['None', 'GZIP', 'Snappy', 'LZ4', 'ZSTD'] as const)(
  'applied, not refused: a batch compressed with %s',
  async name => {
    const org = newId('org')
    const records = Array.from({ length: 20 }, (_, place) => repRecorded({ org_id: org, id: `rep_${place}` }))
    await topics.publish(records, kafkajs.CompressionTypes[name])
    await caughtUp(projector)
    const heads = records.map((_, place) => storedById(indexNamed(prefix, 'reps'), `${org}:rep_${place}`))
    for (const head of await Promise.all(heads)) expect(head).toMatchObject({ org_id: org })
  },
)

test('records of 8 MiB are applied, or kept byte for byte', async () => {
  const org = newId('org')
  const name = (length: number) => withData(repRecorded({ org_id: org }), { extra: 'x'.repeat(length) })
  const room = RECORD_VALUE_BYTES_MAX - Buffer.byteLength(String(name(0).value))
  const [good] = await topics.publish([name(room)])
  const [tooLarge] = await topics.publish([name(room + 1)])
  const [bad] = await topics.publish([{ ...name(room), value: 'x'.repeat(RECORD_VALUE_BYTES_MAX) }])
  await caughtUp(projector)
  expect(good?.value).toHaveLength(RECORD_VALUE_BYTES_MAX)
  expect(await storedById(indexNamed(prefix, 'reps'), `${org}:rep_1:${good?.offset}`)).toMatchObject({ org_id: org })
  for (const record of [tooLarge, bad]) {
    const parked = record && (await parkedAt(prefix, topics.events, record))
    expect(parked?.code).toBe('record_undecodable')
    expect(record?.value && parked?.value?.equals(record.value)).toBe(true)
  }
})

test('every record of all of these became what the contract says, and nothing else came into being', async () => {
  await expectProjectedAsModelled(prefix, topics)
})

test('nothing of a record stands in the log, at the most talkative level', async () => {
  await projector.stop()
  expect(projector.log()).toContain('projecting')
  expect(projector.log()).not.toMatch(/CANARY/i)
  for (const { org } of cases.values()) expect(projector.log()).not.toContain(org)
})
