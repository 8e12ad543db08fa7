import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import kafkajs, { type Kafka } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import type { Batch } from '../../../../core/ledger/event/decode.ts'
import { undecodableBatchOf } from '../../../../core/ledger/event/decode.ts'
import type { EntryKind } from '../../../../core/log/batch/record-batch.ts'
import { consume } from '../../../../core/log/follow/consume.ts'
import { encodeHeaders } from '../../../../core/log/kafka/encoded-headers.ts'
import type { FetchedBytes } from '../../../../core/log/kafka/patch-fetch.ts'
import {
  CHANGED_BATCH_READS,
  FETCH_PARTITION_BYTES,
  FETCH_REST_BYTES,
  FETCH_REST_MS,
  UNPACK_WAIT_MS,
} from '../../../../core/log/limits.ts'
import { BATCH_BYTES_MAX } from '../../../../schemas/limits.ts'
import { record } from '../../../projector/records.ts'
import { batchBytes, batchOfRecords, fetchedOf, payloadOf } from '../../../support/record-batches.ts'
import { eventually } from '../../../support/scope.ts'

const topic = 'commission.events'
type Listener = (event: { payload: unknown }) => void
type EachBatch = (payload: unknown) => Promise<void>

/** The consumer of kafkajs: records the calls it gets, and emits the events that the test wants. */
const setUp = async (failing?: 'connect' | 'run') => {
  const told: unknown[] = []
  const heard: (readonly [string, ...unknown[]])[] = []
  const rests: number[] = []
  const unpacked: number[] = []
  const listeners = new Map<string, Listener>()
  let eachBatch: EachBatch = async () => undefined
  let refusal: Error | undefined
  const tell =
    (name: string) =>
    (...parameters: unknown[]): void => {
      if (refusal) throw refusal
      told.push([name, ...parameters])
    }
  const later = (name: string) => async (parameter: unknown) => {
    if (failing === name) throw new Error(`${name} failed`)
    if (name === 'run') eachBatch = (parameter as { eachBatch: EachBatch }).eachBatch
    told.push([name, ...(parameter === undefined ? [] : [parameter])])
  }
  const consumer = {
    events: { GROUP_JOIN: 'join', CRASH: 'crash', REBALANCING: 'rebalancing' },
    on: (event: string, listener: Listener) => listeners.set(event, listener),
    ...Object.fromEntries(['pause', 'resume', 'seek'].map(name => [name, tell(name)])),
    ...Object.fromEntries(
      ['connect', 'subscribe', 'run', 'disconnect', 'commitOffsets'].map(name => [name, later(name)]),
    ),
  }
  const kafka = {
    consumer: (options: unknown) => {
      told.push(['consumer', options])
      return consumer
    },
  } as unknown as Kafka
  const consuming = consume(
    kafka,
    { topic, partitions: 2 },
    'a-group',
    { prefix: 'test', elasticsearch: null },
    {
      onAssigned: partitions => heard.push(['assigned', partitions]),
      onBatch: (partition, batch) => heard.push(['batch', partition, batch]),
      sleep: async milliseconds => {
        rests.push(milliseconds)
        await sleep(milliseconds)
      },
      onUndecodable: (partition, batch) => heard.push(['undecodable', partition, batch]),
      onUnpacked: partition => unpacked.push(partition),
      onRebalancing: () => heard.push(['rebalancing']),
      onTrouble: name => heard.push(['trouble', name]),
      onStopped: error => heard.push(['stopped', error]),
    },
  )
  return {
    told,
    heard,
    rests,
    unpacked,
    consuming,
    say: (event: string, payload: unknown) => listeners.get(event)?.({ payload }),
    deliver: (payload: unknown) => eachBatch(payload),
    refuse: (error: Error) => {
      refusal = error
    },
  }
}
const started = async () => {
  const running = await setUp()
  const consumption = await running.consuming
  running.told.length = 0
  return { ...running, consumption }
}

describe('joining', () => {
  test('sets every option that matters: no automatic commit, resolve or topic creation, and only committed records', async () => {
    const { told, consuming } = await setUp()
    await consuming
    expect(told).toEqual([
      [
        'consumer',
        expect.objectContaining({
          groupId: 'a-group',
          allowAutoTopicCreation: false,
          readUncommitted: false,
          maxWaitTimeInMs: expect.any(Number),
          sessionTimeout: expect.any(Number),
          heartbeatInterval: expect.any(Number),
          rebalanceTimeout: expect.any(Number),
          maxBytes: expect.any(Number),
          maxBytesPerPartition: expect.any(Number),
        }),
      ],
      ['connect'],
      ['subscribe', { topics: [topic], fromBeginning: true }],
      [
        'run',
        {
          autoCommit: false,
          eachBatchAutoResolve: false,
          partitionsConsumedConcurrently: 2,
          eachBatch: expect.any(Function),
        },
      ],
    ])
  })

  test.each(['connect', 'run'] as const)('that fails at %s disconnects', async step => {
    const { told, consuming } = await setUp(step)
    await expect(consuming).rejects.toThrow(`${step} failed`)
    expect(told.at(-1)).toEqual(['disconnect'])
  })

  test('pauses every partition within the event itself, before it announces the assignment', async () => {
    const { say, told, heard } = await started()
    say('join', { memberAssignment: { [topic]: [1, 4] } })
    expect(told).toEqual([['pause', [{ topic, partitions: [1, 4] }]]])
    expect(heard).toEqual([['assigned', [1, 4]]])
  })

  test('without a partition announces an empty assignment', async () => {
    const { say, heard } = await started()
    say('join', { memberAssignment: {} })
    expect(heard).toEqual([['assigned', []]])
  })
})

