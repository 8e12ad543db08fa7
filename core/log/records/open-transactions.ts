/**
 * Finds open transactions of publishers. Nobody can read their records, nor any record behind them in the partition,
 * also of other publishers, before the transaction ends. Until then, the topic looks as if nobody published. Records
 * that wait for replicas look the same.
 * In: the stable ends of the partitions, up to which records can be read, and the log ends, with all records.
 */
import { fetchEndOffsets, fetchRanges } from '../kafka/source.ts'
import type { LogCluster } from './open-cluster.ts'

/** Returns the partitions with records of open transactions, in order. */
export type OpenTransactions = () => Promise<readonly number[]>

/** Also of a topic that has deleted records. @param partitions their number */
export const openTransactionsOf =
  (
    cluster: Pick<LogCluster, 'logEnds'>,
    admin: Parameters<typeof fetchEndOffsets>[0],
    topic: string,
    partitions: number,
  ): OpenTransactions =>
  async () => {
    const all = partitionsOf({ partitions })
    // First: of a transaction that ends meanwhile, the second answer has the records.
    const written = await cluster.logEnds(all)
    const ends = (await fetchRanges(admin, topic)).map(({ end }) => end)
    return all.filter(partition => isHidden(partition, written, ends))
  }

export type LogEnds = ReadonlyMap<number, number>

/** Whether a partition has records that were written, and that nobody can read. Also if Kafka does not name its end. */
const isHidden = (partition: number, written: LogEnds, ends: readonly number[]): boolean =>
  (written.get(partition) ?? Number.POSITIVE_INFINITY) > (ends[partition] ?? 0)

/** A topic, the connections to it, and the number of its partitions. */
export type AskedTopic = {
  readonly cluster: Pick<LogCluster, 'logEnds'>
  readonly admin: Parameters<typeof fetchEndOffsets>[0]
  readonly topic: string
  readonly partitions: number
}

/** The ends of these partitions that are known now. One leader that does not answer hides no end of the others. */
export const writtenIn = async (asked: AskedTopic, partitions = partitionsOf(asked)): Promise<LogEnds> => {
  const ask = (some: readonly number[]): Promise<LogEnds> => asked.cluster.logEnds(some).catch(() => new Map())
  const told = await ask(partitions)
  if (told.size > 0) return told
  const each = await Promise.all(partitions.map(partition => ask([partition])))
  return new Map(each.flatMap(one => [...one]))
}

const partitionsOf = ({ partitions }: Pick<AskedTopic, 'partitions'>): readonly number[] =>
  Array.from({ length: partitions }, (_, partition) => partition)

/** The partitions that had records then which nobody can read now, in order. */
export const openSince = (written: LogEnds, ends: readonly number[]): readonly number[] =>
  [...written.keys()].filter(partition => isHidden(partition, written, ends)).toSorted((a, b) => a - b)

/** The partitions that had records at a moment which nobody could read, and those of which that is not known. */
export type OpenThen = { readonly open: readonly number[]; readonly unknown: readonly number[] }

/**
 * Returns the ends that can be read, as soon as these include everything that was written at the call, or after some
 * looks. A publisher that goes on does not disturb: what it writes later does not count. A partition whose log end
 * is not known yet is asked for it again at each look.
 * @param pause returns whether to look again
 */
export const endsWithWritten = async (
  asked: AskedTopic,
  looksMax: number,
  pause: () => Promise<boolean>,
): Promise<{ readonly ends: number[]; readonly hidden: OpenThen }> => {
  const written = new Map<number, number>()
  for (let looks = 1; ; looks++) {
    const missing = partitionsOf(asked).filter(partition => !written.has(partition))
    if (missing.length > 0) for (const [partition, end] of await writtenIn(asked, missing)) written.set(partition, end)
    const ends = await fetchEndOffsets(asked.admin, asked.topic)
    const open = openSince(written, ends)
    const unknown = missing.filter(partition => !written.has(partition))
    const isDone = (open.length === 0 && unknown.length === 0) || looks >= looksMax
    if (isDone || !(await pause())) return { ends, hidden: { open, unknown } }
  }
}

/** In the words of messages. */
export const textOfOpen = (topic: string, partitions: readonly number[]): string =>
  `open transactions in ${textOf(topic, partitions)}`

/** As `textOfOpen`, of ends that are not known. */
export const textOfUnknown = (topic: string, partitions: readonly number[]): string =>
  `it is not known whether transactions are open in ${textOf(topic, partitions)}`

/** Returns what hides records of a topic; undefined if nothing does. */
export const textOfHidden = (topic: string, { open, unknown }: OpenThen): string | undefined => {
  if (open.length > 0) return textOfOpen(topic, open)
  return unknown.length > 0 ? textOfUnknown(topic, unknown) : undefined
}

/** Returns what to do about it, as the beginning of a sentence. */
export const adviceOfHidden = ({ open }: OpenThen): string => (open.length > 0 ? 'End them' : 'Look at the brokers')

const textOf = (topic: string, partitions: readonly number[]): string =>
  `${partitions.length === 1 ? 'partition' : 'partitions'} ${partitions.join(', ')} of ${topic}`
