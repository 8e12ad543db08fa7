/**
 * Explains the receipt of a record that is parked as `data_invalid`. In: its location. Out: the field and the rule;
 * nothing for a large record, and for one that cannot be read in time: the receipt comes without an explanation.
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
import { explainInvalid } from '../event/explain-invalid.ts'
import { StopError } from '../failures.ts'
import { toRawRecord } from '../kafka/stored-record.ts'
import { EXPLAINED_BYTES_MAX, EXPLANATIONS_AT_ONCE_MAX } from '../limits.ts'
import { limitConcurrency } from '../semaphore.ts'
import { getControlDocument } from './read-control.ts'
import { readInTime } from './read-in-time.ts'
import type { RecordLocation } from './receipts.ts'

/** @param gone aborts when the client has disconnected */
export type ExplainParked = (location: RecordLocation, gone: AbortSignal) => Promise<string | undefined>

export const createParkedExplainer = (
  send: Send,
  prefix: string,
  { sleep, stopping }: { readonly sleep: RetryOptions['sleep']; readonly stopping: AbortSignal },
): ExplainParked => {
  const inTurn = limitConcurrency(EXPLANATIONS_AT_ONCE_MAX)

  const explain = async ({ stream, topic, partition, offset }: RecordLocation, signal: AbortSignal) => {
    if (signal.aborted) return undefined
    const { generation } = (await getControlDocument<LiveDocument>(send, prefix, LIVE_ID, signal)).body
    const _index = stream === 'events' ? indexOf(prefix, generation, 'parked') : apiKeysParkedIndexOf(prefix)
    const address = { _index, _id: parkedId(topic, partition, offset) }
    const sizeOf = { ...address, _source: ['body_bytes'] }
    const [size] = await multiGet<Pick<ParkedDocument, 'body_bytes'>>(send, [sizeOf], signal)
    if (!size?.found || size._source.body_bytes > EXPLAINED_BYTES_MAX) return undefined
    const [document] = await multiGet<ParkedDocument>(send, [address], signal)
    return document?.found ? explainInvalid(stream, toRawRecord(document._source)) : undefined
  }

  return async (location, gone) => {
    try {
      return await readInTime(sleep, [stopping, gone], signal => inTurn(() => explain(location, signal)))
    } catch (error) {
      if (error instanceof Unavailable || error instanceof StopError) return undefined
      throw error
    }
  }
}
