import kafkajs, { type Kafka } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import type { Batch } from '../../../projector/flow/queue.ts'
import { encodeHeaders } from '../../../projector/kafka/patch-headers.ts'
import { FETCH_REST_BYTES, FETCH_REST_MS } from '../../../projector/limits.ts'
import { consume } from '../../../projector/stream/consume.ts'
import { record } from '../records.ts'

const topic = 'commission.events'
type Listener = (event: { payload: unknown }) => void
type EachBatch = (payload: unknown) => Promise<void>

/** The consumer of kafkajs: records the calls it gets, and emits the events that the test wants. */
const setUp = async (failing?: 'connect' | 'run') => {
  const told: unknown[] = []
  const heard: unknown[] = []
  const rests: number[] = []
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
      sleep: async milliseconds => void rests.push(milliseconds),
      onRebalancing: () => heard.push(['rebalancing']),
      onTrouble: name => heard.push(['trouble', name]),
      onStopped: error => heard.push(['stopped', error]),
    },
  )
  return {
    told,
    heard,
    rests,
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
  const message = (offset: number, headers?: unknown) => ({
    offset: String(offset),
    timestamp: '1770000000000',
    key: Buffer.from('org_1'),
    value: Buffer.from('{}'),
    headers,
  })
  const offsets = (...all: number[]) => all.map(offset => ({ offset: String(offset) }))
  /** `all` are the offsets of all records, including those that are not delivered. */
  const deliverTo = async ({ deliver }: Awaited<ReturnType<typeof started>>, messages: unknown[], all: unknown[]) => {
    const resolved: string[] = []
    const batch = { fetchedOffset: '5', partition: 2, messages, messagesWithinOffset: all }
    await deliver({ batch, resolveOffset: (offset: string) => resolved.push(offset) })
    return resolved
  }

  test('is passed on with its fetch offset and the end after its last raw record', async () => {
    const running = await started()
    const headers = encodeHeaders([
      ['ce_id', Buffer.from('1')],
      ['twice', Buffer.from('a')],
      ['none', null],
      ['twice', null],
      ['twice', Buffer.from('b')],
    ])
    expect(await deliverTo(running, [message(5), message(7, headers)], offsets(5, 6, 7, 8, 9))).toEqual(['9'])
    const parts = { key: 'org_1', value: '{}', timestamp: 1_770_000_000_000 }
    const expected: Batch = {
      from: 5,
      end: 10,
      records: [
        record({ ...parts, offset: 5 }),
        record({
          ...parts,
          offset: 7,
          headers: [
            ['ce_id', '1'],
            ['twice', 'a'],
            ['none', null],
            ['twice', null],
            ['twice', 'b'],
          ],
        }),
      ],
    }
    expect(running.heard).toEqual([['batch', 2, expected]])
  })

  test('with few bytes is followed by a pause, so that single records arrive in groups; a large one is not', async () => {
    const running = await started()
    await deliverTo(running, [message(5)], offsets(5))
    expect(running.rests).toEqual([FETCH_REST_MS])
    await deliverTo(running, [{ ...message(5), value: Buffer.alloc(FETCH_REST_BYTES) }], offsets(5))
    expect(running.rests).toEqual([FETCH_REST_MS])
  })

  test('with only control or aborted records is passed on without records', async () => {
    const running = await started()
    expect(await deliverTo(running, [], offsets(5, 6, 7, 8))).toEqual(['8'])
    expect(running.heard).toEqual([['batch', 2, { from: 5, end: 9, records: [] }]])
  })

  test.each([
    ['starts after its fetch offset', offsets(7, 8), { end: 9, missing: 5 }],
    ['lacks an offset among its records', offsets(5, 6, 8), { end: 9, missing: 7 }],
    ['has no offset from its fetch offset on', [], { end: 5, missing: 5 }],
    ['has an offset twice', offsets(5, 6, 6), { end: 7, missing: 7 }],
  ])('that %s reports the first missing offset', async (_, all, expected) => {
    const running = await started()
    await deliverTo(running, [], all)
    expect(running.heard).toEqual([['batch', 2, { from: 5, records: [], ...expected }]])
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
    const type = 'GROUP_AUTHORIZATION_FAILED'
    const refused = new kafkajs.KafkaJSProtocolError({ type, code: 30, retriable: false, message: '' } as never)
    say('crash', { error: refused, restart: false })
    expect(heard).toEqual([
      ['trouble', 'KafkaJSConnectionError'],
      ['trouble', 'Error'],
      ['stopped', expect.objectContaining({ code: 'consumer_stopped' })],
      ['stopped', expect.objectContaining({ code: 'access_refused' })],
    ])
  })
})
