/** Last known records are read again by requests of their own, of all partitions, a few at a time. */
import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { recordHash } from '../../../../core/ledger/event/decode.ts'
import { NO_HEADERS } from '../../../../core/log/kafka/encoded-headers.ts'
import { topicOfRack } from '../../../../core/log/kafka/patch-topic-ids.ts'
import { KNOWN_READS, KNOWN_RETRY_MS } from '../../../../core/log/limits.ts'
import { createLastRecordReader, type KnownRecords } from '../../../../core/log/records/last-records.ts'
import type { LogBroker, LogCluster } from '../../../../core/log/records/open-cluster.ts'
import { fetchedOf } from '../../../support/record-batches.ts'

type Entry = Parameters<typeof fetchedOf>[0][number]
const entryAt = (offset: number, changes: Partial<Entry> = {}): Entry => {
  const value = Buffer.from(`value ${offset}`)
  return { kind: 'record', offset, timestamp: 7, key: Buffer.from('org'), value, headers: NO_HEADERS, ...changes }
}
const lastAt = (offset: number): KnownRecords[number] => ({
  position: offset + 1,
  last: { offset, sha256: recordHash(entryAt(offset)) },
})
const none: KnownRecords[number] = { position: 0, last: null }

/** A topic whose partitions have six records each, in one batch, or what `messagesOf` gives. */
const topic = (
  entriesOf: (partition: number, from: number) => readonly Entry[] | Error = () => sixRecords,
  epochOf = (_offset: number): number => 0,
  topic_id: string | undefined = 'id',
) => {
  const slept: number[] = []
  const pause = async (milliseconds: number) => slept.push(milliseconds)
  const told: string[] = []
  let [running, most] = [0, 0]
  const fetch: LogBroker['fetch'] = async ({ topics: [asked], rackId }) => {
    const [{ partition = -1, fetchOffset = '' } = {}] = asked?.partitions ?? []
    told.push(`${topicOfRack(rackId)}: ${partition} at ${fetchOffset}`)
    most = Math.max(most, ++running)
    await new Promise(setImmediate)
    running--
    const entries = entriesOf(partition, Number(fetchOffset))
    if (entries instanceof Error) throw entries
    const messages =
      entries.length === 0 ? [] : [{ offset: '0', fetched: fetchedBy(epochOf(Number(fetchOffset)), entries) }]
    return { responses: [{ partitions: [{ lastStableOffset: '6', messages }] }] }
  }
  const open = async (name: string, signal: AbortSignal): Promise<LogCluster> => {
    told.push(`open ${name}`)
    signal.addEventListener('abort', () => told.push('abort'))
    return {
      onLeader: (_, ask) => ask({ fetch } as LogBroker),
      onCoordinator: () => Promise.reject(new Error('not used')),
      logEnds: async partitions => {
        told.push(`ends of ${partitions.join()}`)
        if (partitions.length === 0) throw new Error('away')
        return new Map(partitions.map(partition => [partition, 7]))
      },
      disconnect: async () => void told.push('disconnect'),
    }
  }
  const reader = createLastRecordReader(
    { topic: 't', ...(topic_id && { topic_id }) },
    open,
    new AbortController().signal,
    pause,
  )
  return { told, slept, most: () => most, ...reader }
}
/** The bytes that a fetch brings of one batch, which a leader of this epoch appended. */
const fetchedBy = (epoch: number, entries: readonly Entry[]) => {
  const fetched = fetchedOf(entries)
  fetched.bytes.writeInt32BE(epoch, 12)
  return fetched
}
const sixRecords = Array.from({ length: 6 }, (_, offset) => entryAt(offset))

test('the ends with open transactions are read over the same connections, which are closed after a failure', async () => {
  const { verify, logEnds, told } = topic()
  await verify([lastAt(5)])
  expect(await logEnds([0, 1])).toEqual(new Map([0, 1].map(partition => [partition, 7])))
  await expect(logEnds([])).rejects.toThrow('away')
  expect(told).toEqual(['open t', 'id: 0 at 5', 'ends of 0,1', 'ends of ', 'abort', 'disconnect'])
})

