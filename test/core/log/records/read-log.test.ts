/** A leader that answers in time, but without records: from a remote storage, or above the quota of the client. */
import { expect, test } from 'vitest'
import { NO_HEADERS } from '../../../../core/log/kafka/encoded-headers.ts'
import { asUnanswered } from '../../../../core/log/kafka-retry.ts'
import { UNANSWERED_READS } from '../../../../core/log/limits.ts'
import type { LogBroker, LogCluster } from '../../../../core/log/records/open-cluster.ts'
import { readLog } from '../../../../core/log/records/read-log.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import { fetchedOf } from '../../../support/record-batches.ts'

const ENTRY = { kind: 'record', offset: 4, timestamp: 7, key: null, value: null, headers: NO_HEADERS } as const
const END = '9'

type Fetched = Awaited<ReturnType<LogBroker['fetch']>>
const EMPTY: Fetched = { responses: [{ partitions: [{ lastStableOffset: END, messages: [] }] }] }
const THROTTLED: Fetched = { responses: [] }
const RECORDS: Fetched = {
  responses: [{ partitions: [{ lastStableOffset: END, messages: [{ offset: '0', fetched: fetchedOf([ENTRY]) }] }] }],
}

/** Answers so one after the other; the last answer stays. */
const logThatAnswers = (answers: readonly Fetched[]) => {
  const waits: number[] = []
  const fetch: LogBroker['fetch'] = async ({ maxWaitTime }) =>
    answers[Math.min(waits.push(maxWaitTime), answers.length) - 1] ?? EMPTY
  const cluster = { onLeader: (_: number, ask: (leader: LogBroker) => unknown) => ask({ fetch } as LogBroker) }
  const log = readLog(cluster as unknown as LogCluster, 'events', undefined, undefined, async () => undefined)
  return { log, waits }
}
const times = (count: number, ...answers: readonly Fetched[]): Fetched[] =>
  Array.from({ length: count }, () => answers).flat()

test('records are read although the leader gives them late: a broker that reads from a remote storage has time to answer', async () => {
  const { log, waits } = logThatAnswers([...times(25, EMPTY), RECORDS])
  expect((await log.read(0, 4)).entries).toMatchObject([{ offset: 4 }])
  expect(Math.min(...waits.slice(1))).toBeGreaterThanOrEqual(500)
})

test('a leader that gives no record and no later one does not answer: nothing says that records were deleted', async () => {
  const { log, waits } = logThatAnswers([EMPTY])
  const error = await log
    .read(0, 4)
    .catch(asUnanswered)
    .catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(Unanswered)
  expect(error).toHaveProperty(
    'message',
    'Kafka does not answer for offset 4 of partition 0 of events: it tells the end 9, and gives no record. Is it tiered storage, or a quota?',
  )
  expect(waits).toHaveLength(UNANSWERED_READS)
})

test('records are read above the quota of the client, and its refusals do not count as empty answers', async () => {
  const { log } = logThatAnswers([...times(UNANSWERED_READS - 1, THROTTLED, EMPTY), RECORDS])
  expect((await log.read(0, 4)).entries).toMatchObject([{ offset: 4 }])
})

test('a leader that leaves the partition out of each answer does not answer', async () => {
  const { log } = logThatAnswers([THROTTLED])
  await expect(log.read(0, 4)).rejects.toThrow('Kafka does not answer for offset 4 of partition 0 of events')
})
