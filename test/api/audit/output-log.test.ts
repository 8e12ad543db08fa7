/** The audit log on the standard output. test/flow/audit.test.ts has the real stream. */
import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { createOutputLog } from '../../../api/audit/output-log.ts'

class Stream extends EventEmitter {
  readonly texts: string[] = []
  full = false
  write(text: string): void {
    if (this.full) this.emit('drop')
    else this.texts.push(text)
  }
}
const line = (text: string) => ({ text, org: undefined })

test('lines are written when the stream has none left, and not before', async () => {
  const stream = new Stream()
  const log = createOutputLog(stream)
  let written: unknown
  const writing = log.write([line('a'), line('b')]).then(result => (written = result))
  await new Promise(setImmediate)
  expect([stream.texts, written]).toEqual([['a', 'b'], undefined])
  stream.emit('drain')
  expect(await writing).toEqual({ lines: 2 })
})

test('a full stream, and one whose reader has left, take no line', async () => {
  const stream = new Stream()
  const log = createOutputLog(stream)
  stream.full = true
  expect(await log.write([line('a')])).toEqual({ lines: 0, reason: 'too_many_wait' })
  stream.full = false
  const writing = log.write([line('b')])
  stream.emit('error', { code: 'EPIPE' })
  expect(await writing).toEqual({ lines: 0, reason: 'reader_has_left' })
  expect(await log.write([line('c')])).toEqual({ lines: 0, reason: 'reader_has_left' })
})

test('a disk that has room again takes the next line', async () => {
  const stream = new Stream()
  const log = createOutputLog(stream)
  const lost = log.write([line('a')])
  stream.emit('error', { code: 'ENOSPC' })
  expect(await lost).toEqual({ lines: 0, reason: 'ENOSPC' })
  const written = log.write([line('b')])
  stream.emit('drain')
  expect(await written).toEqual({ lines: 1 })
})