test('each partition that has a last record is read at its offset, by the topic id, over connections that stay open', async () => {
  const { verify, told, close } = topic()
  for (let run = 0; run < 2; run++) await verify([lastAt(5), none, lastAt(2), none])
  const reads = ['id: 0 at 5', 'id: 2 at 2']
  expect(told).toEqual(['open t', ...reads, ...reads])
  await close()
  expect(told.slice(-2)).toEqual(['abort', 'disconnect'])
  await verify([lastAt(0)])
  expect(told.at(-2)).toBe('open t')
})

test('a topic of which nothing was read is not read', async () => {
  const { verify, told } = topic()
  await verify([none, none])
  expect(told).toEqual([])
})

test('200 partitions are read a few at a time: neither one by one nor all at once', async () => {
  const { verify, told, most } = topic()
  await verify(Array.from({ length: 200 }, () => lastAt(5)))
  expect([told.length, most()]).toEqual([201, 4])
})

test.for<[string, readonly Entry[]]>([
  ['another value', [entryAt(5, { value: Buffer.from('another') })]],
  ['another time, as of a record that was published again', [entryAt(5, { timestamp: 8 })]],
  ['a control record', [entryAt(5, { kind: 'control' })]],
  ['a record of an aborted transaction', [entryAt(5, { kind: 'aborted' })]],
])('%s in place of the last record of any partition is another source', async ([_, entries]) => {
  const { verify, told } = topic(partition => (partition === 7 ? entries : sixRecords))
  await expect(verify(Array.from({ length: 9 }, () => lastAt(5)))).rejects.toMatchObject({
    code: 'source_changed',
    where: { topic: 't', partition: 7, offset: 5 },
  })
  expect(told.slice(-2)).toEqual(['abort', 'disconnect'])
})

describe('between the last record and the position', () => {
  /** Read to 8, with the last record at 5. The topic has one batch for each offset. */
  const known = { ...lastAt(5), position: 8 }
  const kinds = (...all: Entry['kind'][]): Entry[] => all.map((kind, index) => entryAt(index + 5, { kind }))
  const verifying = (entries: readonly Entry[], of = known) => {
    const running = topic((_, from) => entries.filter(({ offset }) => offset === from))
    return { ...running, verified: running.verify([none, of]) }
  }

  test('aborted and control records are read again, and a record after them is not', async () => {
    const { verified, told } = verifying(kinds('record', 'aborted', 'control', 'record'), { ...known, position: 8 })
    await verified
    expect(told).toEqual(['open t', 'id: 1 at 5', 'id: 1 at 6', 'id: 1 at 7'])
  })

  test.for([
    [6, kinds('record', 'record', 'record')],
    [7, kinds('record', 'aborted', 'record')],
  ] as const)('a record at offset %i is another source: it would never be projected', async ([offset, entries]) => {
    const where = { topic: 't', partition: 1, offset }
    await expect(verifying(entries).verified).rejects.toMatchObject({ code: 'source_changed', where })
  })

  test('without any record so far, the same holds from the beginning', async () => {
    const aborted = kinds('aborted', 'control').map((entry, offset) => ({ ...entry, offset }))
    const of = { position: 2, last: null }
    const { verified, told } = verifying(aborted, of)
    await verified
    expect(told.slice(1)).toEqual(['id: 1 at 0', 'id: 1 at 1'])
    const record = verifying([entryAt(0)], of)
    await expect(record.verified).rejects.toMatchObject({ code: 'source_changed', where: { offset: 0 } })
  })

  test('a log that ends before the position is another source', async () => {
    const { verified, slept } = verifying(kinds('record'))
    await expect(verified).rejects.toMatchObject({ code: 'source_changed', where: { offset: 6 } })
    expect(slept).toHaveLength(KNOWN_READS - 1)
  })
})

