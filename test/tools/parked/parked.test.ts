/** Runs of `commission parked` over more records than one run takes. */
import { expect, test } from 'vitest'
import { generationId, LIVE_ID, type ParkedDocument, positionId } from '../../../schemas/stored/documents.ts'
import type { KafkaContext } from '../../../tools/context.ts'
import { exitCodes, Stopped } from '../../../tools/failures.ts'
import { RECORDS_MAX } from '../../../tools/limits.ts'
import { again, listParked } from '../../../tools/parked/parked.ts'
import { sending } from '../../support/answering.ts'
import { repRecorded } from '../../support/events.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'
import { answerParked, parkedDocuments } from '../../support/parked-store.ts'

const NOW = Date.UTC(2026, 0)

/**
 * A live generation with these parked records, all of which are published, and a Kafka that notes what is sent.
 * @param stopAfter a signal comes when this many are sent
 */
const world = (documents: ReadonlyMap<string, ParkedDocument>, stopAfter = Number.POSITIVE_INFINITY) => {
  const stopping = new AbortController()
  const engine = new MemoryElasticsearch()
  const published = 1_000_000
  const sent: string[] = []
  const move = (generation: string): void => {
    const position = { position: published + sent.length, last: null, at: 1, time: 2, serve_from: 0 }
    engine.put('p-control', positionId(generation, 0), 1, { kind: 'position', body: position })
  }
  for (const [generation, topic, rules_version] of [['g1', 'events', 4] as const, ['api-keys', 'keys', 2] as const]) {
    const body = { generation, topic, cluster_id: 'c', partitions: 1, rules_version }
    engine.put('p-control', generationId(generation), 1, { kind: 'generation', body })
    move(generation)
  }
  engine.put('p-control', LIVE_ID, 1, { kind: 'live', body: { generation: 'g1', kept: ['g1'] } })
  const send = sending(async request => answerParked(request, documents) ?? engine.send(request))
  const nothing = async () => undefined
  const admin = {
    ...{ connect: nothing, disconnect: nothing },
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: `${published + sent.length}` }],
  }
  const producer = {
    ...{ connect: nothing, disconnect: nothing },
    send: async ({ messages }: { messages: readonly { readonly value: Buffer }[] }) => {
      const baseOffset = `${published + sent.length}`
      sent.push(...messages.map(({ value }) => String(value)))
      move('g1')
      if (sent.length >= stopAfter) stopping.abort(new Stopped())
      return [{ baseOffset }]
    },
  }
  const [lines, said] = [[] as string[], [] as string[]]
  const context = {
    ...{ send, prefix: 'p', out: (text: string | Buffer) => void lines.push(`${text}`.trim()) },
    ...{ say: (line: string) => void said.push(line), now: () => NOW, elapsed: () => 0, sleep: async () => undefined },
    ...{ signal: stopping.signal, topics: { events: 'events', 'api-keys': 'keys' } },
    kafka: { admin: () => admin, producer: () => producer } as unknown as KafkaContext['kafka'],
  }
  const publishAgain = (publish: boolean) =>
    again({ positions: [], filter: {}, publish, force: false, waitSeconds: 1, json: false }, context)
  const list = (options: Partial<Parameters<typeof listParked>[0]>) => {
    const defaults = { filter: {}, order: 'oldest', after: undefined, limit: 5, json: true } as const
    return listParked({ ...defaults, ...options }, context)
  }
  return { publishAgain, list, lines, said, sent }
}

const rep = (id: number) => {
  const { key, value, headers } = repRecorded({ org_id: 'org_1', id: `rep_${id}` })
  return { key: String(key), value: String(value), headers }
}
/** One more record than a run sends. */
const many = Array.from({ length: RECORDS_MAX + 1 }, (_, offset) => ({ offset, at: offset }))

test('records that are refused keep no later record from being published again', async () => {
  const { publishAgain, sent, said } = world(
    parkedDocuments(many.map(one => (one.offset < RECORDS_MAX ? one : { ...one, ...rep(7) }))),
  )
  expect(await publishAgain(true)).toBe(exitCodes.notAll)
  expect(sent).toEqual([rep(7).value])
  expect(said.at(-1)).toBe('1 applied, 10000 refused')
})

test('records that are there already keep no later record from being published again', async () => {
  const { publishAgain, lines, said } = world(
    parkedDocuments(many.map(one => ({ ...one, ...rep(one.offset < RECORDS_MAX ? 1 : 7) }))),
  )
  expect(await publishAgain(false)).toBe(exitCodes.done)
  expect(lines.at(-1)).toContain('events:0:10000  rep_unknown  would be applied')
  expect(said.at(-2)).toBe('2 would be applied, 9999 is there already')
})

test('a run says how many records it did not look at, and ends with another exit code', async () => {
  const { publishAgain, lines, said } = world(parkedDocuments(many.map(one => ({ ...one, ...rep(one.offset) }))))
  expect(await publishAgain(false)).toBe(exitCodes.notAll)
  expect(lines).toHaveLength(RECORDS_MAX)
  expect(said.slice(-3, -1)).toEqual([
    '10000 would be applied',
    '1 more match, and were not looked at: a run with --publish begins with these, the next one goes on',
  ])
})

test('a run that is stopped between two records is not done: it tells what was sent, and ends as stopped', async () => {
  const both = [1, 2].map(id => ({ offset: id, at: id, ...rep(id) }))
  const { publishAgain, lines, sent } = world(parkedDocuments(both), 1)
  await expect(publishAgain(true)).rejects.toBeInstanceOf(Stopped)
  expect(sent).toEqual([rep(1).value])
  expect(lines).toEqual([
    expect.stringContaining('events:0:1  rep_unknown  applied at'),
    'events:0:2  rep_unknown  would be applied',
  ])
})

test('records with a time ahead of the clock are last in each list, which says so', async () => {
  const ahead = Array.from({ length: 60 }, (_, offset) => ({ offset, at: NOW + 6_000 + offset }))
  const others = [60, 61, 62, 63, 64, 65].map(offset => ({ offset, at: NOW - 100 + offset }))
  const { list, lines, said } = world(parkedDocuments([...ahead, ...others]))
  const listed = () => lines.splice(0).map(line => Number(line.match(/"offset":(\d+)/)?.[1]))
  await list({ order: 'newest' })
  expect(listed()).toEqual([65, 64, 63, 62, 61])
  expect(said).toEqual([
    '5 of 66 parked records under p',
    '60 of them have times ahead of the clock, and come last. To see them: --oldest --after events:0:65',
  ])
  await list({ after: { topic: 'events', partition: 0, offset: 65 } })
  expect(listed()).toEqual([0, 1, 2, 3, 4])
  await list({ order: 'newest', after: { topic: 'events', partition: 0, offset: 61 } })
  expect(listed()).toEqual([60, 59, 58, 57, 56])
  await expect(list({ after: { topic: 'events', partition: 0, offset: 66 } })).rejects.toThrow(
    'events:0:66 is not parked',
  )
})
