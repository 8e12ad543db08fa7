/**
 * Archives and restored topics on a real Kafka: every record at its offset with its time, key, headers and value, also
 * where transactions were committed and aborted in between. After kills: `archive-killed.long.test.ts`.
 */
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
import { jsonLines, runCommand } from '../support/commands.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics } from '../support/topics.ts'

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
  expect(refused.said).toMatch(/has a record at offset \d+: the archive ends there/)
  const again = await runCommand(['archive', '--to', one], settingsOf(restored))
  expect(again.said).toContain('has the archive of another log of events: topic: expected')
})

test('an archive goes past records so large that an answer of Kafka has only one of them', async t => {
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const directory = await newDirectory(t)
  const producer = topics.kafka.producer()
  await producer.connect()
  t.onTestFinished(() => producer.disconnect())
  const records = 4
  for (let number = 0; number < records; number++) {
    const value = Buffer.alloc(3 * 1024 * 1024, number)
    await producer.send({ topic: topics.events, messages: [{ partition: 0, key: 'org_1', value }] })
  }
  const ran = await done(['archive', '--to', directory, '--json'], topics)
  expect(jsonLines(ran)).toMatchObject([{ records, offsets: records }])
  await done(['archive', 'verify', directory], topics)
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
