/** Restored logs with times that no broker takes today, and replays up to a time beside holes that a restore made. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import kafkajs, { ConfigResourceTypes } from 'kafkajs'
import { expect, inject, test } from 'vitest'
import {
  type AppendedBatch,
  appendInTransactions,
  appendLog,
  encodeHeaders,
  type LogCluster,
  openCluster,
} from '../../core/log/index.ts'
import { compareTopics, done, newDirectory, settingsOf } from '../support/archives.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { newId, type Outgoing, payoutRecorded, periodRecorded, repRecorded } from '../support/events.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics, place, type Topics, toMessage } from '../support/topics.ts'

const FOR_EVER = String(2n ** 63n - 1n)
const ANY_TIMES = {
  'message.timestamp.type': 'CreateTime',
  'message.timestamp.after.max.ms': FOR_EVER,
  'message.timestamp.before.max.ms': FOR_EVER,
}
const HOUR = 3_600_000
const now = Date.now()
const timed = (event: Outgoing, timestamp: number): Outgoing => ({ ...event, timestamp })

/** Three events of an organization before an aborted transaction, two after it, and those of a stranger in between. */
const publishLog = async (t: Scope, topics: Topics): Promise<void> => {
  const [ours, theirs] = [newId('org'), newId('org')]
  const strange = (id: string, timestamp: number): Outgoing => timed(repRecorded({ org_id: theirs, id }), timestamp)
  await topics.publish([
    strange('rep_1', now * 1000),
    strange('rep_2', now * 1_000_000),
    timed(repRecorded({ org_id: ours }), now - 600_000),
    timed(periodRecorded({ org_id: ours }), now - 590_000),
    strange('rep_3', now + 2 * HOUR),
    strange('rep_4', 0),
  ])
  const producer = topics.kafka.producer({ transactionalId: `${topics.events}-a`, maxInFlightRequests: 1 })
  await producer.connect()
  t.onTestFinished(() => producer.disconnect())
  const transaction = await producer.transaction()
  const aborted = timed(repRecorded({ org_id: ours, id: 'rep_aborted' }), now - 585_000)
  await transaction.send({ topic: topics.events, messages: [toMessage(place(aborted, 1))] })
  await transaction.abort()
  // Kafka writes the end of a transaction after it has answered. Without a wait, the next record can come before it.
  await eventually(async () =>
    expect(await topics.admin.fetchTopicOffsets(topics.events)).toMatchObject([{ high: '8' }]),
  )
  await topics.publish([
    timed(payoutRecorded({ org_id: ours, id: 'payout_1' }), now - 580_000),
    timed(payoutRecorded({ org_id: ours, id: 'payout_2', supersedes_id: 'payout_1' }), now - 100_000),
  ])
}

/** The settings that a topic itself has. */
const ownSettings = async ({ admin, events }: Topics): Promise<Record<string, string>> => {
  const asked = { includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: events }] }
  const { resources } = await admin.describeConfigs(asked)
  const own = resources[0]?.configEntries.filter(({ configSource }) => Number(configSource) === 1) ?? []
  return Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]))
}

test('a log with times of any size is restored with them, and a replay up to a time ends where it did before', async t => {
  const topics = await createTopics(t, { partitions: 1, configuration: ANY_TIMES })
  await publishLog(t, topics)
  const archive = await newDirectory(t)
  await done(['archive', '--to', archive], topics)
  const restored = await createTopics(t, {
    partitions: 1,
    configuration: { 'message.timestamp.after.max.ms': '60000' },
  })
  const before = await ownSettings(restored)
  await done(['restore', '--from', archive], restored)
  expect(await ownSettings(restored)).toEqual(before)
  expect(await compareTopics(t, topics, restored)).toEqual({ records: 8, holes: 2 })
  const again = await newDirectory(t)
  await done(['archive', '--to', again], restored)

  const replayed = async (of: Topics, ...args: string[]): Promise<Ran> => {
    const prefix = createPrefix(t)
    const settings = { ...commandSettings(of, prefix), KAFKA_GROUP_ID: prefix }
    return runCommand(['projection', 'replay', '--json', ...args], settings)
  }
  for (const [seconds, bound] of [
    [595, 3],
    [585, 8],
    [300, 9],
  ] as const) {
    const until = ['--until-time', new Date(now - seconds * 1000).toISOString()]
    for (const ran of [
      await replayed(topics, ...until),
      await replayed(restored, ...until),
      await replayed(restored, ...until, '--from-archive', archive),
      await replayed(restored, ...until, '--from-archive', again),
    ]) {
      expect(ran, ran.said).toMatchObject({ code: 0 })
      expect(jsonLines(ran)).toMatchObject([{ bounds: [bound] }])
    }
  }
})