describe('a batch', () => {
  const parts = { key: 'org_1', value: '{}', timestamp: 1_770_000_000_000 }
  const reading = async () => {
    const running = await started()
    running.say('join', { memberAssignment: { [topic]: [2] } })
    running.consumption.resume(2)
    running.told.length = 0
    running.heard.length = 0
    return running
  }
  const deliverBytes = async ({ deliver }: Awaited<ReturnType<typeof started>>, fetched: FetchedBytes) => {
    const resolved: string[] = []
    const batch = { fetchedOffset: '5', partition: 2, rawMessages: [{ offset: '9', fetched }] }
    await deliver({ batch, resolveOffset: (offset: string) => resolved.push(offset) })
    return resolved
  }
  const entriesOf = (kinds: readonly EntryKind[], from = 5) =>
    kinds.map((kind, index) => ({ ...record({ ...parts, offset: from + index }), kind }))

  test('is passed on with its fetch offset and the end after its last raw record', async () => {
    const running = await reading()
    const headers = encodeHeaders([
      ['ce_id', Buffer.from('1')],
      ['twice', Buffer.from('a')],
      ['none', null],
      ['twice', null],
      ['twice', Buffer.from('b')],
    ])
    const entries = entriesOf(['record', 'aborted', 'record', 'control', 'control'])
    const fetched = fetchedOf(entries.map(entry => (entry.offset === 7 ? { ...entry, headers } : entry)))
    expect(await deliverBytes(running, fetched)).toEqual(['9'])
    const records = [record({ ...parts, offset: 5 }), { ...record({ ...parts, offset: 7 }), headers }]
    expect(running.heard).toEqual([['batch', 2, { from: 5, end: 10, records, appended: 'transaction', epoch: 0 }]])
  })

  test('has the time that the broker gave it, unless it is part of a transaction', async () => {
    const running = await reading()
    const options = { appended: true, max: 1_770_000_000_500 }
    const bytes = batchOfRecords(5, entriesOf(['record', 'record']), options)
    await deliverBytes(running, { bytes, aborted: [] })
    const records = [5, 6].map(offset => record({ ...parts, offset, timestamp: options.max }))
    const appended = { offset: 6, time: options.max }
    expect(running.heard).toEqual([['batch', 2, { from: 5, end: 7, records, appended, epoch: 0 }]])
  })

  test('with few bytes is followed by a pause, so that single records arrive in groups; a large one is not', async () => {
    const running = await reading()
    await deliverBytes(running, fetchedOf(entriesOf(['record'])))
    expect(running.rests).toEqual([UNPACK_WAIT_MS, FETCH_REST_MS])
    running.rests.length = 0
    const [entry] = entriesOf(['record'])
    await deliverBytes(running, fetchedOf(entry ? [{ ...entry, value: Buffer.alloc(FETCH_REST_BYTES) }] : []))
    expect(running.rests).toEqual([UNPACK_WAIT_MS])
  })

  test('with only control or aborted records is passed on without records', async () => {
    const running = await reading()
    expect(await deliverBytes(running, fetchedOf(entriesOf(['aborted', 'aborted', 'control', 'control'])))).toEqual([
      '8',
    ])
    expect(running.heard).toEqual([['batch', 2, { from: 5, end: 9, records: [], appended: 'transaction', epoch: 0 }]])
  })

  test.each([
    ['starts after its fetch offset', [[7, 1]], { end: 5, missing: 5 }],
    ['lacks an offset between two batches', [[5, 2], [8, 1]], { end: 7, missing: 7 }], // biome-ignore format: one line
    ['has no offset from its fetch offset on', [[3, 2]], { end: 5, missing: 5 }],
  ] as const)('that %s reports the first missing offset', async (_, batches, expected) => {
    const running = await reading()
    const bytes = batches.map(([first, count]) => batchOfRecords(first, entriesOf(Array(count).fill('record'), first)))
    await deliverBytes(running, { bytes: Buffer.concat(bytes), aborted: [] })
    expect(running.heard).toMatchObject([['batch', 2, { from: 5, ...expected }]])
  })

  test('is passed on in parts, and the last part may end with the last record', async () => {
    const running = await reading()
    const large = entriesOf(['record', 'record', 'record']).map(one => ({
      ...one,
      value: Buffer.alloc(FETCH_PARTITION_BYTES),
    }))
    await deliverBytes(running, fetchedOf(large))
    expect(running.heard.map(([, , batch]) => batch)).toMatchObject([5, 6, 7].map(from => ({ from, end: from + 1 })))
    expect(running.heard.some(([, , batch]) => 'missing' in (batch as Batch))).toBe(false)
  })

  test('that takes long is read once, although it is sought again, and those before it do not wait for it', async () => {
    const running = await reading()
    const [before] = entriesOf(['record'])
    const zeros = gzipSync(Buffer.alloc(BATCH_BYTES_MAX + 1))
    const bytes = Buffer.concat([
      batchOfRecords(5, before ? [before] : []),
      batchBytes({ first: 6, count: 2, codec: 1, payload: zeros }),
    ])
    const passed = async () => running.heard.filter(([what]) => what === 'batch').map(([, , batch]) => batch)
    for (let round = 1; round <= 3; round++) {
      await deliverBytes(running, { bytes, aborted: [] })
      await eventually(async () => expect(await passed()).toMatchObject(Array(round).fill({ from: 5, end: 6 })))
      running.consumption.seek(2, 5)
    }
    await deliverBytes(running, { bytes, aborted: [] })
    await eventually(async () => expect(running.unpacked.length).toBeGreaterThan(10), { within: 60_000 })
    expect((await passed()).at(-1)).toMatchObject({ end: 6 })
    await eventually(async () => expect((await passed()).at(-1)).toMatchObject({ end: 8 }), { within: 60_000 })
    // A watchdog sees each part once, however often the batch is sought.
    expect(new Set(running.unpacked)).toEqual(new Set([2]))
    expect(running.unpacked.length).toBeLessThan((1.2 * BATCH_BYTES_MAX) / 1024 / 1024)
  })

  test.each([
    ['cannot be read is passed over, although it states a wrong number of records', 2, { end: 7 }],
    ['was compacted reports the first missing offset', 1, { end: 6, missing: 6 }],
  ] as const)('of an aborted transaction that %s', async (_, records, expected) => {
    const running = await reading()
    const payload = payloadOf(entriesOf(Array(records).fill('aborted')))
    const bytes = batchBytes({ first: 5, payload, count: 1, distance: 1, isTransactional: true, producerId: 7 })
    await deliverBytes(running, { bytes, aborted: [{ producerId: '7', firstOffset: 5 }] })
    const heard = { from: 5, records: [], appended: 'transaction', epoch: 0, ...expected }
    expect(running.heard).toEqual([['batch', 2, heard]])
  })

  test('that cannot be read is told of once, and its offsets come as the records that stand for them', async () => {
    const running = await reading()
    const [good] = entriesOf(['record'], 8)
    const bytes = Buffer.concat([
      batchBytes({ first: 4, count: 4, codec: 4, payload: Buffer.from('no zstd'), max: 17 }),
      batchOfRecords(8, good ? [good] : []),
    ])
    expect(await deliverBytes(running, { bytes, aborted: [] })).toEqual(['8'])
    const batch = { first: 4, last: 7, codec: 4, reason: 'not_decompressed' }
    expect(running.heard[0]).toEqual(['undecodable', 2, batch])
    const [, , passed] = running.heard[1] as [string, number, Batch]
    expect(passed).toMatchObject({ from: 5, end: 9 })
    expect(passed.records.map(one => [one.offset, one.timestamp, undecodableBatchOf(one)])).toEqual([
      ...[5, 6, 7].map(offset => [offset, 17, batch]),
      [8, parts.timestamp, undefined],
    ])
    await deliverBytes(running, { bytes, aborted: [] })
    expect(running.heard.filter(([what]) => what === 'undecodable')).toHaveLength(1)
  })

  test('that cannot be read is not told of if it was aborted', async () => {
    const running = await reading()
    const of = { first: 5, count: 2, isTransactional: true, producerId: 7 }
    const bytes = batchBytes({ ...of, codec: 4, payload: Buffer.from('no zstd') })
    await deliverBytes(running, { bytes, aborted: [{ producerId: '7', firstOffset: 5 }] })
    expect(running.heard).toEqual([['batch', 2, { from: 5, end: 7, records: [], appended: 'transaction', epoch: 0 }]])
  })

  test('whose checksum is wrong is fetched again, and stops the projector if it stays so', async () => {
    const running = await reading()
    const good = batchOfRecords(5, entriesOf(['record']))
    const bytes = batchOfRecords(6, entriesOf(['record'], 6))
    bytes.writeUInt8(bytes.readUInt8(70) ^ 1, 70)
    const fetched = { bytes: Buffer.concat([good, bytes]), aborted: [] }
    for (let reads = 1; reads < CHANGED_BATCH_READS; reads++) await deliverBytes(running, fetched)
    expect(running.told).toEqual(Array(CHANGED_BATCH_READS - 1).fill(['seek', { topic, partition: 2, offset: '6' }]))
    expect(running.heard.every(([what]) => what === 'batch')).toBe(true)
    await deliverBytes(running, fetched)
    expect(running.heard.at(-1)).toEqual(['stopped', expect.objectContaining({ code: 'batch_changed' })])
    expect(running.heard.at(-1)?.[1]).toMatchObject({ where: { topic, partition: 2, offset: 6 } })
  })

  test('of the format before headers stops the projector with a reason', async () => {
    const running = await reading()
    const bytes = Buffer.alloc(80)
    bytes.writeInt8(1, 16)
    await deliverBytes(running, { bytes, aborted: [] })
    expect(running.heard).toEqual([['stopped', expect.objectContaining({ code: 'topic_unsuitable' })]])
  })

  test('for which the flow has no room leaves the other partitions alone, and goes on when there is room', async () => {
    const running = await reading()
    running.consumption.pause(2)
    running.told.length = 0
    await deliverBytes(running, fetchedOf(entriesOf(['record'])))
    expect([running.heard, running.told]).toEqual([[], [['pause', [{ topic, partitions: [2] }]]]])
    running.consumption.resume(2)
    await eventually(() => expect(running.told.at(-1)).toEqual(['resume', [{ topic, partitions: [2] }]]))
    expect(running.heard).toMatchObject([['batch', 2, { from: 5, end: 6 }]])
  })

  test('that waits is dropped by a seek, and by a new assignment', async () => {
    for (const drop of ['seek', 'join'] as const) {
      const running = await reading()
      running.consumption.pause(2)
      await deliverBytes(running, fetchedOf(entriesOf(['record'])))
      if (drop === 'seek') running.consumption.seek(2, 4)
      else running.say('join', { memberAssignment: { [topic]: [2] } })
      running.consumption.resume(2)
      await new Promise(setImmediate)
      expect(running.heard.filter(([what]) => what === 'batch')).toEqual([])
    }
  })
})

