/** Batches of several leaders in one fetch. `follow/consume.test.ts` has the other promises of an unpacker. */
import { expect, test } from 'vitest'
import type { Batch } from '../../../../core/ledger/event/decode.ts'
import { Unpacker } from '../../../../core/log/batch/unpack.ts'
import { eventRecord } from '../../../projector/records.ts'
import { rep } from '../../../projector/story.ts'
import { heapInUse } from '../../../support/heap.ts'
import { batchOfRecords } from '../../../support/record-batches.ts'

test('records of a leader are passed on without those of the leader before, with its epoch', async () => {
  const heard: Batch[] = []
  const nothing = (): void => undefined
  const unpacker = new Unpacker({
    topic: 'commission.events',
    partition: 0,
    onRecords: batch => heard.push(batch),
    onUndecodable: nothing,
    onUnpacked: nothing,
    fetchFrom: nothing,
    onStopped: error => expect.unreachable(String(error)),
  })
  unpacker.resume()
  const batchAt = (offset: number, epoch: number, isControl = false) =>
    batchOfRecords(offset, [eventRecord(rep(), offset, 1_000)], {
      epoch,
      isControl,
    })
  const bytes = Buffer.concat([batchAt(5, 1), batchAt(6, 1, true), batchAt(7, 4), batchAt(8, 4), batchAt(9, 5, true)])
  await unpacker.take(5, { bytes, aborted: [] }).passed
  expect(heard.map(({ from, end, epoch, records }) => [from, end, epoch, records.length])).toEqual([
    [5, 7, 1, 1],
    [7, 9, 4, 2],
    [9, 10, 5, 0],
  ])
})

test('nothing is kept of a fetch that was passed on: a partition that is never assigned anew takes no more memory', async () => {
  const nothing = (): void => undefined
  const unpacker = new Unpacker({
    topic: 'commission.events',
    partition: 0,
    onRecords: nothing,
    onUndecodable: nothing,
    onUnpacked: nothing,
    fetchFrom: nothing,
    onStopped: error => expect.unreachable(String(error)),
  })
  unpacker.resume()
  const bytes = batchOfRecords(0, [eventRecord(rep(), 0, 1_000)])
  const fetches = async (from: number, end: number): Promise<void> => {
    for (let offset = from; offset < end; offset++) {
      const moved = Buffer.from(bytes)
      moved.writeBigInt64BE(BigInt(offset))
      await unpacker.take(offset, { bytes: moved, aborted: [] }).passed
    }
  }
  await fetches(0, 2_000)
  const before = heapInUse()
  await fetches(2_000, 12_000)
  // A reaction of a promise takes some 300 bytes, so 3 MB.
  expect(heapInUse() - before).toBeLessThan(1024 * 1024)
})
