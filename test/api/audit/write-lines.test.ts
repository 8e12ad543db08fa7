/** Lines wait in bounded memory and for a bounded time, whatever the log does. */
import { expect, test } from 'vitest'
import { type AuditLog, createAuditWriter, type WriteResult } from '../../../api/audit/write-lines.ts'
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

test('a write that is too large loses its lines, and later ones have half of its bytes; one line is always tried', async () => {
  const { write, writes, counted } = created(false)
  const sizes = async (): Promise<number[]> => {
    await turn()
    return writes.map(({ texts }) => texts.length)
  }
  for (let n = 0; n < 20; n++) void write('x'.repeat(100))
  writes[0]?.done({ lines: 1 })
  expect(await sizes()).toEqual([1, 19])
  writes[1]?.done({ lines: 0, reason: 'MESSAGE_TOO_LARGE', isTooLarge: true })
  await turn()
  for (let n = 0; n < 20; n++) void write('x'.repeat(100))
  writes[2]?.done({ lines: 1 })
  expect(await sizes()).toEqual([1, 19, 1, 9])
  for (let at = 3; at < 7; at++) {
    writes[at]?.done({ lines: 0, reason: 'MESSAGE_TOO_LARGE', isTooLarge: true })
    await turn()
  }
  expect((await sizes()).slice(0, 8)).toEqual([1, 19, 1, 9, 4, 2, 1, 1])
  expect(counted).toEqual({ written: 2, lost: 19 + 9 + 4 + 2 + 1 })
})

test('a line that is too large alone does not make later writes larger', async () => {
  const { write, writes } = created(false)
  for (let n = 0; n < 8; n++) void write('x'.repeat(100))
  writes[0]?.done({ lines: 1 })
  await turn()
  writes[1]?.done({ lines: 0, reason: 'MESSAGE_TOO_LARGE', isTooLarge: true })
  await turn()
  void write('x'.repeat(5_000))
  writes[2]?.done({ lines: 0, reason: 'MESSAGE_TOO_LARGE', isTooLarge: true })
  for (let n = 0; n < 8; n++) void write('x'.repeat(100))
  await turn()
  expect(writes.map(({ texts }) => texts.length)).toEqual([1, 7, 1, 3])
})

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
  const ended = writer.end()
  writes[2]?.done({ lines: 1 })
  await turn()
  writes[3]?.done({ lines: 1 })
  expect(await next).toBe('written')
  await ended
  expect(counted).toEqual({ written: 5, lost: 0 })
})