describe('the client', () => {
  test('is called with partitions and offsets', async () => {
    const { consumption, told } = await started()
    consumption.seek(3, 42)
    consumption.pause(3)
    consumption.resume(3)
    await consumption.commit(3, 43)
    await consumption.stop()
    expect(told).toEqual([
      ['seek', { topic, partition: 3, offset: '42' }],
      ['pause', [{ topic, partitions: [3] }]],
      ['resume', [{ topic, partitions: [3] }]],
      ['commitOffsets', [{ topic, partition: 3, offset: '43' }]],
      ['disconnect'],
    ])
  })

  test('may refuse outside the group: the next assignment positions every partition again', async () => {
    const { consumption, refuse } = await started()
    refuse(new kafkajs.KafkaJSNonRetriableError('Consumer group was not initialized'))
    consumption.seek(0, 1)
    consumption.pause(0)
    consumption.resume(0)
    refuse(new TypeError('a defect'))
    expect(() => consumption.seek(0, 1)).toThrow('a defect')
  })

  test('reports a rebalance', async () => {
    const { say, heard } = await started()
    say('rebalancing', {})
    expect(heard).toEqual([['rebalancing']])
  })

  test('that crashes and restarts is in trouble; one that does not restart has stopped', async () => {
    const { say, heard } = await started()
    say('crash', { error: new kafkajs.KafkaJSConnectionError('connect 10.0.0.1'), restart: true })
    say('crash', { error: new TypeError('quotes'), restart: true })
    say('crash', { error: new Error('no way'), restart: false })
    for (const type of ['GROUP_AUTHORIZATION_FAILED', 'GROUP_MAX_SIZE_REACHED', 'INVALID_SESSION_TIMEOUT']) {
      const error = new kafkajs.KafkaJSProtocolError({ type, code: 30, retriable: false, message: '' } as never)
      say('crash', { error, restart: false })
    }
    expect(heard).toEqual([
      ['trouble', 'KafkaJSConnectionError'],
      ['trouble', 'Error'],
      ['stopped', expect.objectContaining({ code: 'consumer_stopped' })],
      ['stopped', expect.objectContaining({ code: 'access_refused' })],
      ['stopped', expect.objectContaining({ message: expect.stringMatching(/, GROUP_MAX_SIZE_REACHED$/) })],
      ['stopped', expect.objectContaining({ message: expect.stringMatching(/_TIMEOUT: group\.min.+ permit 10000$/) })],
    ])
  })
})
