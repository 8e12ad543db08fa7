import { expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogEntry, LogReader } from '../../../core/log/records/read-log.ts'
import { printLate } from '../../../tools/grow/late-records.ts'
import { DIFFERENCES_SHOWN } from '../../../tools/limits.ts'
import { entriesFrom } from '../archive/any-entries.ts'

const headers = encodeHeaders([
  ['ce_source', Buffer.from('/payroll\u001b[2J')],
  ['ce_id', Buffer.from('17')],
])
const record = { kind: 'record', timestamp: 0, key: null, value: null, headers } as const
const late = async (logs: readonly LogEntry[][], from: readonly number[], json: boolean, ends?: readonly number[]) => {
  const lines: string[] = []
  const log: LogReader = {
    topic: 'old',
    read: async (partition, offset) => {
      const all = logs[partition] ?? []
      return { entries: all.slice(offset, offset + 2), end: all.length }
    },
  }
  const count = await printLate(log, from, json, { out: text => void lines.push(String(text)) }, ends)
  return { count, lines }
}

test('each record after the given offsets is named with its position and the source of its event, which cannot move the cursor', async () => {
  const logs = [
    entriesFrom(0, [record, record, { ...record, kind: 'control' }, { ...record, headers: encodeHeaders([]) }]),
    entriesFrom(0, [record]),
  ]
  expect(await late(logs, [1, 1], false)).toEqual({
    count: 2,
    lines: [
      'old:0:1  1970-01-01T00:00:00.000Z  ce_source /payroll\\u001b[2J, ce_id 17\n',
      'old:0:3  1970-01-01T00:00:00.000Z  no ce_source\n',
    ],
  })
  const { lines } = await late(logs, [3, 0], true)
  expect(lines.map(line => JSON.parse(line))).toEqual([
    { position: 'old:0:3', published_at: '1970-01-01T00:00:00.000Z', source: null, event_id: null },
    { position: 'old:1:0', published_at: '1970-01-01T00:00:00.000Z', source: '/payroll\u001b[2J', event_id: '17' },
  ])
})

test('records in partitions that were added to the topic are named', async () => {
  const logs = [entriesFrom(0, [record]), entriesFrom(0, [record]), []]
  const { count, lines } = await late(logs, [1], false, [1, 1, 0])
  expect([count, lines]).toEqual([1, [expect.stringContaining('old:1:0')]])
})

test('a log that ends before the end that Kafka tells is refused, with the place', async () => {
  const log: LogReader = { topic: 'old', read: async () => ({ entries: [], end: 4 }) }
  const print = (ends: readonly number[]) => printLate(log, [4, 4], false, { out: () => undefined }, ends)
  expect(await print([4, 4])).toBe(0)
  await expect(print([4, 6])).rejects.toThrow('partition 1 of old ends at 6, but nothing from offset 4 on can be read')
})

test('of many records only the first are printed, and all as JSON; all are counted', async () => {
  const many = entriesFrom(
    0,
    Array.from({ length: DIFFERENCES_SHOWN + 5 }, () => record),
  )
  const { count, lines } = await late([many], [0], false)
  expect([count, lines.length]).toEqual([DIFFERENCES_SHOWN + 5, DIFFERENCES_SHOWN])
  expect((await late([many], [0], true)).lines).toHaveLength(DIFFERENCES_SHOWN + 5)
})
