/** Archives and restores that are killed, and archives that follow, on a real Kafka. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readArchivedLog, readManifests } from '../../tools/archive/read-archive.ts'
import { directoryTarget } from '../../tools/archive/target.ts'
import {
  compareTopics,
  contentOf,
  done,
  logOf,
  newDirectory,
  PARTITIONS,
  publishMixed,
  settingsOf,
} from '../support/archives.ts'
import { startOwnServer } from '../support/own-services.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually } from '../support/scope.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

const start = (args: readonly string[], topics: Topics, said: (text: string) => void = () => undefined) => {
  const child = spawn(process.execPath, ['tools/main.ts', ...args], {
    cwd: join(import.meta.dirname, '..', '..'),
    env: settingsOf(topics),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  child.stderr.on('data', said)
  return child
}

/** Starts a command, and kills it once it has done as many steps as given, or when it ends. */
const killedAt = async (
  steps: number,
  args: readonly string[],
  topics: Topics,
  countSteps: () => Promise<number>,
): Promise<void> => {
  const child = start(args, topics)
  const closed = once(child, 'close')
  await eventually(async () => expect(child.exitCode !== null || (await countSteps()) >= steps).toBe(true), {
    every: 5,
  })
  child.kill('SIGKILL')
  await closed
}

/** New records go into an archive within a minute. A busy machine may need longer. */
const FLUSHED = { within: 200_000, every: 1_000 }

// At the same time, because the archives that follow mostly wait; the longest first.
test.concurrent('an archive that follows says what is new, and up to where it has everything if the broker is lost', async t => {
  const kafka = await startOwnServer(t, 'kafka')
  const topics = await createTopics(t, { kafka: kafka.address, partitions: PARTITIONS })
  const stream = createStream(
    createRandom(seed + 2),
    organizationsIn(createRandom(seed + 2), [0, 1, 2], PARTITIONS),
    PARTITIONS,
  )
  const directories = [await newDirectory(t), await newDirectory(t)]
  await topics.publish(stream.take(20))
  let said = ''
  const to = directories.flatMap(directory => ['--to', directory])
  const child = start(['archive', ...to, '--follow'], topics, text => {
    said += text
  })
  t.onTestFinished(async () => void child.kill('SIGKILL'))
  const expectSaid = async (): Promise<void> => {
    const ends = await Promise.all([topics.events, topics.apiKeys].map(name => topics.admin.fetchTopicOffsets(name)))
    const records = ends.flat().reduce((sum, { high }) => sum + Number(high), 0)
    for (const directory of directories) {
      const lines = said.matchAll(new RegExp(`${directory}: archived up to 20\\S+Z, (\\d+) records more`, 'g'))
      expect([...lines].reduce((sum, [, more]) => sum + Number(more), 0)).toBe(records)
    }
  }
  await eventually(expectSaid, FLUSHED)
  await topics.publish(stream.take(5))
  await eventually(expectSaid, FLUSHED)
  await kafka.kill()
  await once(child, 'close')
  expect(child.exitCode).toBe(1)
  const ends = directories.map(directory => `the archive in ${directory} ends at 20\\d\\d-\\S+Z`).join('; ')
  expect(said).toMatch(new RegExp(`Kafka does not answer \\(KafkaJS\\w+\\); ${ends}; the same command continues`))
})

test.concurrent('an archive that follows has new records within a minute, and the same command continues', async t => {
  const random = createRandom(seed + 1)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const directory = await newDirectory(t)
  const stream = createStream(random, organizationsIn(random, [0, 1, 2], PARTITIONS), PARTITIONS)
  const child = start(['archive', '--to', directory, '--follow'], topics)
  t.onTestFinished(async () => void child.kill('SIGKILL'))
  await eventually(async () => expect(await readdir(directory)).toContain('api-keys'))
  await topics.publish(stream.take(80))
  const target = directoryTarget(directory)
  const expectAll = async (): Promise<void> => {
    const manifests = await readManifests(target)
    for (const { partition } of manifests.events.partitions) {
      const { entries } = await readArchivedLog(target, manifests.events).read(partition, 0)
      expect(entries.map(contentOf)).toEqual((await logOf(t, topics, topics.events, partition)).map(contentOf))
    }
  }
  await eventually(expectAll, FLUSHED)
  child.kill('SIGTERM')
  await once(child, 'close')
  expect(child.exitCode).toBe(0)
  await topics.publish(stream.take(20))
  await done(['archive', '--to', directory], topics)
  await done(['archive', 'verify', directory], topics)
})

test.concurrent('archives and restores that are killed at any moment go on, and nothing is missing or twice', async t => {
  const random = createRandom(seed)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  await publishMixed(t, topics, random, 12)
  const directory = await newDirectory(t)
  const filesIn = async () => (await readdir(directory, { recursive: true }).catch(() => [])).length
  for (let time = 0; time < 4; time++) {
    await killedAt(3 + Math.floor(random.next() * 10), ['archive', '--to', directory], topics, filesIn)
    if ((await filesIn()) > 6) await done(['archive', 'verify', directory], topics)
  }
  await done(['archive', '--to', directory], topics)
  await done(['archive', 'verify', directory], topics)

  const restored = await createTopics(t, { partitions: PARTITIONS })
  const offsetsOf = async ({ admin, events }: Topics): Promise<number> =>
    (await admin.fetchTopicOffsets(events)).reduce((sum, { high }) => sum + Number(high), 0)
  const all = await offsetsOf(topics)
  for (const part of [0.01, 0.3, 0.6, 0.9]) {
    await killedAt(all * part, ['restore', '--from', directory], restored, () => offsetsOf(restored))
  }
  await done(['restore', '--from', directory], restored)
  await compareTopics(t, topics, restored)
})
