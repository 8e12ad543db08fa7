/**
 * A batch that cannot be read, as records: one for each of its offsets. A header names the batch and the reason. The
 * first record has the bytes of the batch that stand for its records, compressed as they are in the log.
 *
 * The rules park each of them with `batch_undecodable`. An archive keeps them, and a restore appends them, like any
 * other record: so the log has the same decisions afterwards, whatever a broker thinks of the batch. A publisher who
 * sends such a record has parked that record, and nothing else.
 */
import { BATCH_BYTES_MAX, BATCH_RECORD_BYTES_MAX } from '../../../schemas/limits.ts'
import type { RawRecord } from './decode.ts'

/** The reasons, which are stored, and what was expected and given. */
const unreadableReasons = {
  not_decompressed: ['bytes that can be decompressed', 'damaged ones'],
  too_large: [`at most ${BATCH_BYTES_MAX} bytes when it is decompressed`, 'more'],
  record_too_large: [`records of at most ${BATCH_RECORD_BYTES_MAX} bytes`, 'a larger one'],
  records_malformed: ['records as Kafka defines them', 'a malformed one'],
  count_wrong: ['as many records as it states', 'another number'],
  codec_unknown: ['a known compression', 'an unknown one'],
} as const
export type UnreadableReason = keyof typeof unreadableReasons

export type UndecodableBatch = {
  /** The first and the last offset. */
  readonly first: number
  readonly last: number
  readonly codec: number
  readonly reason: UnreadableReason
}

export const UNDECODABLE_BATCH_HEADER = 'commission-undecodable-batch'
const headerNames = [Buffer.from(UNDECODABLE_BATCH_HEADER)]

/** The text of the header. */
export const describeBatch = ({ first, last, codec, reason }: UndecodableBatch): string =>
  `${first} ${last} ${codec} ${reason}`

/** Returns the batch that a record stands for; undefined for any other record. */
export const undecodableBatchOf = ({
  offset,
  headers,
}: Pick<RawRecord, 'offset' | 'headers'>): UndecodableBatch | undefined => {
  const [text] = headers.textsOf(headerNames)
  if (!text) return undefined
  const [, first, last, codec, reason] = /^(\d{1,16}) (\d{1,16}) (\d) ([a-z_]+)$/.exec(text) ?? []
  if (!reason || !isReason(reason)) return undefined
  const batch = { first: Number(first), last: Number(last), codec: Number(codec), reason }
  return batch.first <= offset && offset <= batch.last ? batch : undefined
}

const isReason = (text: string): text is UnreadableReason => Object.hasOwn(unreadableReasons, text)

/** Says what is wrong with a batch. */
export const sayUndecodable = ({ first, last, codec, reason }: UndecodableBatch): string => {
  const [expected, got] = unreadableReasons[reason]
  return `batch of offsets ${first} to ${last}, compression ${codecNames[codec] ?? codec}: expected ${expected}, got ${got}`
}

const codecNames = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
