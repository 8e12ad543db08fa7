/**
 * The audit log in a file. In: lines of JSON. Out: how many of them the operating system has taken.
 * Promises: a killed process loses no line that was reported as written; a lost machine may lose the last ones, because
 *   nothing waits for the disk. If the file is renamed, the next line begins a new file. If it is removed during a
 *   write, the lines are written again to a new file.
 * Can go wrong: no room, no file, no right → the lines are lost, and the next write opens the file again. A line that
 *   was cut off stays, and the next one begins on a line of its own.
 */
import { type FileHandle, open, stat } from 'node:fs/promises'
import type { AuditLine, AuditLog, WriteResult } from './audit-reads.ts'

/** Only the user of the process reads the file: it says who reads whose pay. */
const MODE = 0o600
const NEWLINE = 0x0a
/** Times that lines are written again because their file was removed. */
const TRIES = 3

/** Opens nothing before the first write. */
export const createFileLog = (path: string): AuditLog => {
  let file: OpenFile | undefined

  const close = async (): Promise<void> => {
    const closing = file
    file = undefined
    await closing?.handle.close().catch(() => undefined)
  }

  const append = async (lines: readonly AuditLine[], tries: number): Promise<WriteResult> => {
    let bytes = Buffer.alloc(0)
    let bytesWritten = 0
    /** Bytes before the first line: a newline, if the last line was cut off. */
    let bytesBefore = 0
    try {
      // Before the write, too: a renamed file may be compressed and removed at any time.
      if (file && !(await file.isStillAt(path))) await close()
      file ??= await openFile(path)
      bytesBefore = file.isCutOff ? 1 : 0
      bytes = Buffer.from(`${file.isCutOff ? '\n' : ''}${lines.map(({ text }) => text).join('')}`)
      while (bytesWritten < bytes.length) {
        bytesWritten += (await file.handle.write(bytes, bytesWritten)).bytesWritten
      }
      file.isCutOff = false
      if (await file.isStillAt(path)) return { lines: lines.length }
      const isRemoved = (await file.handle.stat()).nlink === 0
      await close()
      if (!isRemoved) return { lines: lines.length }
      return tries > 1 ? await append(lines, tries - 1) : { lines: 0, reason: 'removed' }
    } catch (error) {
      await close()
      return { lines: linesIn(bytes.subarray(bytesBefore, bytesWritten)), reason: codeOf(error) }
    }
  }

  return { write: lines => append(lines, TRIES), end: close }
}

type OpenFile = {
  readonly handle: FileHandle
  /** Whether the last line has no end, because a write was cut off. */
  isCutOff: boolean
  readonly isStillAt: (path: string) => Promise<boolean>
}

/** Opens a file for lines, and makes it if it is missing. @throws Error if it cannot be written */
const openFile = async (path: string): Promise<OpenFile> => {
  const handle = await open(path, 'a+', MODE)
  try {
    const { ino, dev, size } = await handle.stat()
    const last = Buffer.alloc(1, NEWLINE)
    if (size > 0) await handle.read(last, 0, 1, size - 1)
    const isStillAt = async (): Promise<boolean> => {
      const there = await stat(path).catch(() => undefined)
      return there?.ino === ino && there.dev === dev
    }
    return { handle, isCutOff: last[0] !== NEWLINE, isStillAt }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** @throws Error if lines cannot be appended to the file */
export const requireWritable = async (path: string): Promise<void> => {
  const { handle } = await openFile(path)
  await handle.close()
}

const linesIn = (bytes: Buffer): number => {
  let lines = 0
  for (const byte of bytes) if (byte === NEWLINE) lines++
  return lines
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'failed'
