/** Brokers of a few lines answer in the bytes of Kafka's protocol: what a topic has at its ends, and who leads. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import kafkajs from 'kafkajs'
import { expect, type TestContext, test } from 'vitest'
import { partitionsOf } from '../../../../core/log/kafka/patch-partition-errors.ts'
import {
  COMPACT_NULL,
  compactArray,
  compactString,
  FlexibleReader,
  int8,
  int32,
  int64,
  NO_TAGS,
} from '../../../../core/log/kafka/protocol-request.ts'
import { kafkaConfig } from '../../../../core/log/kafka-config.ts'
import { LEADERS_ASKED_MS, LEADERS_TRUSTED_MS } from '../../../../core/log/limits.ts'
import { type LogBroker, openCluster } from '../../../../core/log/records/open-cluster.ts'
import { kafkaSettings, readSettings } from '../../../../core/runtime/settings.ts'

const [LIST_OFFSETS, METADATA, API_VERSIONS] = [2, 3, 18]
const FENCED_LEADER_EPOCH = 74
const TOPIC = 'events'
const WATERMARK = 7
const LOG_END = 8

type Broker = {
  /** The highest version of ListOffsets. */
  readonly offsetsMax?: number
  leader: number
  epoch: number
  /** Does not answer a request for metadata, or closes the connection. A frozen broker answers nothing. */
  metadata?: 'silent' | 'closes'
  /** The brokers that it names; all if absent. */
  named?: readonly number[]
  readonly isFrozen?: boolean
}
type Asked = { readonly broker: number; readonly replicaId: number; readonly isolationLevel: number }

const int16 = (value: number): Buffer => int32(value).subarray(2)
const list = (items: readonly Buffer[]): Buffer => Buffer.concat([int32(items.length), ...items])

const versions = ({ offsetsMax = 11 }: Broker): Buffer => {
  const each = Object.entries({ [LIST_OFFSETS]: offsetsMax, [METADATA]: 12, [API_VERSIONS]: 2 })
  const ranges = each.map(([key, max]) => Buffer.concat([int16(Number(key)), int16(0), int16(max)]))
  return Buffer.concat([int16(0), list(ranges), int32(0)])
}

const metadata = ({ leader, epoch, named }: Broker, ports: readonly number[]): Buffer => {
  const brokers = ports.flatMap((port, index) => {
    if (named?.includes(index + 1) === false) return []
    return [Buffer.concat([int32(index + 1), compactString('127.0.0.1'), int32(port), COMPACT_NULL, NO_TAGS])]
  })
  const all = compactArray(brokers.map((_, index) => int32(index + 1)))
  const partition = Buffer.concat([
    ...[int16(0), int32(0), int32(leader), int32(epoch)],
    ...[all, all, compactArray([]), NO_TAGS],
  ])
  const topic = [int16(0), compactString(TOPIC), Buffer.alloc(16, 1), int8(0), compactArray([partition]), int32(-1)]
  return Buffer.concat([
    ...[NO_TAGS, int32(0), compactArray(brokers), compactString('cluster'), int32(1)],
    ...[compactArray([Buffer.concat([...topic, NO_TAGS])]), int32(-1), NO_TAGS],
  ])
}

/** Kafka refuses another epoch. A follower answers the debugging consumer. */
const endOf = ({ epoch }: Broker, replicaId: number, currentEpoch: number) => {
  const error = currentEpoch === -1 || currentEpoch === epoch ? 0 : FENCED_LEADER_EPOCH
  return { error: int16(error), end: int64(replicaId === -2 ? LOG_END : WATERMARK) }
}

const offsets = (broker: Broker, version: number, body: Buffer, told: (asked: Omit<Asked, 'broker'>) => void) => {
  if (version < 6) {
    const replicaId = body.readInt32BE()
    told({ replicaId, isolationLevel: body.readInt8(4) })
    const { error, end } = endOf(broker, replicaId, -1)
    const partition = Buffer.concat([int32(0), error, int64(-1), end])
    return Buffer.concat([
      int32(0),
      list([Buffer.concat([int16(TOPIC.length), Buffer.from(TOPIC), list([partition])])]),
    ])
  }
  const reader = new FlexibleReader(body)
  const replicaId = reader.int32()
  told({ replicaId, isolationLevel: reader.bytes(1).readInt8() })
  const answers = reader.compactArray(() => {
    const topic = reader.compactString() ?? ''
    const partitions = reader.compactArray(() => {
      const [index, epoch] = [reader.int32(), reader.int32()]
      expect(reader.bytes(8).readBigInt64BE()).toBe(-1n)
      reader.tags()
      const { error, end } = endOf(broker, replicaId, epoch)
      return Buffer.concat([int32(index), error, int64(-1), end, int32(broker.epoch), NO_TAGS])
    })
    reader.tags()
    return Buffer.concat([compactString(topic), compactArray(partitions), NO_TAGS])
  })
  return Buffer.concat([NO_TAGS, int32(0), compactArray(answers), NO_TAGS])
}

