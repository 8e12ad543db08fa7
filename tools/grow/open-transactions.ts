/**
 * Finds open transactions of publishers. Their records, and all records behind them in the partition, also those of
 * other publishers, cannot be copied before the transaction ends. Until then, the topic looks as if nobody published.
 * Records that wait for replicas look the same.
 */
import { fetchEndOffsets, type LogCluster } from '../../core/log/index.ts'

/** Returns the partitions with records of open transactions, in order. */
export type OpenTransactions = () => Promise<readonly number[]>

/** @param partitions their number */
export const openTransactionsOf =
  (
    cluster: Pick<LogCluster, 'writtenEnds'>,
    admin: Parameters<typeof fetchEndOffsets>[0],
    topic: string,
    partitions: number,
  ): OpenTransactions =>
  async () => {
    const all = Array.from({ length: partitions }, (_, partition) => partition)
    // First: of a transaction that ends meanwhile, the second answer has the records.
    const written = await cluster.writtenEnds(all)
    const ends = await fetchEndOffsets(admin, topic)
    return all.filter(partition => (written.get(partition) ?? Number.POSITIVE_INFINITY) > (ends[partition] ?? 0))
  }

/** In the words of messages. */
export const textOfOpen = (topic: string, partitions: readonly number[]): string => {
  const names = partitions.join(', ')
  return `open transactions in ${partitions.length === 1 ? 'partition' : 'partitions'} ${names} of ${topic}`
}
