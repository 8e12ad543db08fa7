/**
 * The requests of archives and restores to the simulated Kafka, with the interface of
 * `core/log/records/open-cluster.ts`: fetches without a group, appends at known offsets, transactions that are
 * aborted. A transactional id has one epoch: a later process takes it over, and requests of the earlier one are
 * refused. Not simulated: brokers that refuse a sequence, and transactions that time out.
 */
import kafkajs from 'kafkajs'
import type { RawRecord } from '../../core/ledger/event/decode.ts'
import { NO_HEADERS } from '../../core/log/kafka/encoded-headers.ts'
import { loadKafkajs } from '../../core/log/kafka/load-kafkajs.ts'
import { topicOfRack } from '../../core/log/kafka/patch-topic-ids.ts'
import type { LogBroker, LogCluster } from '../../core/log/records/open-cluster.ts'
import { recordsIn } from '../support/record-batches.ts'
import type { Broker } from './broker.ts'
import { createCall } from './call.ts'
import type { SimulatedProcess } from './clock.ts'
import type { Faults } from './faults.ts'
import { messagesOf } from './fetch.ts'
import type { Entry } from './history.ts'

/** A fetch that is answered later, if the process is alive. */
export const openSimulatedCluster = (
  host: SimulatedProcess,
  broker: Broker,
  faults: Faults,
  topic: string,
): LogCluster => {
  const call = createCall(host, faults)
  const partitionsNow = () => broker.topic(topic).partitions
  const step = <Result>(work: () => Result): Promise<Result> => {
    host.onStep()
    return host.isDead ? new Promise(() => undefined) : call(() => attempt(work)).then(settle)
  }
  const fetch: LogBroker['fetch'] = ({ topics, rackId }) =>
    step(() => {
      broker.assertFetched(topic, topicOfRack(rackId))
      const { partition = 0, fetchOffset } = topics[0]?.partitions[0] ?? {}
      const { end } = partitionsNow()[partition] ?? { end: 0 }
      const from = Number(fetchOffset)
      if (from > end) throw protocolError('OFFSET_OUT_OF_RANGE')
      // It does not know yet how far the other copies are.
      if (faults.happens('leaderBehind'))
        return { responses: [{ partitions: [{ lastStableOffset: `${from}`, messages: [] }] }] }
      const count = 1 + faults.random.below(faults.random.pick([2, 5, 40]))
      const entries = partitionsNow()[partition]?.read(from, count) ?? []
      return { responses: [{ partitions: [{ lastStableOffset: `${end}`, messages: messagesOf(entries) }] }] }
    })
  const listOffsets: LogBroker['listOffsets'] = ({ topics, isolationLevel }) =>
    step(() => {
      const { partition = 0 } = topics[0]?.partitions[0] ?? {}
      const { end = 0, entries = [] } = partitionsNow()[partition] ?? {}
      return { responses: [{ partitions: [{ partition, offset: `${isolationLevel === 1 ? end : entries.length}` }] }] }
    })
  const producers = broker.producersOf(topic)
  const initProducerId: LogBroker['initProducerId'] = ({ transactionalId }) =>
    step(() => {
      if (transactionalId === null) return { producerId: `${producers.next++}`, producerEpoch: 0 }
      const before = producers.transactions.get(transactionalId)
      if (before) end(before.open)
      const made = {
        id: before?.id ?? `${producers.next++}`,
        epoch: (before?.epoch ?? -1) + 1,
        open: new Set<number>(),
      }
      producers.transactions.set(transactionalId, made)
      return { producerId: made.id, producerEpoch: made.epoch }
    })
  const ours = (transactionalId: string, producerEpoch: number) => {
    const found = producers.transactions.get(transactionalId)
    if (found?.epoch !== producerEpoch) throw protocolError('INVALID_PRODUCER_EPOCH')
    return found
  }
  /** Appends the control record that ends the transaction. */
  const end = (open: Set<number>): void => {
    for (const partition of open) append(partition, 'control', { key: null, value: null, headers: NO_HEADERS }, 0)
    open.clear()
    settleEnds()
  }
  const isOpen = (partition: number): boolean =>
    [...producers.transactions.values()].some(({ open }) => open.has(partition))
  /** The last stable offset moves unless a transaction is open. */
  const settleEnds = (): void => {
    for (const [number, partition] of partitionsNow().entries()) {
      if (!isOpen(number)) partition.end = partition.entries.length
    }
  }
  const append = (number: number, kind: Entry['kind'], record: Appended, timestamp: number): number => {
    const entries = partitionsNow()[number]?.entries ?? []
    const offset = entries.length
    const time = broker.timestampTypeOf(topic) === 'CreateTime' ? timestamp : host.clock.now()
    const { key, value, headers } = record
    const message = { offset: `${offset}`, timestamp: `${time}`, key, value, headers }
    entries.push({
      offset,
      kind,
      message,
      published: { stream: 'events', partition: number, offset, key, headers: [], value },
    })
    return offset
  }
  const produce = (bytes: Produced): Promise<unknown> =>
    step(() => {
      const { transactionalId, partition, records, producerEpoch } = bytes
      const transaction = transactionalId === null ? undefined : ours(transactionalId, producerEpoch)
      const kind = transaction === undefined ? 'record' : 'aborted'
      const taken = records.every(({ timestamp }) => broker.takesTime(topic, timestamp, host.clock.now()))
      if (broker.timestampTypeOf(topic) === 'CreateTime' && !taken) throw protocolError('INVALID_TIMESTAMP')
      const offsets = records.map(record => append(partition, kind, record, record.timestamp))
      settleEnds()
      const logAppendTime = broker.timestampTypeOf(topic) === 'CreateTime' ? '-1' : `${host.clock.now()}`
      return { topics: [{ partitions: [{ baseOffset: `${offsets[0]}`, logAppendTime }] }] }
    })
  const one: LogBroker = {
    fetch,
    listOffsets,
    initProducerId,
    addPartitionsToTxn: ({ transactionalId, producerEpoch, topics }) =>
      step(() => {
        const { open } = ours(transactionalId, producerEpoch)
        for (const { partitions } of topics) for (const partition of partitions) open.add(partition)
      }),
    endTxn: ({ transactionalId, producerEpoch }) => step(() => end(ours(transactionalId, producerEpoch).open)),
    connectionPool: {
      send: async ({ request }) => produce(await decodeProduce(await request.encode())) as never,
    },
  }
  return {
    onLeader: (_, ask) => ask(one),
    onCoordinator: (_, ask) => ask(one),
    logEnds: partitions =>
      step(() => new Map(partitions.map(number => [number, partitionsNow()[number]?.entries.length ?? 0]))),
    disconnect: async () => undefined,
  }
}

