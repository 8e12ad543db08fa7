/** Files that several processes write at the same time. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { directoryTarget } from '../../tools/archive/target.ts'
import { exportOrganization } from '../../tools/export/export.ts'
import { runningProcesses } from '../../tools/export/lock.ts'
import { CommandError } from '../../tools/failures.ts'
import { AS_USUAL, createWhole, writeWhole } from '../../tools/whole-file.ts'
import { growingSteps, growTo } from '../support/growing-copies.ts'
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
  const others = ['k1.erased.json.txt', 'k10.erased.json.new', 'k1.erased.json.new']
  for (const name of [...others, `k1.erased.json.${crypto.randomUUID()}.new`]) writeFileSync(join(folder, name), 'half')
  await createWhole(file, 'first')
  await createWhole(file, 'second')
  expect(readFileSync(file, 'utf8')).toBe('first')
  await writeWhole(file, 'third')
  expect(readFileSync(file, 'utf8')).toBe('third')
  expect(readdirSync(folder).sort()).toEqual(['k1.erased.json', ...others].sort())
})

test('a new file is closed to other users unless its mode is named, and one that is replaced keeps its mode', async t => {
  const folder = createFolder(t)
  const modeOf = (name: string): string => (statSync(join(folder, name)).mode & 0o777).toString(8)
  for (const write of [writeWhole, createWhole]) {
    await write(join(folder, write.name), 'pay')
    await write(join(folder, `${write.name}-usual`), 'receipt', AS_USUAL)
    expect(modeOf(write.name)).toBe('600')
    writeFileSync(join(folder, 'usual'), '')
    expect(modeOf(`${write.name}-usual`)).toBe(modeOf('usual'))
  }
  for (const mode of [0o600, 0o644, 0o660, 0o666]) {
    const file = join(folder, `${mode}`)
    writeFileSync(file, 'before')
    chmodSync(file, mode)
    await writeWhole(file, 'after', AS_USUAL)
    expect([modeOf(`${mode}`), readFileSync(file, 'utf8')]).toEqual([mode.toString(8), 'after'])
  }
})

test('a directory of an export, a copy or an archive is closed to other users, and what is inside is open with it', async t => {
  const folder = createFolder(t)
  const at = (...names: string[]): string => join(folder, ...names)
  const modeOf = (directory: string): string => (statSync(directory).mode & 0o777).toString(8)
  mkdirSync(at('usual'))
  await exportOrganization(
    { org: 'org_a', asOf: undefined, out: at('export'), parquet: false, json: false },
    growingSteps(4),
  )
  await growTo(at('copy'), 4)
  const archive = directoryTarget(at('archive'))
  const time = { sleep: async () => undefined, now: Date.now, say: () => undefined, elapsed: () => 0 }
  const { signal } = new AbortController()
  const lock = await archive.lock({ ...time, signal, processes: runningProcesses })
  await archive.create('events/0', Buffer.from('record'))
  await lock.release()
  for (const name of ['export', 'copy', 'archive']) expect([name, modeOf(at(name))]).toEqual([name, '700'])
  for (const inside of [at('copy', 'part-000001'), at('archive', 'events')]) {
    expect(modeOf(inside)).toBe(modeOf(at('usual')))
  }
})

test('a directory that was there keeps its mode, and a command warns if every user may read it', async t => {
  const folder = createFolder(t)
  const said: string[] = []
  const say = (line: string) => void said.push(line)
  const lockOf = (out: string) => {
    const { signal } = new AbortController()
    const steps = { say, sleep: async () => undefined, now: Date.now, signal, processes: runningProcesses }
    return directoryTarget(out).lock(steps)
  }
  const uses: ((out: string) => Promise<unknown>)[] = [
    out => {
      const options = { org: 'org_a', asOf: undefined, out, parquet: false, json: false }
      return exportOrganization(options, growingSteps(4, { say }))
    },
    out => growTo(out, 4, {}, growingSteps(4, { say })),
    lockOf,
  ]
  for (const [number, use] of uses.entries()) {
    for (const mode of [0o755, 0o750]) {
      const directory = join(folder, `${number}-${mode}`)
      mkdirSync(directory)
      chmodSync(directory, mode)
      said.length = 0
      await use(directory)
      expect(statSync(directory).mode & 0o777).toBe(mode)
      expect(said.filter(line => line.startsWith('warning'))).toEqual(
        mode === 0o755 ? [expect.stringContaining(`${directory} is open to every user`)] : [],
      )
    }
  }
})
