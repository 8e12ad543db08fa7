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
    cluster: Pick<LogCluster, 'logEnds'>,
    admin: Parameters<typeof fetchEndOffsets>[0],
    topic: string,
    partitions: number,
  ): OpenTransactions =>
  async () => {
    const all = partitionsOf({ partitions })
    // First: of a transaction that ends meanwhile, the second answer has the records.
    const written = await cluster.logEnds(all)
    const ends = await fetchEndOffsets(admin, topic)
    return all.filter(partition => isHidden(partition, written, ends))
  }

type Written = ReadonlyMap<number, number>

/** Whether a partition has records that were written, and that nobody can read. Also if Kafka does not name its end. */
const isHidden = (partition: number, written: Written, ends: readonly number[]): boolean =>
  (written.get(partition) ?? Number.POSITIVE_INFINITY) > (ends[partition] ?? 0)

/** A topic, the connections to it, and the number of its partitions. */
export type AskedTopic = {
  readonly cluster: Pick<LogCluster, 'logEnds'>
  readonly admin: Parameters<typeof fetchEndOffsets>[0]
  readonly topic: string
  readonly partitions: number
}

/** The ends of these partitions that are known now. One leader that does not answer hides no end of the others. */
const writtenIn = async ({ cluster }: AskedTopic, partitions: readonly number[]): Promise<Written> => {
  const ask = (asked: readonly number[]): Promise<Written> => cluster.logEnds(asked).catch(() => new Map())
  const told = await ask(partitions)
  if (told.size > 0) return told
  const each = await Promise.all(partitions.map(partition => ask([partition])))
  return new Map(each.flatMap(one => [...one]))
}

const partitionsOf = ({ partitions }: Pick<AskedTopic, 'partitions'>): readonly number[] =>
  Array.from({ length: partitions }, (_, partition) => partition)

const openSince = (written: Written, ends: readonly number[]): readonly number[] =>
  [...written.keys()].filter(partition => isHidden(partition, written, ends)).toSorted((a, b) => a - b)

/** The partitions that had records at a moment which nobody could read, and those of which that is not known. */
export type OpenThen = { readonly open: readonly number[]; readonly unknown: readonly number[] }

/**
 * Returns the ends that can be read, as soon as these include everything that was written at the call, or after some
 * looks. A publisher that goes on does not disturb: what it writes later does not count. A partition whose written end
 * is not known yet is asked for it again at each look.
 * @param pause returns whether to look again
 */
export const endsWithWritten = async (
  asked: AskedTopic,
  looksMax: number,
  pause: () => Promise<boolean>,
): Promise<{ readonly ends: readonly number[]; readonly hidden: OpenThen }> => {
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

/** Says, at most once in `interval` milliseconds, where records cannot be read that were there at the look before. */
export const sayOpen = (
  topics: readonly AskedTopic[],
  interval: number,
  { say, elapsed }: { readonly say: (line: string) => void; readonly elapsed: () => number },
) => {
  const before = new Map<string, Written>()
  let lookedAt = Number.NEGATIVE_INFINITY
  return async (): Promise<void> => {
    if (elapsed() - lookedAt < interval) return
    lookedAt = elapsed()
    for (const asked of topics) {
      const written = before.get(asked.topic)
      before.set(asked.topic, await writtenIn(asked, partitionsOf(asked)))
      const ends = await fetchEndOffsets(asked.admin, asked.topic).catch(() => undefined)
      const open = written && ends ? openSince(written, ends) : []
      if (open.length > 0) say(`${textOfOpen(asked.topic, open)}: ${NOT_ARCHIVED}`)
    }
  }
}

/**
 * Returns whether an archive lacks, or may lack, something of a topic that was open when the run began. An end that
 * stays unknown counts: the topic may be deleted next. It fails no installation for ever: while these ends are unknown,
 * a projector publishes no time and is not ready, so that a Kafka which never tells them cannot be used at all.
 */
export const sayIfOpen = (
  read: readonly { readonly asked: AskedTopic; readonly hidden: OpenThen }[],
  say: (line: string) => void,
): boolean => {
  for (const { asked, hidden } of read) {
    const { open, unknown } = hidden
    if (open.length > 0) say(`${textOfOpen(asked.topic, open)}: ${NOT_ARCHIVED}. Run the same when they have ended`)
    if (unknown.length > 0) say(`${UNKNOWN} in ${textOf(asked.topic, unknown)}: ${NOT_TOLD}`)
  }
  return read.some(({ hidden: { open, unknown } }) => open.length > 0 || unknown.length > 0)
}
const UNKNOWN = 'it is not known whether transactions are open'
const NOT_TOLD =
  'Kafka does not tell where its records end. Look at the brokers and at the rights of archive, and run the same again'

const NOT_ARCHIVED = 'their records, and those behind them, are not archived'

/** In the words of messages. */
export const textOfOpen = (topic: string, partitions: readonly number[]): string =>
  `open transactions in ${textOf(topic, partitions)}`

const textOf = (topic: string, partitions: readonly number[]): string =>
  `${partitions.length === 1 ? 'partition' : 'partitions'} ${partitions.join(', ')} of ${topic}`