/** Starts these brokers, with the ids 1, 2 and so on. Returns connections to them, and what they were asked. */
const clusterOf = async (t: TestContext, brokers: readonly Broker[]) => {
  const asked: Asked[] = []
  const clock = { now: 0, atOffsets: 0 }
  const ports: number[] = []
  const sockets: Socket[] = []
  const serve = (id: number, broker: Broker) =>
    createServer(socket => {
      sockets.push(socket)
      let read = Buffer.alloc(0)
      socket.on('error', () => undefined)
      socket.on('data', (bytes): void => {
        read = Buffer.concat([read, bytes])
        while (read.length >= 4 && read.length >= 4 + read.readInt32BE()) {
          const request = read.subarray(4, 4 + read.readInt32BE())
          read = read.subarray(4 + request.length)
          const [key, version] = [request.readInt16BE(), request.readInt16BE(2)]
          const body = request.subarray(10 + request.readInt16BE(8))
          if (broker.isFrozen || (key === METADATA && broker.metadata === 'silent')) continue
          if (key === METADATA && broker.metadata === 'closes') return void socket.destroy()
          const answer =
            key === LIST_OFFSETS
              ? offsets(broker, version, body, of => {
                  clock.now += clock.atOffsets
                  asked.push({ broker: id, ...of })
                })
              : key === METADATA
                ? metadata(broker, ports)
                : versions(broker)
          socket.write(Buffer.concat([int32(answer.length + 4), request.subarray(4, 8), answer]))
        }
      })
    })
  for (const [index, broker] of brokers.entries()) {
    const server = serve(index + 1, broker).listen(0, '127.0.0.1')
    await once(server, 'listening')
    ports.push((server.address() as AddressInfo).port)
    t.onTestFinished(() => void server.close())
  }
  const settings = readSettings(kafkaSettings, { KAFKA_BROKERS: ports.map(port => `127.0.0.1:${port}`).join() })
  const config = kafkaConfig(settings, 'test', () => Buffer.alloc(0), Date.now)
  const logger = new kafkajs.Kafka(config).logger()
  const cluster = await openCluster({ config, logger }, TOPIC, new AbortController().signal, () => clock.now)
  t.onTestFinished(async () => {
    // The client would wait for answers.
    for (const socket of sockets) socket.destroy()
    await cluster.disconnect()
  })
  return { cluster, asked, clock }
}

test('the end of a partition is that of the log of its leader, with records that nobody can read yet', async t => {
  const { cluster, asked } = await clusterOf(t, [{ leader: 1, epoch: 5 }])
  expect(await cluster.logEnds([0])).toEqual(new Map([[0, LOG_END]]))
  expect(asked).toEqual([{ broker: 1, replicaId: -2, isolationLevel: 0 }])
})

test('a broker before 2.8 is asked as by a consumer, with open transactions', async t => {
  const { cluster, asked } = await clusterOf(t, [{ offsetsMax: 5, leader: 1, epoch: 5 }])
  expect(await cluster.logEnds([0])).toEqual(new Map([[0, WATERMARK]]))
  expect(asked).toEqual([{ broker: 1, replicaId: -1, isolationLevel: 0 }])
})

test('a broker that leads no more does not tell an end, although any replica has a log', async t => {
  const broker = { leader: 1, epoch: 5 }
  const { cluster } = await clusterOf(t, [broker])
  await cluster.logEnds([0])
  broker.epoch = 6
  const refused = await cluster.logEnds([0]).catch((error: unknown) => error)
  expect(partitionsOf(refused)).toBe('events 0 (FENCED_LEADER_EPOCH)')
})

test('a leader that was replaced and cut off tells no end, as soon as most brokers are asked who leads', async t => {
  const [first, ...others] = [1, 2, 3].map((): Broker => ({ leader: 1, epoch: 5 }))
  const { cluster, asked, clock } = await clusterOf(t, [first ?? expect.fail(), ...others])
  await cluster.logEnds([0])
  for (const other of others) Object.assign(other, { leader: 2, epoch: 6 })
  clock.now = LEADERS_ASKED_MS - 1
  await cluster.logEnds([0])
  clock.now = LEADERS_ASKED_MS
  await cluster.logEnds([0])
  expect(asked.map(({ broker }) => broker)).toEqual([1, 1, 2])
})

