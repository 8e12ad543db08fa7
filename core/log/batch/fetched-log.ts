/**
 * In: a fetched part of a partition. Out: its batches, in order, each with what readers get of it.
 *
 * Aborted batches are found as the protocol defines them. kafkajs reads the aborted transactions in the order of the
 * answer, which is by last offset, and starts at most one of them per record: where transactions overlap it passes
 * aborted records as committed. A batch belongs to one producer, so it is aborted in whole, whatever is in it.
 */
import { StopError } from '../../runtime/index.ts'
import type { FetchedBytes } from '../kafka/patch-fetch.ts'
import { isRecordBatch, type RecordBatch, recordBatchesIn } from './record-batch.ts'

/** Readers see a `record`; the others are holes for them. */
export type EntryKind = 'record' | 'aborted' | 'control'
export type LogBatch = { readonly kind: EntryKind; readonly batch: RecordBatch }

/** @throws StopError for the format from before Kafka 0.11, which has no headers: such a log has no event */
export const batchesOf = ({ bytes, aborted }: FetchedBytes): LogBatch[] => {
  if (!isRecordBatch(bytes)) throw new StopError('topic_unsuitable', 'it has records of the format before Kafka 0.11')
  const begun = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset)
  const open = new Set<string>()
  return recordBatchesIn(bytes).map((batch): LogBatch => {
    const { producerId } = batch
    for (let next = begun[0]; next && next.firstOffset <= batch.last; next = begun[0]) {
      open.add(next.producerId)
      begun.shift()
    }
    if (batch.isControl) {
      open.delete(producerId)
      return { kind: 'control', batch }
    }
    return { kind: batch.isTransactional && open.has(producerId) ? 'aborted' : 'record', batch }
  })
}
