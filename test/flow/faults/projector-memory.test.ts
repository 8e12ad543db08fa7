/** A projector with 256 MB of heap, with the largest possible records and highly compressed batches. */
import { readFile } from 'node:fs/promises'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { RECORD_VALUE_BYTES_MAX } from '../../../schemas/limits.ts'
import { type Outgoing, payoutCalculated, periodRecorded, repRecorded, step, withData } from '../../support/events.ts'
import { type Projector, startProjector, untilCaughtUp } from '../../support/processes.ts'
import { createRandom } from '../../support/random.ts'
import { eventually, type Scope } from '../../support/scope.ts'
import { allStored, call, createPrefix, indexNamed } from '../../support/stored.ts'
import { organizationsIn } from '../../support/streams.ts'
import { createTopics } from '../../support/topics.ts'

const PARTITIONS = 6
const LARGE_PER_PARTITION = 7

const settings = { NODE_OPTIONS: '--max-old-space-size=256' }

/** Fills a record to the maximum size with an unknown field. */
const filled = (record: Outgoing, text = 'x'): Outgoing => {
  const empty = withData(record, { extra: '' })
  return withData(record, { extra: text.repeat(RECORD_VALUE_BYTES_MAX - Buffer.byteLength(empty.value ?? '')) })
}

/** Returns a payout with the longest trace that fits into a record. */
const calculated = (org_id: string, id: number): Outgoing => {
  const one = step({ inputs: { base: '1000.00' } })
  const steps = Math.floor((RECORD_VALUE_BYTES_MAX - 10_000) / (JSON.stringify(one).length + 6))
  const calculation_trace = Array.from({ length: steps }, (_, place) => ({ ...one, step: place + 1 }))
  const supersedes_id = id === 0 ? null : `payout_${id - 1}`
  return payoutCalculated({ org_id, id: `payout_${id}`, supersedes_id, calculation_trace })
}

/** Returns the peak memory of the process in MiB; 0 if the machine does not tell. */
const peakMiB = async ({ pid }: Projector): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
}

const expectCaughtUpWithin = async (projector: Projector, mebibytes: number, what: string): Promise<void> => {
  await Promise.race([
    untilCaughtUp(projector),
    projector.exited.then(exit => {
      throw new Error(`it ended: ${JSON.stringify(exit)} ${projector.log().slice(-2_000)}`)
    }),
  ])
  const peak = await peakMiB(projector)
  if (process.platform === 'linux') expect(peak).toBeGreaterThan(0)
  console.log(`${what}: at most ${peak} MiB`)
  expect(peak).toBeLessThan(mebibytes)
}

/** Returns the sizes of the bodies of an index without reading them. */
const lengthsOf = async (index: string): Promise<number[]> => {
  await call('POST', `/${index}/_refresh`)
  const { text } = await call('POST', `/${index}/_search`, { size: 1_000, _source: ['body_bytes'] })
  return JSON.parse(text).hits.hits.map(({ _source }: { _source: { body_bytes: number } }) => _source.body_bytes)
}

const prepare = async (t: Scope) => {
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const organizations = organizationsIn(createRandom(1), [0, 1, 2, 3, 4, 5], PARTITIONS)
  for (const org_id of organizations) await topics.publish([repRecorded({ org_id }), periodRecorded({ org_id })])
  return { topics, organizations, prefix: createPrefix(t) }
}

test('a projector with 256 MB of heap projects the largest possible statements of all partitions at the same time', async t => {
  const { topics, organizations, prefix } = await prepare(t)
  for (let id = 0; id < LARGE_PER_PARTITION; id++) {
    for (const org_id of organizations) await topics.publish([calculated(org_id, id)])
  }
  const projector = await startProjector(t, { topics, prefix, settings })
  await expectCaughtUpWithin(projector, 1_200, 'statements of 8 MiB')
  expect(await allStored(indexNamed(prefix, 'payouts'))).toHaveLength(PARTITIONS * LARGE_PER_PARTITION)
  const statements = await lengthsOf(indexNamed(prefix, 'statements'))
  expect(statements).toHaveLength(PARTITIONS * LARGE_PER_PARTITION)
  for (const bytes of statements) expect(bytes).toBeGreaterThan(0.9 * RECORD_VALUE_BYTES_MAX)
  expect(await projector.stop(), projector.log()).toEqual({ code: 0, signal: null })
})

test('a projector with 256 MB of heap projects batches of a few bytes that decompress to hundreds of megabytes', async t => {
  const { topics, organizations, prefix } = await prepare(t)
  const producer = topics.kafka.producer()
  await producer.connect()
  t.onTestFinished(() => producer.disconnect())
  for (const [partition, org_id] of organizations.slice(0, 3).entries()) {
    const records = Array.from({ length: 20 }, (_, place) => filled(repRecorded({ org_id, id: `rep_${place}` })))
    // The last two values are one byte too long.
    const values = records.map(({ value }, place) => (place < 18 ? value : `${value} `))
    const messages = records.map(({ key, headers }, place) => ({
      key,
      headers: headers as Record<string, string>,
      value: values[place] ?? null,
      partition,
    }))
    await producer.send({ topic: topics.events, messages, compression: kafkajs.CompressionTypes.GZIP })
  }
  const projector = await startProjector(t, { topics, prefix, settings })
  await expectCaughtUpWithin(projector, 1_500, 'compressed batches of 160 MiB')
  await eventually(async () => expect(await allStored(indexNamed(prefix, 'parked'))).toHaveLength(6))
  const reps = (await allStored(indexNamed(prefix, 'reps'))).filter(({ source }) => 'seq' in source)
  // One of each twenty existed before, and the unknown field changes nothing.
  expect(reps).toHaveLength(PARTITIONS + 3 * 17)
  expect(await projector.stop(), projector.log()).toEqual({ code: 0, signal: null })
})