const askedFor = { topic: TOPIC, partitions: [{ partition: 0, timestamp: -1 }] }
const ask = (leader: LogBroker) => leader.listOffsets({ replicaId: -1, isolationLevel: 1, topics: [askedFor] })
const outOfRange = Object.assign(new kafkajs.KafkaJSError('', { retriable: false }), { type: 'OFFSET_OUT_OF_RANGE' })

test('a partition is read from the leader that most brokers name, although the client still knows the one before', async t => {
  const [first, ...others] = [1, 2, 3].map((): Broker => ({ leader: 1, epoch: 5 }))
  const { cluster, asked } = await clusterOf(t, [first ?? expect.fail(), ...others])
  await cluster.onLeader(0, ask)
  for (const other of others) Object.assign(other, { leader: 2, epoch: 6 })
  await cluster.logEnds([0])
  await cluster.onLeader(0, ask)
  expect(asked.map(({ broker }) => broker)).toEqual([1, 2, 2])
})

test('an offset is out of range only if the leader that most brokers name says so', async t => {
  const [first, ...others] = [1, 2, 3].map((): Broker => ({ leader: 1, epoch: 5 }))
  const { cluster, asked } = await clusterOf(t, [first ?? expect.fail(), ...others])
  for (const other of others) Object.assign(other, { leader: 2, epoch: 6 })
  const missingAt = (brokers: readonly number[]) =>
    cluster.onLeader(0, async leader => {
      await ask(leader)
      if (brokers.includes(asked.at(-1)?.broker ?? 0)) throw outOfRange
    })
  await missingAt([1])
  expect(asked.map(({ broker }) => broker)).toEqual([1, 2])
  await expect(missingAt([1, 2])).rejects.toBe(outOfRange)
})

test('a broker that does not answer is not waited for', async t => {
  const brokers = [1, 2, 3].map((): Broker => ({ leader: 1, epoch: 5 }))
  const { cluster } = await clusterOf(t, brokers)
  Object.assign(brokers[2] ?? {}, { metadata: 'silent' })
  expect(await cluster.logEnds([0])).toEqual(new Map([[0, LOG_END]]))
})

test('no end is known while most brokers do not say who leads, nor after the connections were closed', async t => {
  const brokers = [1, 2, 3].map((): Broker => ({ leader: 1, epoch: 5 }))
  const { cluster } = await clusterOf(t, brokers)
  for (const broker of brokers.slice(1)) broker.metadata = 'closes'
  await expect(cluster.logEnds([0])).rejects.toThrow(kafkajs.KafkaJSError)
  await cluster.disconnect()
  await expect(cluster.logEnds([0])).rejects.toThrow('no broker is known')
})

test('an end that comes long after the brokers said who leads does not count', async t => {
  const { cluster, clock } = await clusterOf(t, [{ leader: 1, epoch: 5 }])
  clock.atOffsets = LEADERS_TRUSTED_MS + 1
  await expect(cluster.logEnds([0])).rejects.toThrow('too late to know who leads')
})

test('the leader of a partition counts, also if brokers do not know its epoch', async t => {
  const { cluster } = await clusterOf(t, [{ leader: 1, epoch: -1 }])
  expect(await cluster.logEnds([0])).toEqual(new Map([[0, LOG_END]]))
})

test('a broker that was away counts again after it has come back', async t => {
  const brokers = [1, 2, 3].map((): Broker => ({ leader: 1, epoch: 5, named: [1, 2] }))
  const { cluster, clock } = await clusterOf(t, brokers)
  for (const broker of brokers) broker.named = [1, 2, 3]
  await cluster.logEnds([0])
  Object.assign(brokers[1] ?? {}, { metadata: 'silent' })
  clock.now = LEADERS_ASKED_MS
  expect(await cluster.logEnds([0])).toEqual(new Map([[0, LOG_END]]))
})

test('connections are opened while the first broker of the list stands still', async t => {
  const frozen: Broker = { leader: 2, epoch: 5, isFrozen: true }
  const { cluster } = await clusterOf(t, [frozen, { leader: 2, epoch: 5 }, { leader: 2, epoch: 5 }])
  expect(await cluster.logEnds([0])).toEqual(new Map([[0, LOG_END]]))
})
