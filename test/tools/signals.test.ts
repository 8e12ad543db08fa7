/** A command that a signal stops. */
import { EventEmitter } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import { CommandError, messageOf } from '../../tools/failures.ts'
import { createStop } from '../../tools/signals.ts'

test('a command that does not end in time after a signal fails and says so', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const said: string[] = []
  const codes: number[] = []
  const process = Object.assign(new EventEmitter(), { exit: (code: number) => void codes.push(code) })
  const signal = createStop(line => void said.push(line), process).signal()
  process.emit('SIGTERM')
  expect(messageOf(signal.reason)).toBe('stopped')
  // Callers that go on after a refusal must not go on after a stop.
  expect(signal.reason).not.toBeInstanceOf(CommandError)
  vi.advanceTimersByTime(8_999)
  expect([said, codes]).toEqual([[], []])
  vi.advanceTimersByTime(1)
  expect([said, codes]).toEqual([['stopped: it did not end within 9 s'], [1]])
})

test('a command that Ctrl-C stopped before it was done ends with 130, and one that was done with its own code', () => {
  const program = Object.assign(new EventEmitter(), { exit: () => undefined })
  const stop = createStop(() => undefined, program)
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  stop.signal()
  program.emit('SIGINT')
  expect([stop.codeOf(1), stop.codeOf(0), stop.codeOf(3)]).toEqual([130, 0, 3])
})

test('a command that SIGTERM stopped ends with 1', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const program = Object.assign(new EventEmitter(), { exit: () => undefined })
  const stop = createStop(() => undefined, program)
  stop.signal()
  program.emit('SIGTERM')
  expect(stop.codeOf(1)).toBe(1)
})
