/** Explains why a record is `data_invalid`: the field and the rule. Names nothing of the data. */
import type { Stream } from '../../schemas/events.ts'
import { firstMismatch } from '../../schemas/validate.ts'
import { decode } from './decode.ts'
import type { RawRecord } from './raw-record.ts'
import { validate } from './validate.ts'

/** Returns the first rule that the data breaks, in words; undefined if it breaks no rule of data now. */
export const explainInvalid = (stream: Stream, record: RawRecord): string | undefined => {
  const envelope = decode(record)
  if (envelope === 'undecodable') return undefined
  const mismatch = firstMismatch(stream, envelope)
  if (mismatch !== undefined) return mismatch
  // The data is checked before its partition: any partition gives the same answer.
  const isInvalid = validate(envelope, record, { stream, partition: 0, partitions: 1 }) === 'data_invalid'
  return isInvalid
    ? 'a rule of several fields: ids of lines, numbers of steps, or the boundaries of a period'
    : undefined
}
