/** Runs of `commission parked` over more records than one run takes. */
import { describe, expect, test } from 'vitest'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import type { Request } from '../../../core/store/elasticsearch/client.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { generationId, LIVE_ID, type ParkedDocument, positionId } from '../../../schemas/stored/documents.ts'
import { storedNameOf } from '../../../schemas/stored/live-names.ts'
import type { KafkaContext } from '../../../tools/context.ts'
import { exitCodes, Stopped } from '../../../tools/failures.ts'
import { MERGED_HITS, RECORDS_MAX } from '../../../tools/limits.ts'
import { again, listParked } from '../../../tools/parked/parked.ts'
import { sending } from '../../support/answering.ts'
import {
  keyCreated,
  keyRevoked,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  withHeaders,
} from '../../support/events.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'
import { answerParked, parkedDocuments } from '../../support/parked-store.ts'

const NOW = Date.UTC(2026, 0)

/**
 * A live generation with these parked records, all of which are published, and a Kafka that notes what is sent.
 * @param stopAfter a signal comes when this many are sent; @param partitions of each topic; @param onRefresh before one
 * @param unread partitions of events with a transaction that stays open, and whose end nobody tells
 * @param hides a transaction that stays open hides what is sent; @param lost Kafka lost records when this many are sent
 */
const world = (
  documents: ReadonlyMap<string, ParkedDocument>,
  {
    stopAfter = Number.POSITIVE_INFINITY,
    partitions = 1,
    onRefresh = () => {},
    hides = false,
    unread = {} as { readonly open?: number; readonly unknown?: number },
    lost = Number.POSITIVE_INFINITY,
  } = {},
) => {
  const stopping = new AbortController()
  const engine = new MemoryElasticsearch()
  const published = 1_000_000
  const sent: string[] = []
  const stableEnd = (): number => published + (hides ? 0 : sent.length)
  const move = (generation: string): void => {
    const position = { position: stableEnd(), last: null, at: 1, time: 2, serve_from: 0 }
    for (let partition = 0; partition < partitions; partition++)
      engine.put('p-control', positionId(generation, partition), 1, { kind: 'position', body: position })
  }
  for (const [generation, topic, rules_version] of [['g1', 'events', 4] as const, ['api-keys', 'keys', 2] as const]) {
    const body = { generation, topic, cluster_id: 'c', partitions, rules_version }
    engine.put('p-control', generationId(generation), 1, { kind: 'generation', body })
    move(generation)
  }
  engine.put('p-control', LIVE_ID, 1, {
    kind: 'live',
    body: { generation: storedNameOf({ generation: 'g1', layout: 3 }) },
  })
  const asked: Request[] = []
  const send = sending(async request => {
    asked.push(request)
    if (request.path.endsWith('_refresh')) onRefresh()
    return answerParked(request, documents) ?? engine.send(request)
  })
  const nothing = async () => undefined
  const admin = {
    ...{ connect: nothing, disconnect: nothing },
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: Array.from({ length: partitions }, () => ({})) }] }),
    fetchTopicOffsets: async () =>
      Array.from({ length: partitions }, (_, partition) => {
        return { partition, low: '0', high: `${stableEnd()}` }
      }),
  }
  const producer = {
    ...{ connect: nothing, disconnect: nothing },
    send: async ({ messages }: { messages: readonly { readonly value: Buffer }[] }) => {
      const baseOffset = `${sent.length >= lost ? 7 : published + sent.length}`
      sent.push(...messages.map(({ value }) => String(value)))
      for (const generation of ['g1', 'api-keys']) move(generation)
      if (sent.length >= stopAfter) stopping.abort(new Stopped())
      return [{ baseOffset }]
    },
  }
  const openCluster = async (topic: string) => {
    const { open, unknown } = topic === 'events' ? unread : {}
    const logEnds = async (asked: readonly number[]) => {
      if (asked.includes(unknown ?? -1)) throw new Error('its leader does not answer')
      return new Map(asked.map(one => [one, published + sent.length + (one === open ? 1 : 0)]))
    }
    return { logEnds, disconnect: nothing } as unknown as LogCluster
  }
  let elapsed = 0
  const sleep = async (milliseconds: number) => {
    elapsed += milliseconds
  }
  const [lines, said] = [[] as string[], [] as string[]]
  const context = {
    ...{ send, prefix: 'p', out: (text: string | Buffer) => void lines.push(`${text}`.trim()) },
    ...{ say: (line: string) => void said.push(line), now: () => NOW, elapsed: () => elapsed, sleep },
    ...{ openCluster, signal: stopping.signal, topics: { events: 'events', 'api-keys': 'keys' } },
    kafka: { admin: () => admin, producer: () => producer } as unknown as KafkaContext['kafka'],
  }
  const publishAgain = (publish: boolean, options: Partial<Parameters<typeof again>[0]> = {}) =>
    again({ positions: [], filter: {}, publish, force: false, waitSeconds: 1, json: false, ...options }, context)
  const list = (options: Partial<Parameters<typeof listParked>[0]>) => {
    const defaults = { filter: {}, order: 'oldest', after: undefined, limit: 5, json: true } as const
    return listParked({ ...defaults, ...options }, context)
  }
  return { publishAgain, list, lines, said, sent, asked }
}

