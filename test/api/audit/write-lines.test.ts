/** Lines wait in bounded memory and for a bounded time, whatever the log does. */
import { expect, test } from 'vitest'
import { type AuditLog, createAuditWriter, type WriteResult } from '../../../api/audit/audit-reads.ts'
import { AUDIT_BATCH_BYTES, AUDIT_BYTES_MAX, AUDIT_WAIT_MAX } from '../../../api/limits.ts'

type Pending = { readonly texts: readonly string[]; readonly done: (written: WriteResult) => void }

/** A log whose writes the test ends, and a clock that the test moves. */
const created = (isStrict: boolean) => {
  const writes: Pending[] = []
  const counted = { written: 0, lost: 0 }
  const reasons: (string | undefined)[] = []
  let clock = 0
  let timers: { readonly at: number; readonly run: () => void }[] = []
  const auditLog: AuditLog = {
    write: lines => new Promise(done => void writes.push({ texts: lines.map(({ text }) => text), done })),
    end: async () => undefined,
  }
  const writer = createAuditWriter({
    auditLog,
    isStrict,
    onLines: (outcome, lines, reason) => {
      counted[outcome] += lines
      if (outcome === 'lost') reasons.push(reason)
    },
    elapsed: () => clock,
    later: (milliseconds, run) => {
      const timer = { at: clock + milliseconds, run }
      timers.push(timer)
      return () => {
        timers = timers.filter(one => one !== timer)
      }
    },
  })
  const pass = (milliseconds: number): void => {
    clock += milliseconds
    for (const timer of timers.filter(({ at }) => at <= clock)) {
      timers = timers.filter(one => one !== timer)
      timer.run()
    }
  }
  const write = (text: string) => writer.write({ text, org: 'org_1' })
  return { writer, write, writes, counted, reasons, pass, timers: () => timers.length }
}
const turn = () => new Promise(setImmediate)

test('lines that arrive during a write are written together, in order, and each once', async () => {
  const { write, writes, counted, timers } = created(false)
  const first = write('a')
  const others = [write('b'), write('c')]
  expect(writes.map(({ texts }) => texts)).toEqual([['a']])
  writes[0]?.done({ lines: 1 })
  expect(await first).toBe('written')
  expect(writes.map(({ texts }) => texts)).toEqual([['a'], ['b', 'c']])
  writes[1]?.done({ lines: 1, reason: 'ENOSPC' })
  expect(await Promise.all(others)).toEqual(['written', 'lost'])
  expect([counted, timers()]).toEqual([{ written: 2, lost: 1 }, 0])
})

test('one write has a bounded number of bytes', async () => {
  const { write, writes } = created(false)
  const text = 'x'.repeat(AUDIT_BATCH_BYTES / 2)
  for (let n = 0; n < 4; n++) void write(text)
  expect(writes.map(({ texts }) => texts.length)).toEqual([1])
  writes[0]?.done({ lines: 1 })
  await turn()
  expect(writes.map(({ texts }) => texts.length)).toEqual([1, 2])
})

/** The sizes of all writes, and their results: a topic that refuses a batch of more than `max` bytes. */
const writeTo = async (max: number, lines: readonly string[], { write, writes }: ReturnType<typeof created>) => {
  for (const line of lines) void write(line)
  const sizes: number[] = []
  for (let at = 0; at < writes.length; at++) {
    const { texts, done } = writes[at] ?? { texts: [], done: () => undefined }
    // A record has a key and lengths beside its line.
    const bytes = texts.reduce((sum, { length }) => sum + length + 32, 61)
    sizes.push(texts.length)
    done(bytes > max ? { lines: 0, reason: 'MESSAGE_TOO_LARGE', isTooLarge: true } : { lines: texts.length })
    await turn()
  }
  writes.length = 0
  return sizes
}
const KiB = 1024
const line = 'x'.repeat(KiB)

test('a write of several lines that is too large loses them, and later ones have half of its bytes', async () => {
  const log = created(false)
  expect(await writeTo(100 * KiB, Array(401).fill(line), log)).toEqual([1, 400])
  expect(await writeTo(100 * KiB, Array(801).fill(line), log)).toEqual([1, 200, 100, ...Array(10).fill(50)])
  expect(log.counted).toEqual({ written: 1 + 1 + 500, lost: 400 + 200 + 100 })
  expect(await writeTo(100 * KiB, Array(101).fill(line), log)).toEqual([1, 50, 50])
})

