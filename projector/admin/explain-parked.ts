/**
 * Explains the receipt of a parked record. In: its location and its code. Out: the detail of the record; that of the
 * code alone for a large record, and for one that cannot be read in time.
 */
import {
  apiKeysParkedIndexOf,
  indexOf,
  LIVE_ID,
  type LiveDocument,
  type ParkedDocument,
  parkedId,
} from '../../schemas/stored/documents.ts'
import { multiGet, type RetryOptions, type Send, Unavailable } from '../elasticsearch/client.ts'
import { detailOf, needsRecord, type ToExplain } from '../event/detail.ts'
import { StopError } from '../failures.ts'
import { keptRecord } from '../kafka/stored-record.ts'
import { EXPLAINED_BYTES_MAX, EXPLANATIONS_AT_ONCE_MAX } from '../limits.ts'
import { limitConcurrency } from '../semaphore.ts'
import { getControlDocument } from './read-control.ts'
import { readInTime } from './read-in-time.ts'
import type { RecordLocation } from './receipts.ts'

export type ParkedLocation = RecordLocation & Pick<ToExplain, 'code'> & Pick<ToExplain['source'], 'partitions'>

/** @param gone aborts when the client has disconnected */
export type ExplainParked = (parked: ParkedLocation, gone: AbortSignal) => Promise<string>

export const createParkedExplainer = (
  send: Send,
  prefix: string,
  { sleep, stopping }: { readonly sleep: RetryOptions['sleep']; readonly stopping: AbortSignal },
): ExplainParked => {
  const inTurn = limitConcurrency(EXPLANATIONS_AT_ONCE_MAX)

  const read = async ({ stream, topic, partition, offset }: RecordLocation, signal: AbortSignal) => {
    if (signal.aborted) return undefined
    const { generation } = (await getControlDocument<LiveDocument>(send, prefix, LIVE_ID, signal)).body
    const _index = stream === 'events' ? indexOf(prefix, generation, 'parked') : apiKeysParkedIndexOf(prefix)
    const address = { _index, _id: parkedId(topic, partition, offset) }
    const sizeOf = { ...address, _source: ['body_bytes'] }
    const [size] = await multiGet<Pick<ParkedDocument, 'body_bytes'>>(send, [sizeOf], signal)
    if (!size?.found || size._source.body_bytes > EXPLAINED_BYTES_MAX) return undefined
    const [document] = await multiGet<ParkedDocument>(send, [address], signal)
    return document?.found ? keptRecord(document._source) : undefined
  }

  return async (parked, gone) => {
    const { code, ...source } = parked
    if (!needsRecord(code)) return detailOf({ code, record: undefined, source })
    try {
      return await readInTime(sleep, [stopping, gone], signal =>
        inTurn(async () => detailOf({ code, record: await read(parked, signal), source })),
      )
    } catch (error) {
      if (error instanceof Unavailable || error instanceof StopError)
        return detailOf({ code, record: undefined, source })
      throw error
    }
  }
}
