/** A pipe like one of a shell. The test controls its reader. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scope } from './scope.ts'

export type Pipe = {
  /** The end that a process writes to: blocking, as in a shell. */
  readonly writeEnd: number
  /** Opens another write end, non-blocking as Node opens it. The caller closes it. */
  readonly nonBlockingEnd: () => number
  /** Fills the pipe to the last byte. */
  readonly fill: () => void
  readonly read: () => string
  readonly closeReader: () => void
}

export const createPipe = (scope: Scope): Pipe => {
  const folder = mkdtempSync(join(tmpdir(), 'commission-pipe-'))
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writeEnd = openSync(path, constants.O_WRONLY)
  let isOpen = true
  const closeReader = (): void => {
    if (isOpen) closeSync(reader)
    isOpen = false
  }
  scope.onTestFinished(async () => {
    closeReader()
    closeSync(writeEnd)
    rmSync(folder, { recursive: true })
  })
  return {
    writeEnd,
    nonBlockingEnd: () => openSync(path, constants.O_WRONLY | constants.O_NONBLOCK),
    fill: () => {
      const filler = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
      for (const bytes of [4_096, 1]) {
        const chunk = Buffer.alloc(bytes, '\n')
        for (let full = false; !full; ) full = isFull(() => writeSync(filler, chunk))
      }
      closeSync(filler)
    },
    read: () => {
      let text = ''
      const chunk = Buffer.alloc(65_536)
      for (let length = 1; length > 0; text += chunk.toString('utf8', 0, length)) {
        length = 0
        isFull(() => {
          length = readSync(reader, chunk)
        })
      }
      return text
    },
    closeReader,
  }
}

/** Whether a call would block. */
const isFull = (call: () => void): boolean => {
  try {
    call()
    return false
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return true
    throw error
  }
}
