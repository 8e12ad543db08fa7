/**
 * Explains the receipt of a parked record. In: its location and its code. Out: the detail of the record; that of the
 * code alone for a large record, and for one that cannot be read in time.
 */

import { detailOf, needsRecord, type ToExplain } from '../../core/ledger/index.ts'
import { keptRecord } from '../../core/log/index.ts'
import { limitConcurrency, type RetryOptions, StopError, Unanswered } from '../../core/runtime/index.ts'
import { multiGet, type Send } from '../../core/store/index.ts'
import { LIVE_ID, type LiveDocument, type ParkedDocument, parkedId } from '../../schemas/stored/documents.ts'
import { parkedAddress } from '../../schemas/stored/layout.ts'
import { withPlainNames } from '../../schemas/stored/live-names.ts'
import { EXPLAINED_BYTES_MAX, EXPLANATIONS_AT_ONCE_MAX } from '../limits.ts'
import { generationOfStream, getControlDocument } from './read-control.ts'
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
    const { generation } = withPlainNames((await getControlDocument<LiveDocument>(send, prefix, LIVE_ID, signal)).body)
    const address = parkedAddress(prefix, generationOfStream(stream, generation), parkedId(topic, partition, offset))
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
      if (error instanceof Unanswered || error instanceof StopError)
        return detailOf({ code, record: undefined, source })
      throw error
    }
  }
}