const contentOf = ({ key, value, headers }: Outgoing) => ({ key: String(key), value: String(value), headers })
const org_id = 'org_1'
const rep = (id: number) => contentOf(repRecorded({ org_id, id: `rep_${id}` }))
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
  const { publishAgain, lines, sent } = world(parkedDocuments(both), { stopAfter: 1 })
  await expect(publishAgain(true)).rejects.toBeInstanceOf(Stopped)
  expect(sent).toEqual([rep(1).value])
  expect(lines).toEqual([
    expect.stringContaining('events:0:1  rep_unknown  applied at'),
    'events:0:2  rep_unknown  would be applied',
  ])
})

const hiding = (why: string) =>
  `${why}: they may hide records that an earlier run has published. None is published again there`
const refusedBehind = (offset: number) =>
  `${offset} refused: an open transaction may hide that an earlier run has published it`

test('records are published again to partitions where nothing is hidden, and to the other topic; the others are refused', async () => {
  const idIn = (wanted: number) => many.map(({ at }) => `org_${at}`).find(id => partitionOf(id, 2) === wanted) ?? ''
  const [first, second] = [0, 1].map(partition => contentOf(repRecorded({ org_id: idIn(partition) })))
  const [third, at] = [contentOf(keyCreated({ org_id })), 1]
  const records = [first, second, { topic: 'keys', ...third }]
  const parked = records.map((one, index) => ({ offset: index + 1, at, ...one }))
  for (const [unread, why, advice] of [
    [{ open: 0 }, 'open transactions in', 'End them'],
    [{ unknown: 0 }, 'it is not known whether transactions are open in', 'Look at the brokers'],
  ] as const) {
    const { publishAgain, lines, said, sent } = world(parkedDocuments(parked), { partitions: 2, unread })
    expect(await publishAgain(true)).toBe(exitCodes.notAll)
    expect(sent).toEqual([second?.value, third.value])
    const applied = [2, 3].map(offset => expect.stringContaining(`${offset} applied`))
    expect(outcomesOf(lines)).toEqual([refusedBehind(1), ...applied])
    const line = `${hiding(`${why} partition 0 of events`)}. ${advice}, and run the same command again`
    expect(said).toEqual([line, '2 applied, 1 refused'])
  }
})

test('a record behind a transaction that stays open is sent once: the next run names the transaction, and sends nothing', async () => {
  const { publishAgain, lines, said, sent } = world(parkedDocuments([{ offset: 1, at: 1, ...rep(1) }]), { hides: true })
  await expect(publishAgain(true)).rejects.toThrow(
    '1 records behind on events after 1 s: end the open transactions in partition 0 of events, which hide records.',
  )
  expect(lines.splice(0)).toEqual([
    expect.stringContaining('published again; it is not decided yet at events:0:1000000'),
  ])
  expect(await publishAgain(true)).toBe(exitCodes.notAll)
  expect(said.slice(-2)).toEqual([
    `${hiding('open transactions in partition 0 of events')}. End them, and run the same command again`,
    '1 refused',
  ])
  expect([sent, outcomesOf(lines)]).toEqual([[rep(1).value], [refusedBehind(1)]])
  expect(await publishAgain(false)).toBe(exitCodes.done)
})

