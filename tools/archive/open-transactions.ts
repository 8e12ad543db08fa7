/** Says what an archive lacks because of open transactions: their records, and all records behind them. */
import {
  type AskedTopic,
  fetchEndOffsets,
  type LogEnds,
  type OpenThen,
  openSince,
  textOfOpen,
  textOfUnknown,
  writtenIn,
} from '../../core/log/index.ts'

export { type OpenTransactions, openTransactionsOf, textOfOpen } from '../../core/log/index.ts'

/** Says, at most once in `interval` milliseconds, where records cannot be read that were there at the look before. */
export const sayOpen = (
  topics: readonly AskedTopic[],
  interval: number,
  { say, elapsed }: { readonly say: (line: string) => void; readonly elapsed: () => number },
) => {
  const before = new Map<string, LogEnds>()
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
    if (unknown.length > 0) say(`${textOfUnknown(asked.topic, unknown)}: ${NOT_TOLD}`)
  }
  return read.some(({ hidden: { open, unknown } }) => open.length > 0 || unknown.length > 0)
}
const NOT_TOLD =
  'Kafka does not tell where its records end. Look at the brokers and at the rights of archive, and run the same again'

const NOT_ARCHIVED = 'their records, and those behind them, are not archived'