/** An error at the broker is an answer, not a failure of the connection. */
const attempt = <Result>(work: () => Result): { readonly result: Result } | { readonly error: unknown } => {
  try {
    return { result: work() }
  } catch (error) {
    return { error }
  }
}
const settle = <Result>(answer: { readonly result: Result } | { readonly error: unknown }): Result => {
  if ('error' in answer) throw answer.error
  return answer.result
}

const protocolError = (type: string): Error =>
  Object.assign(new kafkajs.KafkaJSError(type, { retriable: false }), { type })

const PRODUCER_EPOCH_AT = 51

type Appended = Pick<RawRecord, 'key' | 'value' | 'headers'>
type Produced = {
  readonly transactionalId: string | null
  readonly partition: number
  readonly producerEpoch: number
  readonly records: readonly (Appended & { readonly timestamp: number })[]
}
type Decoder = {
  readString(): string | null
  readInt16(): number
  readInt32(): number
  readBytes(length?: number): Buffer | null
}

/** Reads a request as `core/log/records/append-log.ts` encodes it. */
const decodeProduce = async (encoded: unknown): Promise<Produced> => {
  const NewDecoder = loadKafkajs<new (bytes: Buffer) => Decoder>('protocol/decoder')
  const decoder = new NewDecoder((encoded as { buffer: Buffer }).buffer)
  const transactionalId = decoder.readString()
  decoder.readInt16()
  decoder.readInt32()
  // One topic, one partition.
  decoder.readInt32()
  decoder.readString()
  decoder.readInt32()
  const partition = decoder.readInt32()
  const bytes = decoder.readBytes() ?? Buffer.alloc(0)
  const records = await recordsIn(bytes)
  return { transactionalId, partition, producerEpoch: bytes.readInt16BE(PRODUCER_EPOCH_AT), records }
}
