/** Appends of one partition: batches of the permitted size, and none before the limit of the rate permits it. */
import { expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogAppender } from '../../../core/log/records/append-log.ts'
import type { LogEntry, LogReader } from '../../../core/log/records/read-log.ts'
import { appendFrom, compareWithArchive } from '../../../tools/archive/restore-partition.ts'
import { eventually } from '../../support/scope.ts'
import { entriesFrom } from './any-entries.ts'

const RECORDS = 1_200
const sample = { kind: 'record', timestamp: 1, key: null, value: Buffer.from('a'), headers: encodeHeaders([]) } as const
const entries = entriesFrom(
  0,
  Array.from({ length: RECORDS }, () => sample),
)
const archived: LogReader = {
  topic: 'events',
  read: async (_, from) => ({ entries: entries.slice(from, from + 900), end: RECORDS }),
}

const restoreOf = (appended: LogEntry[][], onDone: (offsets: number) => Promise<void>) => {
  const append: LogAppender['append'] = async (_, records) => {
    const base = appended.flat().length
    appended.push(entries.slice(base, base + records.length))
    return { base, keptTimes: true }
  }
  const appender = { append, appendHole: () => Promise.reject(), endOpenTransaction: () => Promise.reject() }
  const { signal } = new AbortController()
  return { archived, log: archived, appender, partition: 0, end: RECORDS, batchRecords: 500, onDone, signal }
}

test('batches have at most the permitted number of records, and all records are appended in order', async () => {
  const appended: LogEntry[][] = []
  let done = 0
  await appendFrom(
    restoreOf(appended, async offsets => {
      done += offsets
      expect(appended.flat()).toHaveLength(done)
    }),
    0,
  )
  expect(appended.map(batch => batch.length)).toEqual([500, 400, 300])
  expect(appended.flat()).toEqual(entries)
})

test('the next part of an archive is read while one is appended, one at a time, and its fault stops after what comes before', async () => {
  const appended: LogEntry[][] = []
  const log: string[] = []
  const restore = restoreOf(appended, async offsets => void log.push(`appended ${offsets}`))
  const read: LogReader['read'] = async (partition, from) => {
    log.push(`reads ${from}`)
    if (from === 900) throw new Error('damaged')
    return archived.read(partition, from)
  }
  await expect(appendFrom({ ...restore, archived: { ...archived, read } }, 0)).rejects.toThrow('damaged')
  expect(log).toEqual(['reads 0', 'reads 900', 'appended 500', 'appended 400'])
})

test('a large part of an archive is appended before the next one is read: each partition holds one in memory', async () => {
  const appended: LogEntry[][] = []
  const log: string[] = []
  const large = { ...sample, value: Buffer.alloc(600 * 1024) }
  const three = entriesFrom(0, [large, large, sample])
  const read: LogReader['read'] = async (_, from) => {
    log.push(`reads ${from}`)
    return { entries: three.slice(from, from + 2), end: three.length }
  }
  const restore = restoreOf(appended, async offsets => void log.push(`appended ${offsets}`))
  await appendFrom({ ...restore, archived: { ...archived, read }, end: three.length }, 0)
  expect(log.slice(0, 4)).toEqual(['reads 0', 'appended 1', 'appended 1', 'reads 2'])
})

test('the next batch, and the next part that is compared, wait for the limit of the rate', async () => {
  const gates: (() => void)[] = []
  const wait = (): Promise<void> => new Promise(resolve => gates.push(resolve))
  const appended: LogEntry[][] = []
  const restore = restoreOf(appended, wait)
  const appending = appendFrom(restore, 0)
  for (const batches of [1, 2, 3]) {
    await eventually(() => expect(gates).toHaveLength(batches), { every: 1 })
    expect(appended).toHaveLength(batches)
    gates.at(-1)?.()
  }
  await appending
  const comparing = compareWithArchive(restore, RECORDS)
  for (const parts of [4, 5]) {
    await eventually(() => expect(gates).toHaveLength(parts), { every: 1 })
    gates.at(-1)?.()
  }
  expect(await comparing).toBe(RECORDS)
})
