/** The standard output, written no faster than it is read: an endless result would otherwise fill the memory. */
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Out } from './context.ts'

/** The promise of a write resolves when the output takes more. After a short result, the end of the process waits. */
export const createOutput =
  (stream: Writable): Out<string | Buffer> =>
  text =>
    stream.write(text) ? undefined : once(stream, 'drain').then(() => undefined)
