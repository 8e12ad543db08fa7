/**
 * The audit log on the standard output, between the lines of the log. Each line has `"audit":true`.
 * Promises: lines of both logs never mix. A line counts as written when the pipe or the terminal has taken it.
 * Can go wrong: nobody reads → the lines wait in the stream, which takes a bounded number of bytes. The reader has
 *   left → they are lost.
 */
import type { AuditLog, Written } from './write-lines.ts'

/** The stream of the log (sonic-boom). It must not hold back bytes, so that `drain` means that all are written. */
export type OutputStream = {
  write(text: string): unknown
  on(event: 'drop' | 'drain' | 'error', listener: () => void): unknown
}

export const createOutputLog = (stream: OutputStream): AuditLog => {
  let isGone = false
  let isDropped = false
  let settle = (_: Written['failure']): void => undefined
  stream.on('drop', () => {
    isDropped = true
  })
  stream.on('drain', () => settle(undefined))
  stream.on('error', () => {
    isGone = true
    settle('reader_has_left')
  })

  return {
    write: async lines => {
      if (isGone) return { lines: 0, failure: 'reader_has_left' }
      const { promise, resolve } = Promise.withResolvers<Written['failure']>()
      settle = resolve
      isDropped = false
      let taken = 0
      for (const { text } of lines) {
        stream.write(text)
        if (isDropped) break
        taken++
      }
      if (taken === 0) return { lines: 0, failure: 'too_many_wait' }
      const failure = await promise
      if (failure !== undefined) return { lines: 0, failure }
      return taken < lines.length ? { lines: taken, failure: 'too_many_wait' } : { lines: taken }
    },
    end: async () => undefined,
  }
}
