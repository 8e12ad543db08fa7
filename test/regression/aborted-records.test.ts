/**
 * Symptom: records of aborted transactions were applied as if committed, if two transactions overlapped in one
 * partition. Which records depended on where a fetch began, so a rebuild could differ.
 * Cause: the filter of kafkajs for aborted records, see core/log/batch/record-batch.ts.
 */
import type { Producer, Transaction } from 'kafkajs'
import { beforeAll, expect, test } from 'vitest'
import { repRecorded, withData } from '../support/events.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom } from '../support/random.ts'
import { fileScope } from '../support/scope.ts'
import { allStored, createPrefix, indexNamed } from '../support/stored.ts'
import { organizationsIn } from '../support/streams.ts'
import { createTopics, LONG_TRANSACTION, type Topics } from '../support/topics.ts'

const file = fileScope()
/** One per case, each in its own partition. */
const organizations = organizationsIn(createRandom(1), [0, 1, 2, 3], 4)
let topics: Topics
let prefix: string

beforeAll(async () => {
  topics = await createTopics(file, { partitions: organizations.length })
  prefix = createPrefix(file)
  const [first, second] = await Promise.all([transactional('first'), transactional('second')])
  const [inOrder = '', turned = '', large = '', zero = ''] = organizations
  await overlap(first, second, inOrder, 'as they began')
  await overlap(first, second, turned, 'the other way round')
  // One record nearly fills a fetch, so fetches begin inside the transactions.
  await overlap(first, second, large, 'as they began', 'x'.repeat(700_000))

  const aborted = await first.transaction()
  await send(aborted, zero, 'rep_aborted1', { key: Buffer.alloc(4) })
  await send(aborted, zero, 'rep_aborted2')
  await aborted.abort()
  await topics.publish([{ ...repRecorded({ org_id: zero, id: 'rep_parked' }), key: Buffer.alloc(4), partition: 3 }])
  await topics.publish([repRecorded({ org_id: zero, id: 'rep_committed' })])

  await untilCaughtUp(await startProjector(file, { topics, prefix }))
})

const transactional = async (name: string): Promise<Producer> => {
  const producer = topics.kafka.producer({
    ...LONG_TRANSACTION,
    idempotent: true,
    maxInFlightRequests: 1,
    transactionalId: `${prefix}-${name}`,
  })
  await producer.connect()
  file.onTestFinished(() => producer.disconnect())
  return producer
}

/** Two transactions with interleaved records, aborted in the given order, then one committed record. */
const overlap = async (
  first: Producer,
  second: Producer,
  org: string,
  ends: 'as they began' | 'the other way round',
  padding = '',
): Promise<void> => {
  const one = await first.transaction()
  await send(one, org, 'rep_aborted1', { padding })
  const other = await second.transaction()
  for (const [place, turn] of [other, one, other, one, other].entries()) {
    await send(turn, org, `rep_aborted${place + 2}`, { padding })
  }
  for (const transaction of ends === 'as they began' ? [one, other] : [other, one]) await transaction.abort()
  const committed = await first.transaction()
  await send(committed, org, 'rep_committed', { padding })
  await committed.commit()
}

const send = async (
  transaction: Transaction,
  org: string,
  id: string,
  { key = org, padding = '' }: { key?: string | Buffer; padding?: string } = {},
): Promise<void> => {
  const { value, headers } = withData(repRecorded({ org_id: org, id }), { padding })
  const partition = organizations.indexOf(org)
  const message = { key, value, headers: headers as Record<string, string>, partition }
  await transaction.send({ topic: topics.events, messages: [message] })
}

test.for([
  ['that overlap and end in order', 0],
  ['that overlap and end in reverse order', 1],
  ['with a fetch that begins inside them', 2],
  ['with a key of four zero bytes, as in the marker of an abort,', 3],
] as const)('of transactions %s no aborted record is projected, and every committed one is', async ([, partition]) => {
  const org = organizations[partition] ?? ''
  const documents = await allStored(indexNamed(prefix, 'reps'))
  const heads = documents.map(({ id }) => id).filter(id => id.startsWith(org) && id.split(':').length === 2)
  expect(heads).toEqual([`${org}:rep_committed`])
})

test('only the committed record with a wrong key is parked', async () => {
  const parked = await allStored(indexNamed(prefix, 'parked'))
  expect(parked.map(({ source }) => [source.code, source.partition])).toEqual([['org_mismatch', 3]])
})
