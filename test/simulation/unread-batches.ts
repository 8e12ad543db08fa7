/** Batches that nobody can read, for simulated logs: the entries of their offsets, and the bytes of a fetch. */
import { compressFrameSync } from 'lz4-napi'
import { compressSync } from 'snappy'
import { type EncodedHeaders, encodeHeaders } from '../../core/log/kafka/encoded-headers.ts'
import type { Random } from '../support/random.ts'
import { batchBytes, payloadOf, producerIn } from '../support/record-batches.ts'
import type { Published } from '../support/topics.ts'

type Place = Pick<Published, 'stream' | 'partition'>
/** An entry of a log, as `history.ts` defines it. */
type UnreadEntry = {
  readonly offset: number
  readonly kind: 'record' | 'aborted'
  readonly published: Published
  readonly message: {
    readonly offset: string
    readonly timestamp: string
    readonly key: null
    readonly value: Buffer | null
    readonly headers: EncodedHeaders
  }
  readonly batch: Buffer
}
type Entries = readonly { readonly batch?: Buffer }[]
type Form = readonly [
  codec: number,
  reason: string,
  payload: (good: Buffer) => Buffer,
  count?: (right: number) => number,
]

/** None of gzip or zstd: other threads decompress these, and virtual time does not stand still meanwhile. */
const forms: readonly Form[] = [
  [2, 'not_decompressed', () => Buffer.from('no snappy')],
  [2, 'not_decompressed', good => compressSync(good).subarray(0, -2)],
  [3, 'not_decompressed', () => Buffer.alloc(0)],
  [3, 'not_decompressed', good => compressFrameSync(good).subarray(0, -4)],
  [5, 'codec_unknown', good => good],
  [0, 'records_malformed', good => Buffer.concat([Buffer.from([3]), good])],
  [3, 'count_wrong', good => compressFrameSync(good), right => right - 1],
]

/**
 * @param first the offset of the first entry
 * @returns an entry for each offset, each as the record that stands for it
 */
export const unreadEntries = (
  random: Random,
  { stream, partition }: Place,
  first: number,
  kind: 'record' | 'aborted',
  times: readonly number[],
): UnreadEntry[] => {
  const [codec, reason, payloadFrom, countOf = (right: number) => right] = random.pick(forms)
  const last = first + times.length - 1
  const good = times.map(() => ({ timestamp: 0, key: null, value: Buffer.from('{}'), headers: encodeHeaders([]) }))
  const payload = payloadFrom(payloadOf(good))
  const max = Math.max(...times)
  const isTransactional = kind === 'aborted'
  const batch = batchBytes({
    ...{ first, payload, codec, isTransactional, base: times[0] ?? 0, max, producerId: producerIn(first) },
    ...{ count: countOf(times.length), distance: last - first },
  })
  const headers = [['commission-undecodable-batch', Buffer.from(`${first} ${last} ${codec} ${reason}`)]] as const
  return times.map((_, index) => {
    const offset = first + index
    const content = { key: null, value: index === 0 ? payload : null }
    const published = { ...content, stream, partition, offset, headers }
    const message = { ...content, offset: `${offset}`, timestamp: `${max}`, headers: encodeHeaders(headers) }
    return { offset, kind, published, message, batch }
  })
}

/** Returns the first offset from this one on that does not divide a batch that nobody can read. */
export const borderFrom = (entries: Entries, offset: number): number => {
  let border = offset
  while (isWithin(entries, border)) border++
  return border
}

/** Returns the last offset up to this one that does not divide a batch that nobody can read. */
export const borderBefore = (entries: Entries, offset: number): number => {
  let border = offset
  while (isWithin(entries, border)) border--
  return border
}

const isWithin = (entries: Entries, offset: number): boolean => {
  const batch = entries[offset]?.batch
  return batch !== undefined && entries[offset - 1]?.batch === batch
}
