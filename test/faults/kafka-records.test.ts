/**
 * Valid but unusual contents of Kafka: foreign committed offsets, transactions, records published twice.
 * (test/flow/bad-events.test.ts covers compression, null keys and values and the largest records;
 * test/regression/aborted-records.test.ts covers overlapping aborted transactions.)
 */
import type { Producer, Transaction } from 'kafkajs'
import { beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../services/ports.ts'
import { expectProjectedAsModelled, foldAll } from '../support/agreement.ts'
import {
  keyCreated,
  newId,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { type OwnServices, startOwnServices } from '../support/own-services.ts'
import { type Projector, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { expectAliveAndNotReady, readiness } from '../support/sickness.ts'
import { createPrefix, everythingProjected } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics, type Published, place, type Topics, toPublished } from '../support/topics.ts'

const PARTITIONS = 3
const seed = seedOfRun()
console.log(`seed ${seed}`)

const file = fileScope()
let services: OwnServices
beforeAll(async () => {
  // By default Kafka looks for expired transactions every 10 s.
  const settings = { 'transaction.abort.timed.out.transaction.cleanup.interval.ms': '1000' }
  services = await startOwnServices(file, { kafka: { settings } })
})

const prepare = async (t: Scope, salt: number) => {
  const random = createRandom(seed + salt)
  const organizations = organizationsIn(random, [0, 1, 2], PARTITIONS)
  const topics = await createTopics(t, { kafka: services.kafka.address, partitions: PARTITIONS })
  const stream = createStream(random, organizations, PARTITIONS)
  return { organizations, topics, stream, prefix: createPrefix(t, services.elasticsearch.address) }
}

const stopped = async (projector: Projector): Promise<void> =>
  expect(await projector.stop(), projector.log()).toEqual({ code: 0, signal: null })

describe.concurrent('offsets that were committed to Kafka', () => {
  const set = (group: string, topic: string, offsets: (end: string) => string) => async (topics: Topics) => {
    const ends = await topics.admin.fetchTopicOffsets(topic)
    const partitions = ends.map(({ partition, high }) => ({ partition, offset: offsets(high) }))
    await topics.admin.setOffsets({ groupId: group, topic, partitions })
  }

  test('are ignored: deleted, at the end or at the beginning, a projector continues at its own position', async t => {
    const { topics, stream, prefix } = await prepare(t, 1)
    const groups = [
      [`${prefix}-g1`, topics.events],
      [`${prefix}-api-keys`, topics.apiKeys],
    ] as const
    await topics.publish(stream.take(100))
    const first = await startProjector(t, { topics, prefix })
    await untilCaughtUp(first)
    await stopped(first)

    const changes = {
      'at the end': () => Promise.all(groups.map(([group, topic]) => set(group, topic, end => end)(topics))),
      'at the beginning': () => Promise.all(groups.map(([group, topic]) => set(group, topic, () => '0')(topics))),
      deleted: () => topics.admin.deleteGroups(groups.map(([group]) => group)),
    }
    for (const [what, change] of Object.entries(changes)) {
      const added = await topics.publish(stream.take(40))
      await change()
      const next = await startProjector(t, { topics, prefix })
      await untilCaughtUp(next)
      // No record is skipped, and none is decided twice.
      expect([what, await recordsTaken(next)]).toEqual([what, added.length])
      await stopped(next)
    }
    await expectProjectedAsModelled(prefix, topics)
  })
})

/** Returns how many records this process decided. */
const recordsTaken = async (projector: Projector): Promise<number> => {
  const { text } = await projector.ask('/metrics')
  const counts = [...text.matchAll(/^commission_records_total\{[^}]*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

describe.concurrent('transactions', () => {
  const producerOf = async (t: Scope, topics: Topics, options: { transactionTimeout?: number } = {}) => {
    const transactionalId = newId('transaction')
    const producer = topics.kafka.producer({ ...options, transactionalId, idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    t.onTestFinished(() => producer.disconnect().catch(() => undefined))
    return producer
  }

  /** Sends a record in a transaction. Returns it with its offset, for the model. */
  const send = async (transaction: Transaction, topics: Topics, record: Outgoing): Promise<Published> => {
    const placed = place(record, topics.partitions)
    const { key, value, partition } = placed
    const headers = record.headers as Record<string, string>
    const topic = topics.name(record.stream)
    const [answer] = await transaction.send({ topic, messages: [{ key, value, headers, partition }] })
    return toPublished(placed, Number(answer?.baseOffset))
  }

  /** Returns the topics, with the committed records among the published ones. */
  const withCommitted = (topics: Topics, committed: readonly Published[]): Topics => ({
    ...topics,
    published: () => [...topics.published(), ...committed],
  })

  const searchableTo = async (projector: Projector, topics: Topics): Promise<number | undefined> =>
    (await projector.status()).find(({ topic, partition }) => topic === topics.events && partition === 0)?.searchable_to

  test('that are open block later records of their partition, also over a restart, until they end', async t => {
    const { topics, prefix, organizations } = await prepare(t, 2)
    const [org = '', other = ''] = organizations
    await topics.publish([
      repRecorded({ org_id: org }),
      periodRecorded({ org_id: org }),
      repRecorded({ org_id: other }),
    ])
    const committed: Published[] = []
    const transaction = await (await producerOf(t, topics)).transaction()
    const events = [payoutCalculated({ org_id: org }), payrollRecorded({ org_id: org, payout_id: 'payout_1' })]
    for (const event of events) committed.push(await send(transaction, topics, event))
    await topics.publish([payrollVoided({ org_id: org }), repRecorded({ org_id: other, name: 'Eve' })])

    const projector = await startProjector(t, { topics, prefix })
    await untilCaughtUp(projector)
    expect(await searchableTo(projector, topics)).toBe(2)
    expect(await readiness(projector)).toEqual({ ready: true, reasons: {} })
    await stopped(projector)
    const next = await startProjector(t, { topics, prefix })
    await untilCaughtUp(next)
    await topics.publish([repRecorded({ org_id: other, name: 'Ada' })])
    await untilCaughtUp(next)
    expect(await searchableTo(next, topics)).toBe(2)

    await transaction.commit()
    // Two records before it, two in it, one after it, and its commit marker.
    await eventually(async () => expect(await searchableTo(next, topics)).toBe(6))
    await expectProjectedAsModelled(prefix, withCommitted(topics, committed))
  })

  test('of a dead publisher are aborted by Kafka, and later records are projected', async t => {
    const { topics, prefix, organizations } = await prepare(t, 3)
    const [org = ''] = organizations
    const projector = await startProjector(t, { topics, prefix })
    const transaction = await (await producerOf(t, topics, { transactionTimeout: 2_000 })).transaction()
    await send(transaction, topics, repRecorded({ org_id: org, name: 'never' }))
    await topics.publish([repRecorded({ org_id: org }), periodRecorded({ org_id: org })])
    await eventually(async () => expect(await searchableTo(projector, topics)).toBe(4))
    await expectProjectedAsModelled(prefix, topics)
  })

  test('that overlap apply their committed records in the order of the log, and no aborted one', async t => {
    const { topics, prefix, organizations } = await prepare(t, 4)
    const projector = await startProjector(t, { topics, prefix })
    const producers: Producer[] = [
      await producerOf(t, topics),
      await producerOf(t, topics),
      await producerOf(t, topics),
    ]
    const committed: Published[] = []
    for (const [round, ends] of [
      ['commit', 'abort', 'commit'],
      ['abort', 'commit', 'abort'],
      ['commit', 'commit', 'abort'],
      ['abort', 'abort', 'commit'],
    ].entries()) {
      const open = await Promise.all(producers.map(producer => producer.transaction()))
      const sent: Published[][] = open.map(() => [])
      for (let turn = 0; turn < 6; turn++) {
        for (const [at, transaction] of open.entries()) {
          // The names show which record came last.
          const event = repRecorded({
            org_id: organizations[turn % 3] ?? '',
            name: `${round} ${turn} ${at} ${ends[at]}`,
          })
          sent[at]?.push(await send(transaction, topics, event))
        }
        await topics.publish([periodRecorded({ org_id: organizations[turn % 3] ?? '', name: `${round} ${turn}` })])
      }
      // Ends them neither in the order of their start nor in reverse.
      for (const at of [1, 2, 0]) {
        if (ends[at] === 'commit') committed.push(...(sent[at] ?? []))
        await (ends[at] === 'commit' ? open[at]?.commit() : open[at]?.abort())
      }
    }
    await untilCaughtUp(projector)
    await expectProjectedAsModelled(prefix, withCommitted(topics, committed))
  })
})

describe.concurrent('a stream that is published twice', () => {
  /** Records without replacements of the same id and without refused ones. */
  const plain = (org: string): Outgoing[] => [
    repRecorded({ org_id: org }),
    periodRecorded({ org_id: org }),
    ...Array.from({ length: 20 }, (_, at) =>
      payoutCalculated({ org_id: org, id: `payout_${at + 1}`, supersedes_id: at === 0 ? null : `payout_${at}` }),
    ),
    payrollRecorded({ org_id: org }),
    payrollVoided({ org_id: org }),
    payrollRecorded({ org_id: org, id: 'payroll_3' }),
    keyCreated({ org_id: org }),
  ]

  test('has only duplicates the second time, which change no byte', async t => {
    const { topics, prefix, organizations } = await prepare(t, 5)
    const projector = await startProjector(t, { topics, prefix })
    const all = organizations.flatMap(plain)
    await topics.publish(all)
    await untilCaughtUp(projector)
    const before = await everythingProjected(prefix)

    const again = new Set(await topics.publish(all))
    await untilCaughtUp(projector)
    const { outcomes } = foldAll(topics)
    const said = [...outcomes].filter(([record]) => again.has(record)).map(([, { outcome }]) => outcome)
    expect(said).toEqual(all.map(() => 'duplicate'))
    expect(await everythingProjected(prefix)).toEqual(before)
    await expectProjectedAsModelled(prefix, topics)
  })

  test('agrees with the model, also with changed reps and periods and parked records', async t => {
    const { topics, prefix, stream } = await prepare(t, 6)
    const projector = await startProjector(t, { topics, prefix })
    const all = stream.take(400)
    await topics.publish(all)
    await topics.publish(all)
    await untilCaughtUp(projector)
    await expectProjectedAsModelled(prefix, topics)
  })
})

describe.concurrent('a service that starts two minutes after the projector', () => {
  const SECONDS = 120

  test.for([
    ['kafka', 'KAFKA_BROKERS', ''],
    ['elasticsearch', 'ELASTICSEARCH_URL', 'http://'],
  ] as const)(
    'is waited for, and records published meanwhile are projected: %s',
    async ([which, setting, scheme], t) => {
      const { topics, prefix, stream } = await prepare(t, 7)
      const port = await freePort()
      const settings = { [setting]: `${scheme}127.0.0.1:${port}` }
      const projector = await startProjector(t, { topics, prefix, settings })
      await topics.publish(stream.take(200))
      await expectAliveAndNotReady(projector, SECONDS)
      expect(Object.keys((await readiness(projector)).reasons)).toContain(which)

      await startProxy(t, services[which].address.replace('http://', ''), { port })
      await eventually(async () => expect((await readiness(projector)).ready).toBe(true))
      await untilCaughtUp(projector)
      await expectProjectedAsModelled(prefix, topics)
    },
  )
})
