/**
 * How a log is written to a pipe whose reader may stop or leave. In: the stream of pino (sonic-boom). Out: options of
 * it, and its end.
 * Promises: lines that nobody reads take a bounded amount of memory; those beyond it are dropped, counted, and told of
 *   once when the reader is back; the end of the process waits for the reader only for a moment.
 */

/** Bytes of log lines that wait for their reader. */
const LOG_BYTES_MAX = 4 * 1024 * 1024

/** Milliseconds that the last lines may take. */
const LOG_END_TIME = 500

/** Node's `fs`, as far as sonic-boom writes with it when it does not wait. */
type Files = { writeSync: (fd: number, text: string, ...others: never[]) => number }

/** As far as it is used here. */
type LogStream = {
  on(event: 'drop' | 'drain', listener: () => void): unknown
  flushSync: () => void
  destroy(): void
}

/**
 * @param program its stdout is where the log goes
 * @param files the default export of `node:fs`
 * @param now milliseconds of a clock that never goes back
 */
export const boundLog = (program: { readonly stdout: unknown }, files: Files, now: () => number) => {
  // HAZARD: the pipe of a shell blocks. A write that waits in it holds the process, also its end. As soon as Node opens
  // stdout the pipe blocks no more.
  void program.stdout
  let dropped = 0

  /**
   * HAZARD: sonic-boom's `flushSync` tries again for ever, and holds the process: where the reader has left (EPIPE),
   * and where it does not read (EAGAIN). pino calls it for each fatal line, too. What cannot be written in time passes
   * for written.
   */
  const flushInTime = (flush: () => void): void => {
    const { writeSync } = files
    const until = now() + LOG_END_TIME
    files.writeSync = (fd, text, ...others) => {
      try {
        return writeSync(fd, text, ...others)
      } catch (error) {
        if ((error as { code?: unknown }).code === 'EAGAIN' && now() < until) throw error
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
    /** A full pipe answers EAGAIN: it is tried again, for ever while the process runs. */
    options: { sync: false, maxLength: LOG_BYTES_MAX, retryEAGAIN: () => true },

    /** @param say logs how many lines were dropped */
    watch: (stream: LogStream, say: (dropped: number) => void): void => {
      const flush = stream.flushSync.bind(stream)
      stream.flushSync = () => flushInTime(flush)
      stream.on('drop', () => dropped++)
      stream.on('drain', () => {
        if (dropped === 0) return
        const lines = dropped
        dropped = 0
        say(lines)
      })
    },

    /** Writes what can be written at once. Afterwards nothing is logged any more. */
    end: (stream: LogStream): void => {
      try {
        stream.flushSync()
      } catch {
        // It has nothing to write to: nobody misses these lines.
      }
      stream.destroy()
    },
  }
}
