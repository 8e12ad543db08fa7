/**
 * The audit log on the standard output, between the lines of the process log. Each line has `"audit":true`.
 * Promises: lines of both logs never mix. A line counts as written when the pipe or the terminal has taken it.
 * Can go wrong: nobody reads → the lines wait in the stream, which takes a bounded number of bytes. The reader has
 *   left → they are lost. A file without room → they count as lost, and may be written once there is room.
 */
import type { AuditLog, WriteResult } from './audit-reads.ts'

/** The stream of the process log (sonic-boom). It holds back no bytes, so that `drain` means: all are written. */
export type OutputStream = {
  write(text: string): unknown
  on(event: 'drop' | 'drain' | 'error', listener: (error?: { readonly code?: unknown }) => void): unknown
}

export const createOutputLog = (stream: OutputStream): AuditLog => {
  let isGone = false
  let isDropped = false
  /** Ends the write under way, if there is one, with the reason why its lines are lost. */
  let endWrite: (reason: WriteResult['reason']) => void = () => undefined
  stream.on('drop', () => {
    isDropped = true
  })
  stream.on('drain', () => endWrite(undefined))
  stream.on('error', ({ code } = {}) => {
    isGone ||= code === 'EPIPE'
    endWrite(isGone ? 'reader_has_left' : String(code))
  })

  return {
    write: async lines => {
      if (isGone) return { lines: 0, reason: 'reader_has_left' }
      const { promise, resolve } = Promise.withResolvers<WriteResult['reason']>()
      endWrite = resolve
      isDropped = false
      let taken = 0
      for (const { text } of lines) {
        stream.write(text)
        if (isDropped) break
        taken++
      }
      if (taken === 0) return { lines: 0, reason: 'too_many_wait' }
      const reason = await promise
      if (reason !== undefined) return { lines: 0, reason }
      return taken < lines.length ? { lines: taken, reason: 'too_many_wait' } : { lines: taken }
    },
    end: async () => undefined,
  }
}
