/** The audit log in a real file: what it has after each fault. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createFileLog, requireWritable } from '../../../api/audit/file-log.ts'

const faults = vi.hoisted((): { beforeStat: () => void } => ({ beforeStat: () => undefined }))
vi.mock('node:fs/promises', async importOriginal => {
  const original = await importOriginal<typeof import('node:fs/promises')>()
  const stat = (path: string) => {
    faults.beforeStat()
    return original.stat(path)
  }
  return { ...original, stat }
})

const created = () => {
  const folder = mkdtempSync(join(tmpdir(), 'commission-audit-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'audit.ndjson')
  const log = createFileLog(path)
  const write = (...texts: string[]) => log.write(texts.map(text => ({ text: `${text}\n`, org: undefined })))
  return { folder, path, log, write, content: (at = path) => readFileSync(at, 'utf8') }
}

test('lines are appended to a file that only its user reads', async () => {
  const { path, log, write, content } = created()
  expect(await write('a', 'b')).toEqual({ lines: 2 })
  appendFileSync(path, 'of another process\n')
  expect(await write('c')).toEqual({ lines: 1 })
  expect([content(), statSync(path).mode & 0o777]).toEqual(['a\nb\nof another process\nc\n', 0o600])
  await log.end()
})

test('after a rename the next line begins a new file', async () => {
  const { path, log, write, content } = created()
  await write('a')
  renameSync(path, `${path}.1`)
  expect(await write('b')).toEqual({ lines: 1 })
  expect(await write('c')).toEqual({ lines: 1 })
  expect([content(`${path}.1`), content()]).toEqual(['a\n', 'b\nc\n'])
  await log.end()
})

test('lines of a file that is removed during the write are written again, and once', async () => {
  const { path, log, write, content } = created()
  await write('a')
  // The first look of a write comes before it.
  let looks = 0
  let removals = 1
  faults.beforeStat = () => {
    if (looks++ > 0 && removals-- > 0) unlinkSync(path)
  }
  expect(await write('b')).toEqual({ lines: 1 })
  expect(content()).toBe('b\n')
  looks = 0
  removals = 100
  expect(await write('c')).toEqual({ lines: 0, reason: 'removed' })
  faults.beforeStat = () => undefined
  expect(await write('d')).toEqual({ lines: 1 })
  expect(content()).toBe('d\n')
  await log.end()
})

test('a directory that is away loses the lines, until it is back', async () => {
  const { folder, path, log, write, content } = created()
  rmSync(folder, { recursive: true })
  expect(await write('a')).toEqual({ lines: 0, reason: 'ENOENT' })
  await expect(requireWritable(path)).rejects.toThrow('ENOENT')
  mkdirSync(folder)
  await requireWritable(path)
  expect(await write('b')).toEqual({ lines: 1 })
  expect(content()).toBe('b\n')
  await log.end()
})

test('a line that was cut off is ended by the next one', async () => {
  const { path, log, write, content } = created()
  appendFileSync(path, 'cut')
  expect(await write('a')).toEqual({ lines: 1 })
  expect(content()).toBe('cut\na\n')
  await log.end()
})

test.skipIf(!existsSync('/dev/full'))('a full disk loses the lines', async () => {
  const log = createFileLog('/dev/full')
  expect(await log.write([{ text: 'a\n', org: undefined }])).toEqual({ lines: 0, reason: 'ENOSPC' })
  await log.end()
})
