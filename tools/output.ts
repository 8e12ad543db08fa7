/** The standard output, written no faster than it is read: an endless result would otherwise fill the memory. */
import { once } from 'node:events'
import { fstatSync, writeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import type { Out } from './context.ts'

/**
 * HAZARD: when a file takes only a part of a write, as on a disk that becomes full, Node drops the rest and reports no
 * error. After this call, an output that is a file writes the rest, too, which then fails.
 */
export const writeRest = (output: Writable, descriptor: number): void => {
  if (!fstatSync(descriptor).isFile()) return
  output._write = (chunk: Buffer, _encoding, done) => {
    try {
      for (let written = 0; written < chunk.length; ) written += writeSync(descriptor, chunk, written)
      done()
    } catch (error) {
      done(error instanceof Error ? error : new Error('failed'))
    }
  }
}

/** The promise of a write resolves when the output takes more. After a short result, the end of the process waits. */
export const createOutput =
  (stream: Writable): Out<string | Buffer> =>
  text =>
    stream.write(text) ? undefined : once(stream, 'drain').then(() => undefined)
