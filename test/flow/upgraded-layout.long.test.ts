/**
 * An installation whose first generation was made before there was layout 2. It is read, written and compared as it is,
 * until a rebuild makes a generation of the present layout. The tests depend on their order.
 */
import { beforeAll, expect, test } from 'vitest'
import { RULES_VERSION } from '../../core/ledger/index.ts'
import { foldAll } from '../support/agreement.ts'
import { commandSettings, expectFoundEqual, jsonLines, runCommand } from '../support/commands.ts'
import { keyCreated, newKeyText } from '../support/events.ts'
import { startProjectorOf } from '../support/other-rules-processes.ts'
import { type Api, type Projector, startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { createPrefix, indicesOf } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics, type Topics } from '../support/topics.ts'
import { expectServed, expectWalkedAsModelled, startWalkers, untilWarm, type Walkers } from '../support/walkers.ts'

const PARTITIONS = 3
const file = fileScope()
const seed = seedOfRun()
const random = createRandom(seed)
const organizations = organizationsIn(random, [0, 1, 1, 2], PARTITIONS)
const keys = new Map(organizations.map(org => [org, newKeyText()]))
const stream = createStream(random, organizations, PARTITIONS, { reps: 4, periods: 4 })
let topics: Topics
let prefix: string
let projector: Projector
let api: Api
let walkers: Walkers

beforeAll(async () => {
  console.log(`seed ${seed}`)
  topics = await createTopics(file, { partitions: PARTITIONS })
  prefix = createPrefix(file)
  const earlier = await startProjectorOf(file, { topics, prefix }, { version: RULES_VERSION, layout: 1 })
  await topics.publish([...keys].map(([org_id, text]) => keyCreated({ org_id, id: 'key_walks', text })))
  await topics.publish(stream.take(300))
  await untilCaughtUp(earlier)
  await earlier.stop()
  projector = await startProjector(file, { topics, prefix })
  api = await startApi(file, prefix)
  await untilWarm([api], [...keys.values()][0] ?? '')
  walkers = startWalkers({ apis: () => [api], keys, random: createRandom(seed + 1), walkers: 4, every: 5 })
})

const projection = async (...args: string[]) => {
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
  const ran = await runCommand(['projection', ...args, '--json'], settings)
  expect(ran, ran.said).toMatchObject({ code: 0 })
  return jsonLines(ran)
}
const indicesBy = async (generation: string): Promise<string[]> => {
  const start = `${prefix}-${generation}-`
  const names = await indicesOf(prefix)
  return names.filter(name => name.startsWith(start)).map(name => name.slice(start.length))
}

/** Publishes in small portions, so that lists change between two pages, until some more walks have ended. */
const publishDuringWalks = async (): Promise<void> => {
  const from = walkers.soFar().walks.length
  await eventually(async () => {
    await topics.publish(stream.take(10))
    expect(walkers.soFar().walks.length).toBeGreaterThan(from + 3)
  })
}

test('the present projector goes on with its seven indices, and makes no other', async () => {
  await publishDuringWalks()
  await untilCaughtUp(projector)
  const seven = ['chains', 'parked', 'payouts', 'payroll_files', 'periods', 'reps', 'statements']
  expect((await indicesBy('g1')).sort()).toEqual(seven)
})

test('a rebuild has the present layout, and is found equal', async () => {
  await projection('rebuild')
  expect((await indicesBy('g2')).sort()).toEqual(['chains', 'parked', 'payouts', 'periods', 'statements'])
  expectFoundEqual(await projection('verify', 'g1', 'g2'), organizations)
})

test('readers notice nothing of a swap to it, a rollback, the next swap, and the end of the old one', async () => {
  for (const command of [['swap', 'g2'], ['rollback'], ['swap', 'g2', '--force', 'again']]) {
    await projection(...command)
    await publishDuringWalks()
  }
  await untilCaughtUp(projector)
  expectFoundEqual(await projection('verify', 'g1', 'g2'), organizations)
  await projection('drop', 'g1')
  expect(await indicesBy('g1')).toEqual([])
  await publishDuringWalks()
  await untilCaughtUp(projector)
  const walked = await walkers.stop()
  expectWalkedAsModelled(walked, foldAll(topics).model)
  await expectServed(walked, api)
})
