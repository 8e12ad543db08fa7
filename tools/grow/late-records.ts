/**
 * Names records that were published to the old topic after a moment.
 * In: the old topic, and offsets by partition. Out: a line for each record from there on, with the source of its event,
 * so that its publisher can be found.
 * Can go wrong: a leader that was replaced and cut off answers, and lacks the records.
 */
import type { LogEntry, LogReader } from '../../core/log/index.ts'
import type { CommandContext } from '../context.ts'
import { CommandError } from '../failures.ts'
import { DIFFERENCES_SHOWN } from '../limits.ts'
import { printable, timeOf } from '../terminal.ts'

/** Headers of an event in binary mode. In structured mode nothing but the position is named. */
const names = [Buffer.from('ce_source'), Buffer.from('ce_id')]

/**
 * Prints the first records; all with `json`. Returns the number of all.
 * @param ends of the partitions, as brokers told them
 * @throws CommandError if a partition cannot be read up to this end
 */
export const printLate = async (
  log: LogReader,
  from: readonly number[],
  json: boolean,
  { out }: Pick<CommandContext, 'out'>,
  ends: readonly number[] = [],
): Promise<number> => {
  let count = 0
  // Somebody may have added partitions.
  for (let partition = 0; partition < Math.max(from.length, ends.length); partition++) {
    for (let offset = from[partition] ?? 0; ; ) {
      const { entries } = await log.read(partition, offset)
      if (entries.length === 0) {
        if (offset < (ends[partition] ?? 0)) throw unread(log.topic, partition, offset, ends[partition])
        break
      }
      for (const entry of entries) {
        offset = entry.offset + 1
        if (entry.kind !== 'record') continue
        count++
        if (json || count <= DIFFERENCES_SHOWN) out(lineOf(log.topic, partition, entry, json))
      }
    }
  }
  return count
}

const unread = (topic: string, partition: number, offset: number, end = 0): CommandError => {
  const what = `partition ${partition} of ${topic} ends at ${end}, but nothing from offset ${offset} on can be read`
  return new CommandError(`${what}: ${REPLACED}. Then run the same again`)
}
const REPLACED = 'if its leader was replaced and is cut off, remove that broker from KAFKA_BROKERS'

const lineOf = (topic: string, partition: number, { offset, timestamp, headers }: LogEntry, json: boolean): string => {
  const [source = null, event_id = null] = headers.textsOf(names)
  const [position, published_at] = [`${topic}:${partition}:${offset}`, timeOf(timestamp)]
  if (json) return `${JSON.stringify({ position, published_at, source, event_id })}\n`
  const event = source === null ? 'no ce_source' : `ce_source ${printable(source)}`
  return `${position}  ${published_at}  ${event}${event_id === null ? '' : `, ce_id ${printable(event_id)}`}\n`
}
