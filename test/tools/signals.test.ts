/** A command that a signal stops. */
import { EventEmitter } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createStop } from '../../tools/signals.ts'

test('a command that does not end in time after a signal fails and says so', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const said: string[] = []
  const codes: number[] = []
  const process = Object.assign(new EventEmitter(), { exit: (code: number) => void codes.push(code) })
  const signal = createStop(line => void said.push(line), process)()
  process.emit('SIGTERM')
  expect(signal.reason).toMatchObject({ message: 'stopped' })
  vi.advanceTimersByTime(8_999)
  expect([said, codes]).toEqual([[], []])
  vi.advanceTimersByTime(1)
  expect([said, codes]).toEqual([['stopped: it did not end within 9 s'], [1]])
})