test('a record that Kafka puts before the end of the topic is not said to be published: no projector reads it', async () => {
  const both = [1, 2].map(id => ({ offset: id, at: id, ...rep(id) }))
  const { publishAgain, lines } = world(parkedDocuments(both), { lost: 1 })
  await expect(publishAgain(true)).rejects.toThrow(
    'Kafka put a record at offset 7 of partition 0 of events, which had ended at 1000001',
  )
  expect(outcomesOf(lines)).toEqual([
    '1 published again; it is not decided yet at events:0:1000000',
    '2 may be published again; Kafka did not say',
  ])
})

test('a run refreshes before it counts and before it looks for undoing records, and searches only partitions with matches', async () => {
  const found = [0, 2].map(partition => ({ offset: 1, at: 1, partition, ...rep(1) }))
  const { publishAgain, asked } = world(parkedDocuments(found), { partitions: 4 })
  await publishAgain(false)
  const searched = asked.flatMap(({ body }) => JSON.stringify(body ?? {}).match(/(?<="partition":\[)\d/)?.[0] ?? [])
  expect(searched).toEqual(['0', '2'])
  expect(asked.filter(({ path }) => path.endsWith('_refresh'))).toHaveLength(2)
})

test('a run over a thousand partitions holds a bounded number of records, and looks at all of them', async () => {
  const partitions = 1_000
  const size = MERGED_HITS / partitions
  const found = Array.from({ length: partitions + size }, (_, index) => {
    const partition = Math.min(index, partitions - 1)
    return { offset: index - partition, at: index, partition, ...rep(1) }
  })
  const { publishAgain, asked, lines } = world(parkedDocuments(found), { partitions })
  await publishAgain(false)
  expect(lines).toHaveLength(found.length)
  const pages = asked.flatMap(({ body }) => {
    const text = JSON.stringify(body ?? {})
    return text.includes('"partition":[') ? [Number(/"size":(\d+)/.exec(text)?.[1])] : []
  })
  // The last partition has a page and a record.
  expect(pages).toEqual(Array.from({ length: partitions + 1 }, () => size))
})

/** Lines of a dry run, without topic and partition. */
const outcomesOf = (lines: string[]): string[] =>
  lines.splice(0).map(line => line.replace(/^\w+:0:(\d+) +\w+ +/, '$1 '))

test('records of a partition are published again in the order of their offsets, whatever times they have', async () => {
  const [active, departed] = [
    { offset: 10, at: 2_000, ...rep(1) },
    { offset: 11, at: 1_990, ...contentOf(repRecorded({ org_id, id: 'rep_1', status: 'departed' })) },
  ]
  const { publishAgain, lines } = world(parkedDocuments([departed, active]))
  const expected = ['10 would be applied', '11 would be applied']
  await publishAgain(false)
  expect(outcomesOf(lines)).toEqual(expected)
  await publishAgain(false, { positions: [departed, active].map(one => ({ ...one, topic: 'events', partition: 0 })) })
  expect(outcomesOf(lines)).toEqual(expected)
})

describe('a record that another parked record takes back is refused', () => {
  const needed = [
    { offset: 1, at: 1, ...rep(1) },
    { offset: 2, at: 2, ...contentOf(periodRecorded({ org_id })) },
  ]
  const cases = [
    ['a payment with its void', 'events', payrollRecorded({ org_id }), payrollVoided({ org_id })],
    [
      'a payout with the one that replaces it',
      'events',
      payoutCalculated({ org_id }),
      payoutCalculated({ org_id, id: 'payout_2', supersedes_id: 'payout_1' }),
    ],
    ['a key with its revocation', 'keys', keyCreated({ org_id }), keyRevoked({ org_id })],
  ] as const
  const refused = 'refused: another parked record reverses, revokes or replaces it; publish both in one run'
  const stored = (topic: string, record: Outgoing, undoing: Outgoing, more: readonly Outgoing[] = []) =>
    parkedDocuments([
      ...(topic === 'events' ? needed : []),
      { topic, offset: 3, at: 3, ...contentOf(record) },
      ...[undoing, ...more].map((one, index) => {
        return { code: 'payroll_reversal_invalid', topic, offset: 4 + index, at: 4, ...contentOf(one) } as const
      }),
    ])
  const early = { filter: { code: ['rep_unknown'] } } as const

  test.each(cases)('%s, unless both are published in one run', async (_, topic, record, undoing) => {
    const { publishAgain, lines } = world(stored(topic, record, undoing))
    expect(await publishAgain(false, early)).toBe(exitCodes.notAll)
    expect(outcomesOf(lines).at(-1)).toBe(`3 ${refused}`)
    expect(await publishAgain(false)).toBe(exitCodes.done)
    expect(outcomesOf(lines).slice(-2)).toEqual(['3 would be applied', '4 would be applied'])
  })

  test('no other record is refused', async () => {
    const others = [
      payrollVoided({ org_id, reverses_id: 'payroll_9' }),
      payrollVoided({ org_id: 'org_2' }),
      { ...payrollVoided({ org_id }), value: '{' },
    ]
    const [first = payrollVoided({ org_id }), ...more] = others
    const { publishAgain, lines } = world(stored('events', payrollRecorded({ org_id }), first, more))
    expect(await publishAgain(false, early)).toBe(exitCodes.done)
    expect(outcomesOf(lines).at(-1)).toBe('3 would be applied')
  })

  test('a payment whose void cannot be sent, although it is selected', async () => {
    const documents = stored('events', payrollRecorded({ org_id }), payrollVoided({ org_id }))
    documents.get('events:0:4')?.body.headers.push(['x-y', null])
    const { publishAgain, lines } = world(documents)
    await publishAgain(false)
    expect(outcomesOf(lines)[2]).toBe(`3 ${refused}`)
  })

  test('a payout whose next one is refused, because another parked one replaces that', async () => {
    const [second, third] = [2, 3].map(n =>
      payoutCalculated({ org_id, id: `payout_${n}`, supersedes_id: `payout_${n - 1}` }),
    ) as [Outgoing, Outgoing]
    const { publishAgain, lines } = world(stored('events', payoutCalculated({ org_id }), second, [third]))
    const positions = [1, 2, 3, 4].map(offset => ({ topic: 'events', partition: 0, offset }))
    await publishAgain(false, { positions })
    expect(outcomesOf(lines)[2]).toBe(`3 ${refused}`)
  })

  const open = '1 published, but not yet the void, revocation or replacement of it: run the same command again'

  test('a run that is stopped between both says so, and one that is not does not', async () => {
    const documents = stored('keys', keyCreated({ org_id }), keyRevoked({ org_id }))
    const stopped = world(documents, { stopAfter: 1 })
    await expect(stopped.publishAgain(true)).rejects.toBeInstanceOf(Stopped)
    expect(stopped.said.at(-1)).toBe(open)
    const whole = world(documents)
    await whole.publishAgain(true).catch(() => undefined)
    expect(whole.sent).toHaveLength(2)
    expect(whole.said).not.toContain(open)
  })

  test('a run is not done if the second is parked while it runs', async () => {
    const documents = stored('keys', keyCreated({ org_id }), keyRevoked({ org_id }))
    const [id, revocation] = [...documents].at(-1) ?? []
    if (id === undefined || revocation === undefined) throw new Error('both are parked')
    documents.delete(id)
    let refreshes = 0
    const onRefresh = () => void (++refreshes === 2 && documents.set(id, revocation))
    const { publishAgain, said, sent } = world(documents, { onRefresh })
    expect(await publishAgain(true)).toBe(exitCodes.notAll)
    expect(sent).toHaveLength(1)
    expect(said).toContain(open)
  })

  test('a run that has no more room for the second says so', async () => {
    const keys = many.map(({ offset, at }) => {
      const record = offset < RECORDS_MAX ? keyCreated({ org_id, id: `key_${offset}` }) : undefined
      return { topic: 'keys', offset, at, ...contentOf(record ?? keyRevoked({ org_id, id: 'key_5' })) }
    })
    const { publishAgain, said } = world(parkedDocuments(keys))
    expect(await publishAgain(true)).toBe(exitCodes.notAll)
    expect(said.slice(-3)).toEqual([
      open,
      '10000 applied',
      '1 more match, and were not looked at: run the same command again',
    ])
  })

  test('one copy of the void is enough, and another void is not', async () => {
    const first = payrollVoided({ org_id })
    const second = withHeaders(payrollVoided({ org_id, id: 'payroll_3', reverses_id: 'payroll_9' }), first.headers)
    const run = async (copy: Outgoing) => {
      const { publishAgain, lines } = world(stored('events', payrollRecorded({ org_id }), first, [copy]))
      await publishAgain(false, {
        positions: [1, 2, 3, 5].map(offset => ({ topic: 'events', partition: 0, offset })),
      })
      return outcomesOf(lines)[2]
    }
    expect(await run(first)).toBe('3 would be applied')
    expect(await run(second)).toBe(`3 ${refused}`)
  })
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
