/** Transactions of a process that another one has taken over. */
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { appendInTransactions } from '../../../../core/log/records/append-in-transactions.ts'
import type { LogCluster } from '../../../../core/log/records/open-cluster.ts'

test.each(['INVALID_PRODUCER_EPOCH', 'INVALID_PRODUCER_ID_MAPPING'])(
  'after another process took the id over, a run says what its caller says: %s',
  async type => {
    const refusal = new kafkajs.KafkaJSProtocolError(Object.assign(new Error(type), { type, code: 47 }))
    const cluster = { onCoordinator: () => Promise.reject(refusal) } as Partial<LogCluster> as LogCluster
    const transactions = appendInTransactions(cluster, 'events-9', 'id', () => new Error('another run copies'))
    await expect(transactions.takeOver()).rejects.toThrow(/^another run copies$/)
  },
)