describe('a part of the log without a record that was read again once', () => {
  const known = { ...lastAt(5), position: 9 }
  const kinds: readonly Entry['kind'][] = ['record', 'aborted', 'aborted', 'control', 'aborted', 'control']
  const setUp = async (topicId?: string) => {
    const log = kinds.map((kind, index) => entryAt(index + 5, { kind }))
    /** The epoch of what comes from an offset on. */
    const later = { from: Number.POSITIVE_INFINITY, epoch: 3 }
    const epochOf = (offset: number): number => (offset < later.from ? 2 : later.epoch)
    const running = topic((_, from) => log.filter(({ offset }) => offset === from), epochOf, topicId)
    let further = 0
    await running.verify([known], () => further++)
    const reads = async (of: KnownRecords[number]) => {
      running.told.length = 0
      await running.verify([of])
      return running.told.map(line => Number(line.split(' ').at(-1)))
    }
    running.told.length = 0
    return { ...running, log, later, reads, further }
  }

  test('is told of as it is read: the partitions wait for it meanwhile', async () => {
    expect((await setUp()).further).toBe(3)
  })

  test('is not read again: only the last record is, and the end, which has the same leader', async () => {
    const { reads } = await setUp()
    expect(await reads(known)).toEqual([5, 8])
    expect(await reads(known)).toEqual([5, 8])
  })

  test('is read on from its end once the position is further', async () => {
    const { reads } = await setUp()
    expect(await reads({ ...known, position: 11 })).toEqual([5, 8, 9, 10])
    expect(await reads({ ...known, position: 11 })).toEqual([5, 10])
  })

  test('is read again, once, if a later leader appended its end', async () => {
    const { reads, later } = await setUp()
    later.from = 7
    expect(await reads(known)).toEqual([5, 8, 6, 7, 8])
    expect(await reads(known)).toEqual([5, 8])
  })

  test('is another source if a later leader has a record there, and the same end', async () => {
    const { verify, log, later } = await setUp()
    later.from = 7
    log[2] = entryAt(7)
    await expect(verify([known])).rejects.toMatchObject({ code: 'source_changed', where: { offset: 7 } })
  })

  test('is another source if the log has lost its end', async () => {
    const { verify, log } = await setUp()
    log.length = 3
    await expect(verify([known])).rejects.toMatchObject({ where: { offset: 8 } })
  })

  test('is read again if its end has a record of the same epoch, and always where topics have no id', async () => {
    const { verify, log } = await setUp()
    log[3] = entryAt(8)
    await expect(verify([known])).rejects.toMatchObject({ code: 'source_changed', where: { offset: 8 } })
    const { reads } = await setUp('')
    expect(await reads(known)).toEqual([5, 6, 7, 8])
  })

  test('is read again over new connections: another cluster may be behind them', async () => {
    const { reads, close } = await setUp()
    await close()
    expect((await reads(known)).slice(1)).toEqual([5, 6, 7, 8])
  })
})

test('a log that goes on after the last record without it has lost records', async () => {
  const { verify } = topic(() => [entryAt(5)])
  await expect(verify([lastAt(4)])).rejects.toMatchObject({ code: 'records_deleted', where: { offset: 4 } })
})

test('a log that ends before the last record is another source', async () => {
  const { verify, slept } = topic(() => [])
  await expect(verify([lastAt(6)])).rejects.toMatchObject({ code: 'source_changed', where: { offset: 6 } })
  expect(slept).toEqual(Array.from({ length: KNOWN_READS - 1 }, () => KNOWN_RETRY_MS))
})

test('a new leader that says for a moment that the log ends before the last record has no other source', async () => {
  let reads = 0
  const { verify, slept } = topic(() => (++reads < 3 ? [] : [entryAt(6)]))
  await verify([lastAt(6)])
  expect(slept).toHaveLength(2)
})

test('while Kafka does not answer, its error is passed on, and the next attempt has new connections', async () => {
  const away = new kafkajs.KafkaJSConnectionError('away')
  let isAway = true
  const { verify, told } = topic(() => (isAway ? away : sixRecords))
  await expect(verify([lastAt(5)])).rejects.toBe(away)
  isAway = false
  await verify([lastAt(5)])
  expect(told).toEqual(['open t', 'id: 0 at 5', 'abort', 'disconnect', 'open t', 'id: 0 at 5'])
})
