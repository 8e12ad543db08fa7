/** Whether a log is the archived one: each difference is named with its partition and offset. */
import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recordHash } from '../../../core/ledger/event/decode.ts'
import { EncodedHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogEntry, LogReader } from '../../../core/log/records/read-log.ts'
import { compareWithArchive } from '../../../tools/archive/restore-partition.ts'
import { assertArchived, isInTopic } from '../../../tools/generations/compare-positions.ts'
import { seedOfRun } from '../../support/random.ts'
import { anyEntry, entriesFrom } from '../archive/any-entries.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

/** Partition 3 of a log, which returns a few entries at a time. */
const logOf = (entries: readonly LogEntry[], atOnce: number, topic = 'events'): LogReader => ({
  topic,
  read: async (_, from) => ({ entries: entries.slice(from, from + atOnce), end: entries.length }),
})
const compare = (archived: readonly LogEntry[], log: readonly LogEntry[]) =>
  compareWithArchive(
    {
      archived: logOf(archived, 4),
      log: logOf(log, 3),
      partition: 3,
      end: archived.length,
      onDone: async () => undefined,
      signal: new AbortController().signal,
    },
    log.length,
  )

const LENGTH = 20
const [sample = []] = fc.sample(fc.array(anyEntry, { minLength: LENGTH, maxLength: LENGTH }), { seed, numRuns: 1 })
const isHoleAt = (offset: number): boolean => offset % 5 === 4
const archived = entriesFrom(0, sample).map(
  (entry): LogEntry => ({ ...entry, kind: isHoleAt(entry.offset) ? 'control' : 'record' }),
)
const withChange = (at: number, change: Partial<LogEntry>): LogEntry[] =>
  archived.map(entry => (entry.offset === at ? { ...entry, ...change } : entry))
const flipped = (bytes: Buffer | null): Buffer => Buffer.concat([bytes ?? Buffer.alloc(0), Buffer.of(1)])

test('equal logs are equal, whatever their holes are', async () => {
  expect(await compare(archived, archived)).toBe(LENGTH)
  expect(await compare(archived, withChange(9, { kind: 'aborted', value: Buffer.from('x') }))).toBe(LENGTH)
})

test('a shorter log is equal up to its end, and a longer one is refused there', async () => {
  expect(await compare(archived, archived.slice(0, 7))).toBe(7)
  await expect(compare(archived.slice(0, 7), archived)).rejects.toThrow(
    'partition 3 of events has a record at offset 7: the archive ends there',
  )
})

test('a log that ends before the offset to compare up to is an error, unless it goes on a moment later', async () => {
  const compareAll = (log: LogReader) =>
    compareWithArchive(
      {
        archived: logOf(archived, 4),
        log,
        partition: 3,
        end: LENGTH,
        // Lets the signal through.
        onDone: () => setImmediate(),
        signal: AbortSignal.timeout(5_000),
      },
      LENGTH,
    )
  await expect(compareAll(logOf(archived.slice(0, 7), 3))).rejects.toThrow('partition 3 of events ends at offset 7')
  const whole = logOf(archived, 3)
  let reads = 0
  const late: LogReader = {
    topic: 'events',
    read: (partition, from) => (++reads % 10 === 0 ? whole.read(partition, from) : logOf([], 3).read(partition, from)),
  }
  expect(await compareAll(late)).toBe(LENGTH)
})

test('another time, key, value, header or hole is refused by its offset', async () => {
  for (const offset of [0, 1, 8, 18]) {
    const entry = archived[offset] as LogEntry
    const changes: Partial<LogEntry>[] = [
      { timestamp: entry.timestamp === 5 ? 6 : 5 },
      { key: flipped(entry.key) },
      { value: flipped(entry.value) },
      { value: entry.value === null ? Buffer.alloc(0) : null },
      { headers: new EncodedHeaders(flipped(entry.headers.bytes)) },
      { kind: 'control' },
    ]
    for (const change of changes)
      await expect(compare(archived, withChange(offset, change))).rejects.toThrow(
        `partition 3 of events differs from the archive at offset ${offset}`,
      )
  }
  await expect(compare(archived, withChange(4, { kind: 'record' }))).rejects.toThrow('at offset 4')
})

/** A generation that has read partition 0 to a position. */
const hasRead = (position: number, last: { offset: number; sha256: string } | null) => {
  const identity = { generation: 'g1', topic: 'events', cluster_id: 'c', partitions: 1, rules_version: 1 }
  const body = { position, last, at: 0, time: 0, serve_from: 0 }
  return {
    generation: { _source: { kind: 'generation' as const, body: identity } },
    positions: [{ _source: { kind: 'position' as const, body } }],
  }
}
const lastAt = (offset: number) => ({ offset, sha256: recordHash(archived[offset] as LogEntry) })

test('an archive has what a generation has read: its last record, and only holes after it', async () => {
  const log = logOf(archived, 3)
  for (const [position, last] of [
    [0, null],
    [1, lastAt(0)],
    [4, lastAt(3)],
    [5, lastAt(3)],
    [LENGTH, lastAt(LENGTH - 2)],
  ] as const)
    await assertArchived(hasRead(position, last), log)
})

test('an archive that ends before a position, or has another last record, is refused by partition and offset', async () => {
  const log = logOf(archived, 3)
  const refusal = (position: number, last: { offset: number; sha256: string } | null) =>
    expect(assertArchived(hasRead(position, last), log)).rejects
  await refusal(LENGTH + 1, lastAt(LENGTH - 2)).toThrow(
    `g1 has read partition 0 of events to offset ${LENGTH + 1}, the archive ends at ${LENGTH}`,
  )
  const other = { offset: 3, sha256: hash('sha256', 'another') }
  await refusal(4, other).toThrow(
    'the archive has another record at offset 3 of partition 0 of events than g1 has read',
  )
  await refusal(7, lastAt(5)).toThrow('another record at offset 6')
  await refusal(2, null).toThrow('another record at offset 0')
  await refusal(5, { ...lastAt(3), offset: 4 }).toThrow('another record at offset 4')
})

test('a topic has what was read only if no record is between the last one and the position', async () => {
  const last = archived.slice(3, 4).map(entry => ({ offset: 3, sha256: recordHash(entry) }))[0] ?? null
  const has = (position: number, known: typeof last, log = archived) =>
    isInTopic(
      3,
      { position, last: known },
      logOf(log, 1),
      [{ partition: 3, low: 0, end: LENGTH }],
      async () => undefined,
    )
  expect([await has(4, last), await has(5, last), await has(6, last), await has(0, null)]).toEqual([
    true,
    true,
    false,
    true,
  ])
  const aborted = withChange(0, { kind: 'aborted' })
  expect([await has(1, null), await has(1, null, aborted), await has(2, null, aborted)]).toEqual([false, true, false])
})
