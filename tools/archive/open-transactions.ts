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
    return all.filter(partition => isHidden(partition, written, ends))
  }

type Written = ReadonlyMap<number, number>

/** Whether a partition has records that were written, and that nobody can read. Also if Kafka does not name its end. */
const isHidden = (partition: number, written: Written, ends: readonly number[]): boolean =>
  (written.get(partition) ?? Number.POSITIVE_INFINITY) > (ends[partition] ?? 0)

/** A topic, the connections to it, and the number of its partitions. */
export type AskedTopic = {
  readonly cluster: Pick<LogCluster, 'writtenEnds'>
  readonly admin: Parameters<typeof fetchEndOffsets>[0]
  readonly topic: string
  readonly partitions: number
}

/** Undefined if an end is not known, as while most brokers do not answer. */
const writtenIn = async ({ cluster, partitions }: AskedTopic): Promise<Written | undefined> => {
  const all = Array.from({ length: partitions }, (_, partition) => partition)
  const written = await cluster.writtenEnds(all).catch(() => undefined)
  return all.every(partition => written?.has(partition)) ? written : undefined
}

const openSince = (written: Written, ends: readonly number[]): readonly number[] =>
  [...written.keys()].filter(partition => isHidden(partition, written, ends))

/** The partitions that had records at a moment which nobody could read; undefined if that is not known. */
export type OpenThen = readonly number[] | undefined

/**
 * Returns the ends that can be read, as soon as these include everything that was written at the call, or after some
 * looks. A publisher that goes on does not disturb: what it writes later does not count.
 */
export const endsWithWritten = async (
  asked: AskedTopic,
  looksMax: number,
  pause: () => Promise<unknown>,
): Promise<{ readonly ends: readonly number[]; readonly open: OpenThen }> => {
  const written = await writtenIn(asked)
  for (let looks = 1; ; looks++) {
    const ends = await fetchEndOffsets(asked.admin, asked.topic)
    const open = written && openSince(written, ends)
    if (open === undefined || open.length === 0 || looks >= looksMax) return { ends, open }
    await pause()
  }
}

/** Says, at most once in `interval` milliseconds, where records cannot be read that were there at the look before. */
export const sayOpen = (
  topics: readonly AskedTopic[],
  interval: number,
  { say, elapsed }: { readonly say: (line: string) => void; readonly elapsed: () => number },
) => {
  const before = new Map<string, Written | undefined>()
  let lookedAt = Number.NEGATIVE_INFINITY
  return async (): Promise<void> => {
    if (elapsed() - lookedAt < interval) return
    lookedAt = elapsed()
    for (const asked of topics) {
      const written = before.get(asked.topic)
      before.set(asked.topic, await writtenIn(asked))
      const ends = await fetchEndOffsets(asked.admin, asked.topic).catch(() => undefined)
      const open = written && ends ? openSince(written, ends) : []
      if (open.length > 0) say(`${textOfOpen(asked.topic, open)}: ${NOT_ARCHIVED}`)
    }
  }
}

/** Returns whether an archive lacks something of a topic that was open when the run began. */
export const sayIfOpen = (
  read: readonly { readonly asked: AskedTopic; readonly open: OpenThen }[],
  say: (line: string) => void,
): boolean => {
  for (const { asked, open } of read) {
    if (open === undefined) say(`${UNKNOWN} in ${asked.topic}: most brokers do not say who leads`)
    else if (open.length > 0)
      say(`${textOfOpen(asked.topic, open)}: ${NOT_ARCHIVED}. Run the same when they have ended`)
  }
  return read.some(({ open = [] }) => open.length > 0)
}
const UNKNOWN = 'it is not known whether transactions are open'

const NOT_ARCHIVED = 'their records, and those behind them, are not archived'

/** In the words of messages. */
export const textOfOpen = (topic: string, partitions: readonly number[]): string => {
  const names = partitions.join(', ')
  return `open transactions in ${partitions.length === 1 ? 'partition' : 'partitions'} ${names} of ${topic}`
}
