/** Files that several processes write at the same time. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CommandError } from '../../tools/failures.ts'
import { createWhole, writeWhole } from '../../tools/whole-file.ts'
import type { Scope } from '../support/scope.ts'

const createFolder = (t: Scope): string => {
  const folder = mkdtempSync(join(tmpdir(), 'whole-file-'))
  t.onTestFinished(async () => rmSync(folder, { recursive: true }))
  return folder
}

test('of several that write a file at once, each one succeeds or is refused by name, and the file is whole', async t => {
  const folder = createFolder(t)
  const file = join(folder, 'receipt.json')
  const texts = Array.from({ length: 8 }, (_, number) => `${number}`.repeat(100_000))
  for (const write of [writeWhole, createWhole]) {
    for (let round = 0; round < 20; round++) {
      rmSync(file, { force: true })
      const ended = await Promise.allSettled(texts.map(text => write(file, text)))
      for (const one of ended) if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(CommandError)
      if (ended.some(({ status }) => status === 'fulfilled')) expect(texts).toContain(readFileSync(file, 'utf8'))
    }
  }
})

test('a file that is there stays as it is, and what a killed process left is removed', async t => {
  const folder = createFolder(t)
  const file = join(folder, 'k1.erased.json')
  const others = ['k1.erased.json.txt', 'k10.erased.json.new']
  for (const name of [...others, 'k1.erased.json.new', `k1.erased.json.${crypto.randomUUID()}.new`])
    writeFileSync(join(folder, name), 'half')
  await createWhole(file, 'first')
  await createWhole(file, 'second')
  expect(readFileSync(file, 'utf8')).toBe('first')
  await writeWhole(file, 'third')
  expect(readFileSync(file, 'utf8')).toBe('third')
  expect(readdirSync(folder).sort()).toEqual(['k1.erased.json', ...others].sort())
})
