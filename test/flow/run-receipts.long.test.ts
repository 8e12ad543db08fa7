/**
 * Receipts of runs, as a publisher requests them after a run of payouts: two organizations in different partitions, so
 * that the partitions have the same offsets, and a proxy between the projector and Elasticsearch.
 */
import { randomBytes } from 'node:crypto'
import kafkajs from 'kafkajs'
import { beforeAll, expect, inject, test } from 'vitest'
import { commandSettings, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  newId,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { receiptInTime } from '../support/in-time.ts'
import { partitionOf } from '../support/model-record.ts'
import { type Projector, startProjector, untilCaughtUp } from '../support/processes.ts'
import { type FaultProxy, startProxy } from '../support/proxy.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const file = fileScope()
const PARTITIONS = 2
/** An organization in each partition. */
const [first, second] = [0, 1].map(partition => {
  for (;;) {
    const org = newId('org')
    if (partitionOf(org, PARTITIONS) === partition) return org
  }
}) as [string, string]
let topics: Topics
let prefix: string
let proxy: FaultProxy
let projector: Projector

beforeAll(async () => {
  topics = await createTopics(file, { partitions: PARTITIONS })
  prefix = createPrefix(file)
  proxy = await startProxy(file, new URL(inject('elasticsearchUrl')).host)
  projector = await startProjector(file, {
    topics,
    prefix,
    settings: { ELASTICSEARCH_URL: `http://${proxy.address}` },
  })
  for (const org_id of [first, second]) await topics.publish([repRecorded({ org_id }), periodRecorded({ org_id })])
  await untilCaughtUp(projector)
})

const receipt = async (partition: number, query: string, topic = topics.events) => {
  const { status, text } = await projector.ask(`/receipts/${topic}/${partition}?${query}`)
  return { status, body: JSON.parse(text) as Record<string, unknown> }
}
/** As `receipt`, and again while the read is not in time. */
const served = (...asked: Parameters<typeof receipt>) => receiptInTime(() => receipt(...asked))
/** Publishes records of one partition. Returns the offsets of the first and the last one. */
const publish = async (...records: Outgoing[]): Promise<{ from: number; to: number }> => {
  const published = await topics.publish(records)
  return { from: published[0]?.offset ?? -1, to: published.at(-1)?.offset ?? -1 }
}
const untilWaiting = (count: number) =>
  eventually(async () =>
    expect((await projector.ask('/metrics')).text).toMatch(new RegExp(`^commission_receipts_waiting ${count}$`, 'm')),
  )

/** A run of payouts: one record of each outcome, and one more parked. */
const payoutRun = (org_id: string): Outgoing[] => [
  payoutCalculated({ org_id }),
  payoutCalculated({ org_id }),
  payoutCalculated({ org_id, id: 'payout_2' }),
  payoutCalculated({ org_id, id: 'payout_2', supersedes_id: 'payout_1' }),
  payrollRecorded({ org_id, payout_id: 'payout_2' }),
  payrollRecorded({ org_id, rep_id: 'rep_none', id: 'payroll_2' }),
  repRecorded({ org_id, name: 'Ada again' }),
]
const outcomeOf = ({ from, to }: { from: number; to: number }, partition: number) => ({
  status: 200,
  body: {
    topic: topics.events,
    partition,
    from,
    to,
    published: 5,
    applied: 4,
    without_effect: 1,
    parked: 2,
    not_yet: 0,
    parked_records: [
      { offset: from + 2, code: 'supersedes_mismatch' },
      { offset: from + 5, code: 'rep_unknown' },
    ],
    has_more: false,
  },
})

test('the receipt of a run has how many records changed data, how many did not, and the parked ones with their codes', async () => {
  const runs = [await publish(...payoutRun(first)), await publish(...payoutRun(second))]
  expect(runs[0]).toEqual(runs[1])
  for (const [partition, run] of runs.entries()) {
    const query = `from=${run.from}&to=${run.to}`
    expect(await served(partition, `${query}&wait=60`)).toEqual(outcomeOf(run, partition))
    expect(await served(partition, query)).toEqual(outcomeOf(run, partition))
  }
  // A part of a run, and one that goes on after the end of the topic.
  const { from, to } = runs[0] as { from: number; to: number }
  expect((await served(0, `from=${from + 3}&to=${from + 3}`)).body).toMatchObject({ published: 1, applied: 1 })
  expect((await served(0, `from=${from}&to=${to + 3}`)).body).toMatchObject({ published: 5, parked: 2, not_yet: 3 })
})

test('offsets without an event are published without an effect: ends of transactions and aborted records', async () => {
  const producer = topics.kafka.producer({
    idempotent: true,
    maxInFlightRequests: 1,
    transactionalId: `run-${randomBytes(4).toString('hex')}`,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  file.onTestFinished(() => producer.disconnect())
  const send = async (transaction: kafkajs.Transaction, name: string): Promise<number> => {
    const { key, headers, value } = repRecorded({ org_id: first, name })
    const messages = [{ key, value, headers: headers as kafkajs.IHeaders }]
    const [stored] = await transaction.send({ topic: topics.events, acks: -1, messages })
    return Number(stored?.baseOffset)
  }
  const aborted = await producer.transaction()
  const from = await send(aborted, 'never')
  await aborted.abort()
  const committed = await producer.transaction()
  await send(committed, 'once')
  await committed.commit()
  // An aborted record, the end of its transaction, a record, and the end of its transaction.
  const { body } = await served(0, `from=${from}&to=${from + 3}&wait=60`)
  expect(body).toMatchObject({ published: 4, applied: 1, without_effect: 3, parked: 0, not_yet: 0 })
})

test('a waiting request is answered once the last record of the run is published', async () => {
  await proxy.inject({ kind: 'reset' }, line => line.startsWith('POST /_bulk'))
  const { from, to } = await publish(
    ...[1, 2, 3].map(count => repRecorded({ org_id: first, name: `while behind ${count}` })),
  )
  const query = `from=${from}&to=${to}`
  expect((await served(0, `${query}&wait=1`)).body).toMatchObject({ published: 0, applied: 0, not_yet: 3 })
  const asked = served(0, `${query}&wait=60`)
  await untilWaiting(1)
  await proxy.heal()
  expect((await asked).body).toMatchObject({ published: 3, applied: 3, not_yet: 0 })
})

test('while Elasticsearch is away the receipt of a run is a 503', async () => {
  await proxy.inject({ kind: 'away' })
  expect(await receipt(0, 'from=0&to=1')).toEqual({
    status: 503,
    body: { error: 'Elasticsearch is unavailable: the published position is unknown' },
  })
  await proxy.heal()
  await untilCaughtUp(projector)
})

test('a list of parked records goes on after its last offset', async () => {
  const refused = Array.from({ length: 130 }, () => payrollRecorded({ org_id: second, rep_id: 'rep_none' }))
  const { from, to } = await publish(...refused)
  const { body } = await served(1, `from=${from}&to=${to}&wait=60`)
  expect(body).toMatchObject({ published: 0, applied: 0, parked: 130, has_more: true })
  const listed = body.parked_records as { offset: number }[]
  const next = (await served(1, `from=${(listed.at(-1)?.offset ?? 0) + 1}&to=${to}`)).body
  expect(next).toMatchObject({ parked: 30, has_more: false })
  expect([...listed, ...(next.parked_records as { offset: number }[])].map(({ offset }) => offset)).toEqual(
    refused.map((_, index) => from + index),
  )
})

test('a run of API keys has its parked records; changes of keys are not counted', async () => {
  await publish(keyCreated({ org_id: first, secret_sha256: randomBytes(32).toString('hex') }))
  const { body } = await served(0, 'from=0&to=0&wait=60', topics.apiKeys)
  expect(body).toMatchObject({ published: 1, applied: null, without_effect: null, parked: 0, not_yet: 0 })
})

test('after a swap the receipt of a run is that of the new generation', async () => {
  const before = (await served(0, 'from=0&to=8')).body
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
  for (const args of [['rebuild'], ['verify', 'g1', 'g2'], ['swap', 'g2'], ['drop', 'g1']]) {
    const ran = await runCommand(['projection', ...args], settings)
    expect(ran, ran.said).toMatchObject({ code: 0 })
  }
  expect((await served(0, 'from=0&to=8&wait=60')).body).toEqual(before)
  expect(before).toMatchObject({ published: 7, applied: 6, parked: 2 })
})

test('a run that waits while its projector stops is answered at once with 503, and the projector stops in time', async () => {
  const asked = receipt(0, 'from=100000&to=100001&wait=60')
  await untilWaiting(1)
  const stopped = projector.stop()
  // It waits for 60 s. A projector that does not end within 9 s ends with code 1.
  expect(await asked).toEqual({ status: 503, body: { error: 'the projector is stopping' } })
  expect(await stopped).toEqual({ code: 0, signal: null })
})