test('a topic of the smallest size that is allowed gets all lines after some', async () => {
  const log = created(false)
  for (let times = 0; times < 8; times++) await writeTo(32 * KiB, Array(501).fill(line), log)
  const before = log.counted.lost
  expect(await writeTo(32 * KiB, Array(65).fill(line), log)).toEqual([1, 16, 16, 16, 16])
  expect(log.counted.lost).toBe(before)
})

test.each([300, 600 * KiB])(
  'a line of %s bytes that is refused alone makes later writes no smaller, nor larger',
  async length => {
    const log = created(true)
    await writeTo(0, ['y'.repeat(length)], log)
    const sizes = await writeTo(KiB * KiB, Array(1_001).fill('x'.repeat(300)), log)
    expect(sizes).toEqual([1, 1_000])
    expect(await writeTo(KiB * KiB, Array(1_025).fill(line), log)).toEqual([1, 512, 512])
    expect(log.counted).toEqual({ written: 1_001 + 1_025, lost: 1 })
  },
)

test.each([true, false])('strict %s: lines beyond the limit of bytes are lost at once', async isStrict => {
  const { write, counted, reasons } = created(isStrict)
  const text = 'x'.repeat(AUDIT_BYTES_MAX / 4)
  for (let n = 0; n < 4; n++) void write(text)
  expect(await write('y')).toBe('lost')
  expect([counted, reasons]).toEqual([{ written: 0, lost: 1 }, ['too_many_wait']])
})

test('a strict line that waits too long is dropped, and later ones are lost at once until the write ends', async () => {
  const { write, writes, pass, counted } = created(true)
  const [first, second] = [write('a'), write('b')]
  pass(AUDIT_WAIT_MAX)
  expect(await Promise.all([first, second, write('c')])).toEqual(['late', 'late', 'lost'])
  writes[0]?.done({ lines: 1 })
  await turn()
  expect(writes.map(({ texts }) => texts)).toEqual([['a']])
  expect(counted).toEqual({ written: 1, lost: 2 })
  const next = write('d')
  writes[1]?.done({ lines: 1 })
  expect(await next).toBe('written')
})

test('a line that is not strict and waits too long is still written, and later requests do not wait', async () => {
  const { writer, write, writes, pass, counted } = created(false)
  const [first, second] = [write('a'), write('b')]
  pass(AUDIT_WAIT_MAX)
  expect(await Promise.all([first, second, write('c')])).toEqual(['late', 'late', 'late'])
  writes[0]?.done({ lines: 1 })
  await turn()
  expect(writes.map(({ texts }) => texts)).toEqual([['a'], ['b', 'c']])
  // The second write has just begun, but the first one was slow.
  expect(await write('d')).toBe('late')
  writes[1]?.done({ lines: 2 })
  await turn()
  const next = write('e')
  const ended = writer.end(1_000)
  writes[2]?.done({ lines: 1 })
  await turn()
  writes[3]?.done({ lines: 1 })
  expect(await next).toBe('written')
  await ended
  expect(counted).toEqual({ written: 5, lost: 0 })
})

test.each([true, false])(
  'strict %s: lines that are not written when the time of a stop is up are lost',
  async isStrict => {
    const { writer, write, writes, pass, counted, reasons } = created(isStrict)
    for (const text of ['a', 'b', 'c']) void write(text)
    let isEnded = false
    const ended = writer.end(1_000).then(() => {
      isEnded = true
    })
    pass(999)
    await turn()
    expect([isEnded, counted]).toEqual([false, { written: 0, lost: 0 }])
    pass(1)
    await ended
    expect([counted, reasons]).toEqual([{ written: 0, lost: 3 }, ['process_ended']])
    // Each line is told once, also if its write ends after all.
    writes[0]?.done({ lines: 1 })
    pass(AUDIT_WAIT_MAX)
    await turn()
    expect([counted, writes.length]).toEqual([{ written: 0, lost: 3 }, 1])
  },
)

test('a stop waits no longer than the lines take, and loses none of them', async () => {
  const { writer, write, writes, counted, timers } = created(false)
  for (const text of ['a', 'b']) void write(text)
  const ended = writer.end(1_000)
  writes[0]?.done({ lines: 1 })
  await turn()
  writes[1]?.done({ lines: 1 })
  await ended
  expect([counted, timers()]).toEqual([{ written: 2, lost: 0 }, 0])
})
