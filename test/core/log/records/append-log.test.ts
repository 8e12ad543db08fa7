/** Appends a hole to a log in memory whose broker refuses some transactions. */
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { appendLog } from '../../../../core/log/records/append-log.ts'
import type { LogBroker, LogCluster } from '../../../../core/log/records/open-cluster.ts'

const TRANSACTIONS_MAX = 30
const atOnce = async (): Promise<void> => undefined

/**
 * The cluster of one partition, and its end. The first transactions fail. With an open transaction of another producer,
 * readers see no later offset.
 */
const clusterWith = (failures: number, isBlocked = false) => {
  const seen = { end: 0, reads: 0, begun: 0 }
  let isOpen = false
  const endTransaction = (): void => {
    // A transaction that ends leaves a control record.
    if (isOpen) seen.end++
    isOpen = false
  }
  const broker: Pick<LogBroker, 'listOffsets' | 'initProducerId' | 'addPartitionsToTxn' | 'endTxn'> = {
    listOffsets: async () => {
      seen.reads++
      return { responses: [{ partitions: [{ partition: 0, offset: String(isBlocked ? 0 : seen.end) }] }] }
    },
    initProducerId: async () => {
      endTransaction()
      return { producerId: '1', producerEpoch: 0 }
    },
    addPartitionsToTxn: async () => {
      isOpen = true
      if (seen.begun === TRANSACTIONS_MAX) throw new Error('it begins more and more transactions')
      if (seen.begun++ < failures) throw new kafkajs.KafkaJSError('the answer is lost')
    },
    endTxn: async () => endTransaction(),
  }
  const ask: LogCluster['onCoordinator'] = (_, ask) => ask(broker as LogBroker)
  const cluster: LogCluster = {
    onLeader: (_, ask) => ask(broker as LogBroker),
    onCoordinator: ask,
    logEnds: () => Promise.reject(new Error('not used')),
    disconnect: async () => undefined,
  }
  return { seen, cluster }
}

test('a transaction that fails is not waited for: the next one fills the rest of the hole', async () => {
  const { seen, cluster } = clusterWith(1)
  expect(await appendLog(cluster, 't').appendHole(0, 2, 0)).toBe(2)
  expect(seen.begun).toBe(2)
  // One read before each transaction, and some for its end.
  expect(seen.reads).toBeLessThan(10)
})

test('a hole whose transactions all fail ends with the error', async () => {
  const { seen, cluster } = clusterWith(Number.POSITIVE_INFINITY)
  await expect(appendLog(cluster, 't').appendHole(0, 100, 0)).rejects.toThrow('the answer is lost')
  expect(seen.begun).toBe(20)
})

test('a hole behind an open transaction of another producer is appended once, and its end is not reached', async () => {
  const { seen, cluster } = clusterWith(0, true)
  expect(await appendLog(cluster, 't', atOnce).appendHole(0, 1, 0)).toBe(0)
  expect(seen).toMatchObject({ begun: 1, end: 1 })
})

test('a record that somebody appends while the ends are read is no open transaction', async () => {
  const { seen, cluster } = clusterWith(0)
  const growing: LogCluster = {
    ...cluster,
    onLeader: (partition, ask) => {
      seen.end++
      return cluster.onLeader(partition, ask)
    },
  }
  const { stable, end } = await appendLog(growing, 't').endOpenTransaction(0)
  expect([stable, end]).toEqual([2, 1])
})
