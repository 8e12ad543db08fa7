/** The producer of kafka-clients sends batches in every compression and of every size: each record is projected. */
import { expect, test } from 'vitest'
import { recordBatchesIn } from '../../core/log/batch/record-batch.ts'
import { openCluster } from '../../core/log/records/open-cluster.ts'
import { dataOf, repRecorded } from '../support/events.ts'
import { untilCaughtUp } from '../support/processes.ts'
import { javaProgram, mavenProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { runCopy } from '../support/run-copy.ts'
import { allStored, indexNamed } from '../support/stored.ts'
import type { Topics } from '../support/topics.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

const MiB = 1024 * 1024
/** The numbers that batches in Kafka have. */
const codecs = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }
/** Bytes of a batch at most, the number of records, and the bytes of their names at most. */
const shapes = [
  { batch: 1, records: 20, name: 50 },
  { batch: 16 * 1024, records: 300, name: 200 },
  { batch: 4 * MiB, records: 2_000, name: 1_000 },
]
const settingsOfLevel = ['compression.gzip.level=9', 'compression.lz4.level=17', 'compression.zstd.level=19']

/** The compressions of all batches in a partition, and the most records of one. */
const batchesIn = async ({ brokers, events, kafka }: Topics, partition: number) => {
  const connected = { config: { brokers: brokers.split(',') }, logger: kafka.logger() }
  const cluster = await openCluster(connected, events, new AbortController().signal)
  const found = { codecs: new Set<number>(), records: 0 }
  try {
    for (let fetchOffset = 0; ; ) {
      const partitions = [{ partition, fetchOffset: String(fetchOffset), maxBytes: 4 * MiB }]
      const limits = { maxWaitTime: 50, minBytes: 1, maxBytes: 4 * MiB }
      const { responses } = await cluster.onLeader(partition, leader =>
        leader.fetch({ replicaId: -1, isolationLevel: 1, ...limits, topics: [{ topic: events, partitions }] }),
      )
      const [message] = responses[0]?.partitions[0]?.messages ?? []
      if (message === undefined) return found
      for (const { codec, count, last } of recordBatchesIn(message.fetched.bytes)) {
        found.codecs.add(codec)
        found.records = Math.max(found.records, count)
        fetchOffset = last + 1
      }
    }
  } finally {
    await cluster.disconnect()
  }
}

const programs: readonly unknown[] = [javaProgram, mavenProgram]

test.skipIf(programs.includes(undefined))('every record of a Java producer is projected, in every codec', async t => {
  const { topics, prefix, projector } = await startProjection(t, [], { partitions: 3 })
  const random = createRandom(seed)
  const lines: string[] = []
  const expected: string[] = []
  const begin = (settings: string): void => void lines.push(`settings\t${settings}`)
  const add = (org_id: string, id: string, name: string): void => {
    const event = repRecorded({ org_id, id, name })
    lines.push(`${event.headers.ce_type}\t${org_id}\t${JSON.stringify(dataOf(event))}`)
    expected.push(`${org_id} ${id} ${name}`)
  }
  for (const codec of Object.keys(codecs)) {
    for (const { batch, records, name } of shapes) {
      const level = settingsOfLevel.filter(setting => setting.includes(`.${codec}.`) && batch > 100_000)
      begin([`compression.type=${codec}`, `batch.size=${batch}`, ...level].join())
      for (let index = 0; index < records; index++) {
        // Half of them compress well: blocks then refer to what is far before them.
        const letters = random.chance(0.5) ? 'ab ' : 'aäeéiöuü😀ßcdfghklmnprstvwxyz 0123456789'
        const text = Array.from({ length: 1 + random.below(name) }, () => random.pick([...letters])).join('')
        add(`org_${codec}x${batch}x${index % 5}`, `rep_${index}`, text)
      }
    }
  }
  const [sent] = await runCopy(
    'codecs/java',
    { KAFKA_BROKERS: topics.brokers, TOPIC: topics.events },
    {},
    lines.join('\n'),
  )
  expect(Number(sent)).toBe(expected.length)
  const batches = await Promise.all([0, 1, 2].map(partition => batchesIn(topics, partition)))
  expect(batches.reduce((all, { codecs }) => all.union(codecs), new Set<number>())).toEqual(
    new Set(Object.values(codecs)),
  )
  expect(Math.max(...batches.map(({ records }) => records))).toBeGreaterThan(200)
  await untilCaughtUp(projector)
  expect((await allStored(indexNamed(prefix, 'parked'))).slice(0, 3)).toEqual([])
  const reps = await allStored(indexNamed(prefix, 'reps'))
  const found = new Set(
    reps.map(({ source: { org_id, body } }) => {
      const { id, name } = body as { readonly id: string; readonly name: string }
      return `${org_id} ${id} ${name}`
    }),
  )
  expect(expected.filter(one => !found.has(one)).slice(0, 3)).toEqual([])
})
