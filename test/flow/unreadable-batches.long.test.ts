/**
 * A log with batches that nobody can read, among others, goes through all commands: each of their offsets is parked,
 * the same in the live generation, a rebuild, replays, and on topics that were restored from an archive.
 */
import { beforeAll, expect, test } from 'vitest'
import { UNDECODABLE_LOGGED } from '../../core/log/limits.ts'
import { parkedId } from '../../schemas/stored/documents.ts'
import { contentOf, done, logOf, newDirectory, PARTITIONS, publishMixed } from '../support/archives.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { newId, repRecorded } from '../support/events.ts'
import { partitionOf } from '../support/model-record.ts'
import { type Projector, startProjector, untilCaughtUp } from '../support/processes.ts'
import { publishUnreadable } from '../support/publish-batch.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { allStored, createPrefix, everythingProjected, type Stored } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const file = fileScope()
const seed = seedOfRun()
console.log(`seed ${seed}`)
const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains', 'parked']
/** More batches than lines of the log. */
const FLOOD = UNDECODABLE_LOGGED + 5

let topics: Topics
let prefix: string
let projector: Projector
let archive: string
let organizations: string[]
/** The parked documents that stand for the batches. */
const unread: string[] = []

const projection = (on: Topics, ...args: string[]): Promise<Ran> =>
  runCommand(['projection', ...args], { ...commandSettings(on, prefix), KAFKA_GROUP_ID: prefix })
const succeeds = async (on: Topics, ...args: string[]): Promise<Ran> => {
  const ran = await projection(on, ...args)
  expect(ran.code, ran.said).toBe(0)
  return ran
}
const everything = async (generation: string): Promise<Readonly<Record<string, Stored[]>>> =>
  Object.fromEntries(
    await Promise.all(kinds.map(async kind => [kind, await allStored(`${prefix}-${generation}-${kind}`)] as const)),
  )
/** The offsets of batches that were parked, without single records that a publisher has marked as such. */
const unreadIn = async (generation: string): Promise<string[]> =>
  (await allStored(`${prefix}-${generation}-parked`))
    .filter(({ source }) => source.code === 'batch_undecodable' && !isOfPublisher(source))
    .map(({ id }) => id)
    .sort()
/** `bad-alone.ts` marks them with all offsets that there can be. */
const isOfPublisher = ({ body }: Stored['source']): boolean =>
  (body as { readonly headers: readonly (readonly [string, string | null])[] }).headers.some(([, value]) =>
    Buffer.from(value ?? '', 'base64').includes(` ${Number.MAX_SAFE_INTEGER} `),
  )
const contents = async (t: Scope, of: Topics): Promise<string[][]> =>
  Promise.all(
    [0, 1, 2].map(async partition => (await logOf(t, of, of.events, partition)).map(entry => contentOf(entry))),
  )

/** In each partition, a batch of events and of a record that is too large. */
const publishUnread = async (form: 'zstd' | 'gzip' | 'lz4', on = topics): Promise<void> => {
  for (const org of new Set(organizations)) {
    const events = [1, 2, 3].map(number => repRecorded({ org_id: org, id: `rep_unread${number}` }))
    const partition = partitionOf(org, PARTITIONS)
    const [first, last] = await publishUnreadable(on, events, org, form)
    for (let offset = first; offset <= last; offset++) unread.push(parkedId(on.events, partition, offset))
  }
  unread.sort()
}

beforeAll(async () => {
  topics = await createTopics(file, { partitions: PARTITIONS })
  prefix = createPrefix(file)
  organizations = await publishMixed(file, topics, createRandom(seed), 3)
  await publishUnread('zstd')
  await publishMixed(file, topics, createRandom(seed + 1), 3)
  for (const form of ['gzip', 'lz4'] as const) await publishUnread(form)
  const org = newId('org')
  const partition = partitionOf(org, PARTITIONS)
  for (let batch = 0; batch < FLOOD; batch++) {
    const [offset] = await publishUnreadable(topics, [], org)
    unread.push(parkedId(topics.events, partition, offset))
  }
  unread.sort()
  await topics.publish([repRecorded({ org_id: org })])
  // Now, so that it reads all of them within the minute that has few lines.
  projector = await startProjector(file, { topics, prefix })
  await untilCaughtUp(projector)
})

test('each offset of such a batch is parked, and a flood of them gets few lines of the log', async () => {
  expect(await unreadIn('g1')).toEqual(unread)
  const lines = () => projector.lines().filter(({ msg }) => msg === 'a batch cannot be read: it is parked')
  await eventually(() => expect(lines()).toHaveLength(UNDECODABLE_LOGGED))
  expect(lines().at(-1)).toMatchObject({ reason: 'record_too_large', more: 0, unnamed: 0 })
})

test('a rebuild has the same documents, and verify says so', async () => {
  await succeeds(topics, 'rebuild')
  await succeeds(topics, 'verify', 'g1', 'g2')
  expect(await unreadIn('g2')).toEqual(unread)
})

test('archive names them, and replays from Kafka and from the archive have the same documents', async () => {
  archive = await newDirectory(file)
  const archived = await done(['archive', '--to', archive], topics)
  expect(archived.said).toMatch(
    /partition \d of \S+: batch of offsets \d+ to \d+, compression \w+: expected records of/,
  )
  await done(['archive', 'verify', archive], topics)
  await succeeds(topics, 'replay', '--name', 'kafka')
  await succeeds(topics, 'replay', '--name', 'archive', '--from-archive', archive)
  const live = await everything('g1')
  expect(await everything('sandbox-kafka')).toEqual(live)
  expect(await everything('sandbox-archive')).toEqual(live)
})

test('restored topics have the records that stand for them, and the projection goes on with the same documents', async t => {
  await projector.stop()
  const before = await contents(t, topics)
  const projected = await everythingProjected(prefix)
  await topics.admin.deleteTopics({ topics: [topics.events, topics.apiKeys] })
  await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(topics.events))
  const restored = await createTopics(t, { partitions: PARTITIONS, named: topics })
  await done(['restore', '--from', archive], restored)
  expect(await contents(t, restored)).toEqual(before)
  const adopted = await succeeds(restored, 'adopt', '--json', '--archive', archive)
  expect(jsonLines(adopted)).toMatchObject([{ adopted: expect.arrayContaining(['api-keys', 'g1']) }])

  const next = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(next)
  expect(await everythingProjected(prefix)).toEqual(projected)
  await publishUnread('zstd', restored)
  const [org = ''] = organizations
  await restored.publish([repRecorded({ org_id: org, id: 'rep_afterwards' })])
  await untilCaughtUp(next)
  expect(await unreadIn('g1')).toEqual(unread)
  await succeeds(restored, 'rebuild')
  await succeeds(restored, 'verify', 'g1', 'g3')
  expect(await unreadIn('g3')).toEqual(unread)
})
