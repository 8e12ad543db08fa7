/**
 * Archives and restored topics on a real Kafka: every record at its offset with its time, key, headers and value, also
 * where transactions were committed and aborted in between. After kills: `archive-killed.long.test.ts`.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import {
  compareTopics,
  done,
  newDirectory,
  PARTITIONS,
  publishMixed,
  settingsOf,
  timestampTypeOf,
} from '../support/archives.ts'
import { withText } from '../support/bad-event.ts'
import { jsonLines, runCommand } from '../support/commands.ts'
import { periodRecorded } from '../support/events.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually } from '../support/scope.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const MiB = 1024 * 1024
const newName = (): string => `test.${randomBytes(6).toString('hex')}`
const seed = seedOfRun()
console.log(`seed ${seed}`)

test('restored topics have every record at its offset with its time, between transactions that were aborted and committed', async t => {
  const random = createRandom(seed)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const [one, two] = [await newDirectory(t), await newDirectory(t)]
  await publishMixed(t, topics, random, 6)
  await done(['archive', '--to', one, '--to', two], topics)
  await done(['archive', 'verify', two], topics)
  // The same command continues.
  await publishMixed(t, topics, random, 2)
  await done(['archive', '--to', one], topics)
  const [{ records }] = jsonLines(await done(['archive', 'verify', one, '--json'], topics)) as [{ records: number }]

  const restored = await createTopics(t, { partitions: PARTITIONS, configuration: { 'segment.bytes': '1048576' } })
  const ran = await done(['restore', '--from', one, '--json'], restored)
  const compared = await compareTopics(t, topics, restored)
  expect(compared.records).toBe(records)
  expect(compared.holes).toBeGreaterThan(20)
  expect(jsonLines(ran)).toMatchObject([{ records, offsets: compared.records + compared.holes }])
  // The settings of the topic are those that it had.
  expect(await timestampTypeOf(restored.admin, restored.events)).toBe('LogAppendTime')
  await restored.publish(createStream(random, organizationsIn(random, [0], PARTITIONS), PARTITIONS).take(5))

  const refused = await runCommand(['restore', '--from', one], settingsOf(restored))
  expect(refused.code).toBe(1)
  expect(refused.said).toMatch(/has a record at offset \d+: the archive ends there. Do not delete the topic/)
  const again = await runCommand(['archive', '--to', one], settingsOf(restored))
  expect(again.said).toContain('has the archive of another log of events: topic: expected')
})

test('a topic that is not empty, or has another number of partitions, is refused by name, and nothing is appended', async t => {
  const random = createRandom(seed + 1)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const directory = await newDirectory(t)
  const stream = createStream(random, organizationsIn(random, [0, 1, 2], PARTITIONS), PARTITIONS)
  await topics.publish(stream.take(50))
  await done(['archive', '--to', directory], topics)

  const used = await createTopics(t, { partitions: PARTITIONS })
  await used.publish(stream.take(50))
  const before = await used.admin.fetchTopicOffsets(used.events)
  const refused = await runCommand(['restore', '--from', directory], settingsOf(used))
  expect(refused.said).toMatch(/partition \d of test\.\w+\.(events|api-keys) differs from the archive at offset 0/)
  expect(refused.code).toBe(1)
  expect(await used.admin.fetchTopicOffsets(used.events)).toEqual(before)
  expect(await timestampTypeOf(used.admin, used.events)).toBe('LogAppendTime')

  const narrow = await createTopics(t, { partitions: 2 })
  const other = await runCommand(['restore', '--from', directory], settingsOf(narrow))
  expect(other.said).toContain(`${narrow.events}: expected 3 partitions, as in the archive, got 2`)
})

test('a topic that was deleted and made anew is refused, also if it has no more records than the archive', async t => {
  const named = { events: newName(), apiKeys: newName() }
  const topics = await createTopics(t, { partitions: PARTITIONS, named })
  const directory = await newDirectory(t)
  const stream = createStream(
    createRandom(seed + 3),
    organizationsIn(createRandom(seed), [0, 1, 2], PARTITIONS),
    PARTITIONS,
  )
  await topics.publish(stream.take(50))
  await done(['archive', '--to', directory], topics)
  await topics.admin.deleteTopics({ topics: Object.values(named) })
  await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(named.events))
  const anew = await createTopics(t, { partitions: PARTITIONS, named })
  for (const count of [1, 20, 200]) {
    await anew.publish(stream.take(count))
    const { code, said } = await runCommand(['archive', '--to', directory], settingsOf(anew))
    expect(said).toMatch(/topic_id: expected \S+, got \S+\. The topic was made anew/)
    expect(code).toBe(1)
  }
})

test('records that are larger than a fetch are archived and restored, and all records after them', async t => {
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const [large, small] = [randomBytes(5 * MiB), periodRecorded({ org_id: 'org_1' })]
  const records = [large, large, null, large, null].map(value => withText({ ...small, partition: 0 }, value))
  for (const record of records) await topics.publish([record])
  for (const limit of [[], ['--max-rate', '1000000']]) {
    const directory = await newDirectory(t)
    const ran = await done(['archive', '--to', directory, '--json', ...limit], topics)
    expect(jsonLines(ran)).toMatchObject([{ records: records.length }])
    const restored = await createTopics(t, { partitions: PARTITIONS })
    await done(['restore', '--from', directory, ...limit], restored)
    expect(await compareTopics(t, topics, restored)).toEqual({ records: records.length, holes: 0 })
  }
})

test('a limit of the rate holds, and a run that is stopped while it waits ends at once and is continued', async t => {
  const random = createRandom(seed + 2)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const directory = await newDirectory(t)
  const stream = createStream(random, organizationsIn(random, [0, 1, 2], PARTITIONS), PARTITIONS)
  await topics.publish(stream.take(300))
  // 300 records take 3 s at this rate.
  const lasts = async (into: Topics, ...args: string[]): Promise<number> => {
    const began = performance.now()
    await done([...args, '--max-rate', '100'], into)
    return performance.now() - began
  }
  expect(await lasts(topics, 'archive', '--to', directory)).toBeGreaterThan(2_500)
  expect(await lasts(topics, 'archive', 'verify', directory)).toBeGreaterThan(2_500)

  const restored = await createTopics(t, { partitions: PARTITIONS })
  const args = ['tools/main.ts', 'restore', '--from', directory, '--max-rate', '1']
  const child = spawn(process.execPath, args, { env: settingsOf(restored), stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => (said += text))
  await eventually(() => expect(said).toContain('verifying'))
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  expect([code, said]).toEqual([1, expect.stringContaining('the same command continues')])
  // It verifies, appends and compares: each at this rate.
  expect(await lasts(restored, 'restore', '--from', directory)).toBeGreaterThan(8_000)
  await compareTopics(t, topics, restored)
})
