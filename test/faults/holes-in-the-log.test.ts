/**
 * A log that was compacted once and keeps everything since. Records are missing, but neither its configuration nor its
 * first offset shows it. Transactions leave no hole, committed or aborted: see kafka-records.test.ts and
 * aborted-records.test.ts.
 */
import { randomBytes } from 'node:crypto'
import kafkajs from 'kafkajs'
import { beforeAll, expect, test } from 'vitest'
import type { Service } from '../../services/service.ts'
import { type Outgoing, repRecorded } from '../support/events.ts'
import { startOwnServices } from '../support/own-services.ts'
import { expectRefused, projectorSettings, startProcess, startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { createPrefix, readPosition } from '../support/stored.ts'
import { organizationsIn } from '../support/streams.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const file = fileScope()
let kafka: Service
let elasticsearch: Service
beforeAll(async () => {
  // By default the cleaner looks for work every 15 s.
  const services = await startOwnServices(file, { kafka: { settings: { 'log.cleaner.backoff.ms': '100' } } })
  kafka = services.kafka
  elasticsearch = services.elasticsearch
})

const SEGMENT_MS = 200
const [one = '', two = '', three = ''] = organizationsIn(createRandom(1), [0, 0, 0], 1)
/** The name distinguishes the records of an organization: compaction keeps the last one of each. */
let names = 0
const of = (org: string): Outgoing => repRecorded({ org_id: org, name: `Rep ${++names}` })

const setUp = async (t: Scope) => {
  const topics = await createTopics(t, { kafka: kafka.address, partitions: 1 })
  return { topics, prefix: createPrefix(t, elasticsearch.address) }
}

/** Sends each group as one record batch, then a record in the active segment, which the cleaner does not touch. */
const publishCompacted = async (topics: Topics, groups: readonly (readonly string[])[]): Promise<void> => {
  await configure(topics, { 'cleanup.policy': 'compact', 'segment.ms': String(SEGMENT_MS) })
  const wanted: number[] = []
  for (const group of groups) wanted.push(...(await topics.publish(group.map(of))).map(({ offset }) => offset))
  // A segment ends when a record arrives later than `segment.ms`. The cleaner does not touch it before.
  await eventually(
    async () => {
      await topics.publish([of(three)])
      const there = new Set(await offsetsOf(topics))
      expect(wanted.filter(offset => !there.has(offset))).not.toEqual([])
    },
    { every: SEGMENT_MS },
  )
  await configure(topics, {})
}

const configure = ({ admin, events }: Topics, changed: Readonly<Record<string, string>>) => {
  const configuration = {
    'cleanup.policy': 'delete',
    'retention.ms': '-1',
    'retention.bytes': '-1',
    'message.timestamp.type': 'LogAppendTime',
    'min.cleanable.dirty.ratio': '0.001',
    ...changed,
  }
  const configEntries = Object.entries(configuration).map(([name, value]) => ({ name, value }))
  const type = kafkajs.ConfigResourceTypes.TOPIC
  return admin.alterConfigs({ validateOnly: false, resources: [{ type, name: events, configEntries }] })
}

/** Reads the offsets that the log has with a new consumer. */
const offsetsOf = async ({ kafka, admin, events }: Topics): Promise<number[]> => {
  const [{ high = '0' } = {}] = await admin.fetchTopicOffsets(events)
  const consumer = kafka.consumer({ groupId: `reader-${randomBytes(6).toString('hex')}`, maxWaitTimeInMs: 100 })
  const found: number[] = []
  const last = Promise.withResolvers<void>()
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [events], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message }) => {
        found.push(Number(message.offset))
        if (Number(message.offset) === Number(high) - 1) last.resolve()
      },
    })
    await last.promise
    return found
  } finally {
    await consumer.disconnect()
  }
}

test.for([
  ['between batches', [[one], [two], [two], [two], [two]], 1],
  ['inside of a batch', [[one, two, two, two, two]], 1],
  ['at the end of a batch', [[one, two, two], [two]], 1],
  ['at the beginning of the log', [[one], [one]], 0],
] as const)('a hole %s stops the projector before anything is published past it', async ([, groups, offset], t) => {
  const { topics, prefix } = await setUp(t)
  await publishCompacted(topics, groups)
  const projector = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }))
  const said = await expectRefused(projector, 'records_deleted')
  expect(said).toContain('the log continues after a missing offset')
  const where = { topic: topics.events, partition: 0, offset }
  expect(projector.lines()).toContainEqual(expect.objectContaining({ level: 60, ...where }))
  expect((await readPosition(prefix, 'g1', 0)).position).toBeLessThanOrEqual(offset)
})

test('a hole after the last read record stops a projector that continues there', async t => {
  const { topics, prefix } = await setUp(t)
  await topics.publish([of(one), of(one)])
  const first = await startProjector(t, { topics, prefix })
  await untilCaughtUp(first)
  await first.stop()
  // The projector needs the last record that it read to recognize the log. Compaction keeps it: no later one has its
  // key.
  await topics.publish([of(two)])
  const before = await startProjector(t, { topics, prefix })
  await untilCaughtUp(before)
  await before.stop()
  await publishCompacted(topics, [[one], [one]])
  await expectRefused(startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix })), 'records_deleted')
  expect((await readPosition(prefix, 'g1', 0)).position).toBe(3)
})
