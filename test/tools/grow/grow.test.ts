/** The runs of `grow` that change nothing: refusals, and the search for late records after one swap or several. */
import kafkajs, { type Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import type { LogEntry } from '../../../core/log/records/read-log.ts'
import { generationId, LIVE_ID } from '../../../schemas/stored/documents.ts'
import { type GrowSteps, grow } from '../../../tools/grow/grow.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'
import { fetchedOf } from '../../support/record-batches.ts'
import { entriesFrom } from '../archive/any-entries.ts'

const record: Omit<LogEntry, 'offset'> = {
  ...{ kind: 'record', timestamp: 1, key: null, value: null },
  headers: encodeHeaders([['ce_source', Buffer.from('/payroll')]]),
}
const records = (count: number, from = 0) =>
  entriesFrom(
    from,
    Array.from({ length: count }, () => record),
  )

/** Its partitions. One that has deleted records begins after offset 0. `ends`: as told, if others than can be read. */
type Topic = {
  readonly id?: string
  readonly cluster?: string
  readonly partitions: readonly LogEntry[][]
  readonly ends?: readonly number[]
}

const missing = new kafkajs.KafkaJSProtocolError({
  ...new Error('missing'),
  ...{ type: 'UNKNOWN_TOPIC_OR_PARTITION', code: 3, retriable: true },
})

const identity = (generation: string, topic: string, fields: object = {}) => {
  return { generation, topic, cluster_id: 'c', partitions: 1, rules_version: 5, ...fields }
}

/** Runs `grow --to new` beside these topics. */
const given = (topics: Readonly<Record<string, Topic>>, live: object, generations: readonly object[]) => {
  const engine = new MemoryElasticsearch()
  engine.put('p-control', LIVE_ID, 1, { kind: 'live', body: live })
  for (const body of generations)
    engine.put('p-control', generationId((body as { generation: string }).generation), 1, { kind: 'generation', body })
  const out: string[] = []
  const said: string[] = []
  const asked: string[] = []
  const topicOf = (name: string): Topic => {
    const topic = topics[name]
    if (topic === undefined) throw missing
    return topic
  }
  let described = ''
  const lowOf = (log: readonly LogEntry[]) => log[0]?.offset ?? 0
  const endOf = (log: readonly LogEntry[]) => lowOf(log) + log.length
  const admin = {
    ...{ connect: async () => undefined, disconnect: async () => undefined },
    describeCluster: async () => ({ clusterId: topics[described]?.cluster ?? 'c' }),
    fetchTopicMetadata: async ({ topics: [name = ''] }: { topics: string[] }) => {
      asked.push(name)
      const { id, partitions } = topicOf(name)
      return { topics: [{ partitions: partitions.map(() => ({ ...(id !== undefined && { topicId: id }) })) }] }
    },
    fetchTopicOffsets: async (name: string) =>
      topicOf(name)
        .partitions.map((log, partition) => {
          const end = topicOf(name).ends?.[partition] ?? endOf(log)
          return { partition, low: `${lowOf(log)}`, high: `${end}` }
        })
        .toReversed(),
  }
  type Fetch = { topics: [{ topic: string; partitions: [{ partition: number; fetchOffset: string }] }] }
  const openCluster = async (name: string) => {
    const broker = {
      fetch: async ({
        topics: [
          {
            partitions: [{ partition, fetchOffset }],
          },
        ],
      }: Fetch) => {
        const log = topicOf(name).partitions[partition] ?? []
        const found = log.filter(({ offset }) => offset >= Number(fetchOffset))
        const messages = found.length === 0 ? [] : [{ offset: '0', fetched: fetchedOf(found) }]
        return { responses: [{ partitions: [{ lastStableOffset: String(endOf(log)), messages }] }] }
      },
    }
    return {
      onLeader: async (_: number, ask: (one: typeof broker) => unknown) => ask(broker),
      logEnds: async () => new Map(topicOf(name).partitions.map((log, partition) => [partition, endOf(log)])),
      disconnect: async () => undefined,
    } as unknown as LogCluster
  }
  const context = {
    ...{ send: engine.send, prefix: 'p', rulesVersion: 5, kafka: { admin: () => admin } as unknown as Kafka },
    topics: { events: 'old', 'api-keys': 'keys' },
    out: (text: string | Buffer) => void out.push(String(text)),
    say: (line: string) => void said.push(line),
    ...{ openCluster, sleep: async () => undefined, now: () => 0, elapsed: () => 0 },
    signal: new AbortController().signal,
  } as unknown as GrowSteps
  const options = { to: 'new', partitions: undefined, maxRate: Number.POSITIVE_INFINITY, json: false }
  return {
    ...{ out, said, asked, engine },
    run: (swap = false, inCluster = '') => {
      described = inCluster
      return grow({ ...options, swap }, context)
    },
  }
}

/** @param topic_id null: it was not known */
const former = (topic: string, end: number, topic_id: string | null = `id of ${topic}`) => {
  return { topic, cluster_id: 'c', ...(topic_id !== null && { topic_id }), ends: [end] }
}
/** After the swap from `old` to `new`, and perhaps from `first` to `old` before. */
const after = (topics: Readonly<Record<string, Topic>>, ...[last, ...before]: readonly object[]) =>
  given({ ...topics, new: { partitions: [[], []] } }, { generation: 'g2', grown: { ...last, before } }, [
    identity('g2', 'new', { partitions: 2 }),
  ])

const FORMER = 'g2 is live, made from new'

test('nothing came to the topic before, or it is gone: the run says so', async () => {
  const quiet = after({ old: { id: 'id of old', partitions: [records(2)] } }, former('old', 2))
  expect([await quiet.run(), quiet.said]).toEqual([0, [FORMER, 'Nobody has published to old since the swap']])
  const gone = after({}, former('old', 2))
  expect([await gone.run(), gone.said]).toEqual([0, [FORMER, 'The topic before, old, is gone']])
})

test('records that came to the topic before are named, also in a partition that was added to it', async () => {
  const { run, out, said } = after({ old: { id: 'id of old', partitions: [records(3), records(1)] } }, former('old', 2))
  expect(await run()).toBe(1)
  expect(out).toEqual([expect.stringMatching(/^old:0:2 .*payroll/), expect.stringMatching(/^old:1:0 .*payroll/)])
  expect(said.at(-1)).toContain('2 records were published to old after the swap: no reader sees them')
})

test('a topic whose id one side does not know is the topic before', async () => {
  for (const [id, known] of [
    ['id of old', null],
    [undefined, 'id of old'],
    [undefined, null],
  ] as const) {
    const { run, out } = after({ old: { ...(id && { id }), partitions: [records(3)] } }, former('old', 2, known))
    expect([await run(), out]).toEqual([1, [expect.stringContaining('old:0:2')]])
  }
})

test.each([
  ['with another id', { id: 'another', partitions: [records(1)] }, 'id of old'],
  ['with another id and more partitions', { id: 'another', partitions: [[], [], records(1)] }, 'id of old'],
  ['shorter than at the swap, without ids', { partitions: [records(1)] }, null],
])('a topic of the name of the one before, %s, is read from its beginning', async (_, topic, id) => {
  const { run, out, said } = after({ old: topic }, former('old', 2, id))
  expect([await run(), out]).toEqual([1, [expect.stringMatching(/^old:[02]:0 .*payroll/)]])
  expect(said.at(-1)).toContain('1 record was published to old, which was made anew, after the swap')
})

test('records that a topic made anew has deleted count, too', async () => {
  const { run, out, said } = after({ old: { id: 'another', partitions: [records(1, 4)] } }, former('old', 6))
  expect([await run(), out]).toEqual([1, [expect.stringContaining('old:0:4')]])
  expect(said.at(-1)).toContain('5 records were published to old, which was made anew')
  expect(said.at(-1)).toContain('and those of these records again that new does not have: compare first')
})

test('records that the topic before deleted count only if they came after the swap', async () => {
  const deleted = (end: number) => after({ old: { id: 'id of old', partitions: [records(1, 4)] } }, former('old', end))
  const quiet = deleted(5)
  expect([await quiet.run(), quiet.said.at(-1)]).toEqual([0, 'Nobody has published to old since the swap'])
  const late = deleted(3)
  expect([await late.run(), late.out]).toEqual([1, [expect.stringContaining('old:0:4')]])
  expect(late.said.at(-1)).toContain('2 records were published to old after the swap')
})

test('a topic before that cannot be read is named with the reason, and the others are looked at', async () => {
  const old = { id: 'id of old', partitions: [records(2)], ends: [3] }
  const { run, out, said } = after(
    { old, first: { id: 'id of first', partitions: [records(8)] } },
    former('old', 2),
    former('first', 7),
  )
  expect([await run(), out]).toEqual([1, [expect.stringContaining('first:0:7')]])
  expect(said[1]).toContain('old: partition 0 of old ends at 3, but nothing from offset 2 on can be read')
})

test('an empty topic that was made anew can be deleted', async () => {
  const { run, said } = after({ old: { id: 'another', partitions: [[]] } }, former('old', 2))
  expect([await run(), said.at(-1)]).toEqual([0, 'old was made anew, and is empty: delete it'])
})

test('another topic that reaches the ends of the one before may be a copy of it: only records behind them are named', async () => {
  const copied = (count: number) =>
    after({ old: { id: 'another', cluster: 'd', partitions: [records(count)] } }, former('old', 2))
  const copy = 'old, which is another topic now; it may be a copy of the one before'
  const quiet = copied(2)
  expect([await quiet.run(false, 'old'), quiet.out]).toEqual([0, []])
  expect(quiet.said.at(-1)).toContain(copy.replace(', which', ''))
  const late = copied(3)
  expect([await late.run(false, 'old'), late.out]).toEqual([1, [expect.stringContaining('old:0:2')]])
  expect(late.said.at(-1)).toContain(`1 record was published to ${copy}`)
  expect(late.said.at(-1)).toContain('again that new does not have')
})

test('after two swaps both topics before are looked at', async () => {
  const topics = {
    old: { id: 'id of old', partitions: [records(2)] },
    first: { id: 'id of first', partitions: [records(8)] },
  }
  const { run, out, said } = after(topics, former('old', 2), former('first', 7))
  expect([await run(), out]).toEqual([1, [expect.stringContaining('first:0:7')]])
  expect(said.slice(1)).toEqual([
    'Nobody has published to old since the swap',
    expect.stringContaining('1 record was published to first after the swap'),
  ])
})

test.each([
  ['of other rules', { rules_version: 4 }, 'g2 of new has version 4 of the rules, and g3 version 5'],
  ['that takes over parked records', { follows: 'g1' }, 'g2 of new takes over what g1 parked'],
])('a generation of the new topic %s is refused before anything is copied', async (_, fields, what) => {
  const topics = { old: { partitions: [records(2)] }, new: { partitions: [[], []] } }
  const live = { generation: 'g3', kept: ['g3', 'g2'] }
  const { run, said, asked } = given(topics, live, [identity('g3', 'old'), identity('g2', 'new', fields)])
  for (const swap of [false, true]) await expect(run(swap)).rejects.toThrow(what)
  expect([said, asked]).toEqual([[], ['old', 'old']])
})