test('a restore that is stopped puts the settings back, and the next run those that a killed one left', async t => {
  const topics = await createTopics(t, { partitions: 1, configuration: ANY_TIMES })
  await publishLog(t, topics)
  // At one record a second, the settings are changed for half a minute: on a busy machine a look can come late.
  const more = Array.from({ length: 20 }, (_, number) => repRecorded({ org_id: newId('org'), id: `rep_more${number}` }))
  await topics.publish(more)
  const archive = await newDirectory(t)
  await done(['archive', '--to', archive], topics)
  const restored = await createTopics(t, { partitions: 1 })
  const before = await ownSettings(restored)
  const isChanged = async (): Promise<void> => expect(await ownSettings(restored)).not.toEqual(before)
  const endedBy = async (signal: 'SIGINT' | 'SIGKILL'): Promise<void> => {
    const child = spawn(process.execPath, ['tools/main.ts', 'restore', '--from', archive, '--max-rate', '1'], {
      cwd: join(import.meta.dirname, '..', '..'),
      env: settingsOf(restored),
      stdio: 'ignore',
    })
    const closed = once(child, 'close')
    await eventually(isChanged, { every: 20 })
    child.kill(signal)
    await closed
  }
  await endedBy('SIGINT')
  expect(await ownSettings(restored)).toEqual(before)
  await endedBy('SIGKILL')
  await isChanged()
  await done(['restore', '--from', archive], restored)
  expect(await ownSettings(restored)).toEqual(before)
  expect(await compareTopics(t, topics, restored)).toEqual({ records: 8 + more.length, holes: 2 })
})

test('an append whose answer was lost has kept its times, and one to a topic with times of Kafka has not', async t => {
  const headers = encodeHeaders([])
  const records = [now - 1000, now - 5000].map((timestamp, offset) => ({
    offset,
    key: null,
    value: null,
    headers,
    timestamp,
  }))
  for (const [kept, configuration] of [
    [true, ANY_TIMES],
    [false, { 'message.timestamp.type': 'LogAppendTime' }],
  ] as const) {
    const { kafka, events } = await createTopics(t, { partitions: 1, configuration })
    const access = { config: { brokers: inject('kafkaBrokers').split(',') }, logger: kafka.logger() }
    const cluster = await openCluster(access, events, new AbortController().signal)
    t.onTestFinished(() => cluster.disconnect())
    let lost = 0
    const losing: LogCluster = {
      ...cluster,
      onLeader: (partition, ask) => {
        let isFirst = true
        return cluster.onLeader(partition, async leader => {
          const answer = await ask(leader)
          if (!isFirst) return answer
          isFirst = false
          lost++
          throw new kafkajs.KafkaJSError('the answer is lost', { retriable: true })
        })
      },
    }
    expect(await appendLog(losing, events).append(0, records)).toEqual({ base: 0, keptTimes: kept })
    const transactions = appendInTransactions(losing, events, `${events}-lost`, () => new Error('taken over'))
    await transactions.takeOver()
    const checked: AppendedBatch[] = []
    await transactions.append(new Map([[0, records]]), batch => checked.push(batch))
    expect(checked).toEqual([{ partition: 0, base: 2, keptTimes: kept }])
    // The number of the producer, and two batches.
    expect(lost).toBe(3)
  }
})
