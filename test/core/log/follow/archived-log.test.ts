import { describe, expect, test } from 'vitest'
import type { Batch } from '../../../../core/ledger/event/decode.ts'
import { archivedLog } from '../../../../core/log/follow/archived-log.ts'
import { NO_HEADERS } from '../../../../core/log/kafka/encoded-headers.ts'
import { FETCH_PARTITION_BYTES } from '../../../../core/log/limits.ts'
import type { LogEntry } from '../../../../core/log/records/read-log.ts'
import { eventually } from '../../../support/scope.ts'

const entry = (offset: number, kind: LogEntry['kind'] = 'record', bytes = 10): LogEntry => ({
  kind,
  offset,
  timestamp: offset,
  key: null,
  value: Buffer.alloc(bytes),
  headers: NO_HEADERS,
})

const ended = (ends: readonly number[]) => ends.map((end, partition) => ({ partition, low: 0, end }))

/** Opens a log of these partitions. A read of an offset in `broken` fails. */
const opened = async (log: readonly (readonly LogEntry[])[], broken = Number.POSITIVE_INFINITY) => {
  const batches: [partition: number, batch: Batch][] = []
  const assigned: (readonly number[])[] = []
  const errors: unknown[] = []
  const reads: number[] = []
  const reader = {
    topic: 'events',
    read: async (partition: number, from: number) => {
      reads.push(from)
      if (from >= broken) throw new Error('damaged')
      return { entries: (log[partition] ?? []).slice(from), end: log[partition]?.length ?? 0 }
    },
  }
  const archive = archivedLog({ reader, archivedEnds: ended(log.map(({ length }) => length)) })
  const onBatch: { handle: (partition: number, batch: Batch) => void } = { handle: () => undefined }
  const { consumption } = await archive.open(
    {
      onAssigned: partitions => void assigned.push(partitions),
      onBatch: (partition, batch) => {
        batches.push([partition, batch])
        onBatch.handle(partition, batch)
      },
      onReconnected: () => undefined,
      onRebalancing: () => undefined,
      onUndecodable: () => undefined,
      onUnpacked: () => undefined,
      onTrouble: () => undefined,
      onStopped: () => undefined,
      fail: error => void errors.push(error),
    },
    new AbortController().signal,
  )
  return { archive, consumption, batches, assigned, errors, reads, onBatch }
}
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
}

describe('an archive as a log', () => {
  test('assigns all partitions, and reads one only after it is resumed, from where it was sought', async () => {
    const { consumption, batches, assigned, reads } = await opened([[0, 1, 2, 3].map(one => entry(one)), [entry(0)]])
    expect(assigned).toEqual([[0, 1]])
    consumption.seek(0, 2)
    await turns()
    expect(reads).toEqual([])
    consumption.resume(0)
    await eventually(async () => expect(batches).toHaveLength(1))
    expect(batches[0]).toMatchObject([0, { from: 2, end: 4, records: [{ offset: 2 }, { offset: 3 }] }])
    await turns()
    expect(reads).toEqual([2])
  })

  test('leaves out what readers do not see, and goes past it', async () => {
    const log = [entry(0), entry(1, 'aborted'), entry(2), entry(3, 'control'), entry(4, 'control')]
    const { consumption, batches } = await opened([log])
    consumption.resume(0)
    await eventually(async () => expect(batches).toHaveLength(1))
    expect(batches[0]?.[1]).toMatchObject({ from: 0, end: 5 })
    expect(batches[0]?.[1].records.map(({ offset }) => offset)).toEqual([0, 2])
  })

  test('divides much into batches of as many bytes as a fetch, and gives a larger record alone', async () => {
    const half = FETCH_PARTITION_BYTES / 2
    const log = [half, half, 10, 2 * half, 10].map((bytes, offset) => entry(offset, 'record', bytes))
    const { consumption, batches } = await opened([log])
    consumption.resume(0)
    await eventually(async () => expect(batches.at(-1)?.[1].end).toBe(5))
    expect(batches.map(([, { from, end }]) => [from, end])).toEqual([
      [0, 1],
      [1, 3],
      [3, 4],
      [4, 5],
    ])
  })

  test('goes on after a pause and after a seek of the handler, and loses no record', async () => {
    const log = Array.from({ length: 6 }, (_, offset) => entry(offset, 'record', FETCH_PARTITION_BYTES))
    const { consumption, batches, onBatch } = await opened([log])
    let again = true
    onBatch.handle = (_, { from }) => {
      consumption.pause(0)
      if (from === 3 && again) {
        again = false
        consumption.seek(0, 2)
      }
      queueMicrotask(() => consumption.resume(0))
    }
    consumption.resume(0)
    await eventually(async () => expect(batches.at(-1)?.[1].end).toBe(6))
    expect(batches.map(([, { from }]) => from)).toEqual([0, 1, 2, 3, 2, 3, 4, 5])
  })

  test('ends the stream with the error of a read, and reads nothing more', async () => {
    const log = Array.from({ length: 4 }, (_, offset) => entry(offset, 'record', FETCH_PARTITION_BYTES))
    const { consumption, batches, errors } = await opened([log, [entry(0)]], 2)
    consumption.resume(0)
    await eventually(async () => expect(errors).toEqual([new Error('damaged')]))
    consumption.resume(1)
    await turns()
    expect(batches.map(([, { from }]) => from)).toEqual([0, 1])
  })

  test('ends where it ended when it was opened', async () => {
    const { archive } = await opened([[entry(0)], []])
    expect(await archive.ends()).toEqual(ended([1, 0]))
    expect(await archive.identify()).toEqual(ended([1, 0]))
  })
})
