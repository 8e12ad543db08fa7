/**
 * Writes a log to a pipe whose reader may stop or leave, or to a file whose disk may be full. In: pino's stream
 * (sonic-boom). Out: its options and its end.
 * Promises: lines that cannot be written take a bounded amount of memory. Further lines are dropped, counted, and
 *   reported once when the reader, or the room, is back. The end of the process waits for the reader only briefly.
 */

/** Bytes of log lines that wait for the reader. */
const LOG_BYTES_MAX = 4 * 1024 * 1024

/** Milliseconds that writing the last lines may take. */
const LOG_END_MS = 500

/** The part of `node:fs` that sonic-boom's `flushSync` uses. */
type Files = { writeSync: (fd: number, text: string, ...others: never[]) => number }

type LogStream = {
  on(event: 'drop' | 'drain' | 'error', listener: () => void): unknown
  flushSync: () => void
  destroy(): void
}

/**
 * @param program the process: its stdout is the log
 * @param files the default export of `node:fs`
 * @param elapsed milliseconds of a monotonic clock
 */
export const boundLog = (program: { readonly stdout: unknown }, files: Files, elapsed: () => number) => {
  // HAZARD: a shell's pipe is blocking: a write to a full pipe blocks the process, even at its end. Node makes the pipe
  // non-blocking when it opens stdout.
  void program.stdout
  let dropped = 0

  /**
   * HAZARD: sonic-boom's `flushSync` retries forever and blocks the process if the reader has left (EPIPE) or does not
   * read (EAGAIN). pino calls it for each fatal line, too. Here, text that cannot be written in time counts as written.
   */
  const flushInTime = (flush: () => void): void => {
    const { writeSync } = files
    const deadline = elapsed() + LOG_END_MS
    files.writeSync = (fd, text, ...others) => {
      try {
        return writeSync(fd, text, ...others)
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EAGAIN' && elapsed() < deadline) throw error
        return Buffer.byteLength(text)
      }
    }
    try {
      flush()
    } finally {
      files.writeSync = writeSync
    }
  }

  return {
    /** A write to a full pipe fails with EAGAIN: retry for as long as the process runs. */
    options: { sync: false, maxLength: LOG_BYTES_MAX, retryEAGAIN: () => true },

    /** @param onDropped logs how many lines were dropped */
    watch: (stream: LogStream, onDropped: (dropped: number) => void): void => {
      const flush = stream.flushSync.bind(stream)
      stream.flushSync = () => flushInTime(flush)
      // HAZARD: without a listener, a write that fails ends the process. Its lines wait, and go with the next write.
      stream.on('error', () => undefined)
      stream.on('drop', () => dropped++)
      stream.on('drain', () => {
        if (dropped === 0) return
        const lines = dropped
        dropped = 0
        onDropped(lines)
      })
    },

    /** Writes what can still be written, and ends the log: nothing can be logged afterwards. */
    end: (stream: LogStream): void => {
      try {
        stream.flushSync()
      } catch {
        // The stream has no destination: these lines have no reader.
      }
      stream.destroy()
    },
  }
}
