/** Files of secret keys, on a file system with and without links. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { makeSigningKey, readSigningKey } from '../../../tools/signing/signing-key.ts'
import { disk } from '../../support/watched-disk.ts'

const links = vi.hoisted(() => ({ allowed: true }))

vi.mock('node:fs/promises', async original => {
  const files = (await import('../../support/watched-disk.ts')).watchDisk(await original())
  const link: typeof files.link = async (from, to) => {
    if (!links.allowed) throw Object.assign(new Error('no links here'), { code: 'EPERM' })
    return files.link(from, to)
  }
  return { ...files, link }
})

const make = () => {
  const folder = mkdtempSync(join(tmpdir(), 'signing-key-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'close.key')
  const steps = { out: () => undefined, say: () => undefined }
  return { folder, file, run: () => makeSigningKey({ name: 'close', out: file, json: false }, steps) }
}

test.each([true, false])(
  'a secret key is on disk before its file has its name, and only its owner may read it (links: %s)',
  async allowed => {
    links.allowed = allowed
    const { folder, file, run } = make()
    disk.done = []
    expect(await run()).toBe(0)
    const done = disk.done.map(one => one.replace(`${folder}/`, '').replace(/\.[0-9a-f-]{36}\./, '.ID.'))
    expect(done.filter(one => !one.startsWith('rename'))).toEqual(['sync close.key.ID.new', `sync ${folder}`])
    expect([readdirSync(folder), statSync(file).mode & 0o777]).toEqual([[basename(file)], 0o600])
    expect((await readSigningKey(file))?.verifier.name).toBe('close')
  },
)

test.each([true, false])('a file that is there stays as it is (links: %s)', async allowed => {
  links.allowed = allowed
  const { folder, file, run } = make()
  writeFileSync(file, 'another key')
  await expect(run()).rejects.toThrow(`${file} is there already, and stays as it is: choose another file`)
  expect([readdirSync(folder), readFileSync(file, 'utf8')]).toEqual([['close.key'], 'another key'])
})

test.each([
  [true, true],
  [true, false],
  [false, true],
  [false, false],
])(
  'a file beside it, such as the next secret key, is never removed (links: %s; refused: %s)',
  async (allowed, refused) => {
    links.allowed = allowed
    const { folder, file, run } = make()
    const next = `${file}.new`
    writeFileSync(next, 'the next key')
    if (refused) writeFileSync(file, 'another key')
    const left = `${file}.${crypto.randomUUID()}.new`
    writeFileSync(left, 'of a killed run')
    await run().catch(() => undefined)
    expect(readFileSync(next, 'utf8')).toBe('the next key')
    const names = [file, next, ...(refused ? [left] : [])].map(name => basename(name))
    expect(readdirSync(folder).sort()).toEqual(names.sort())
  },
)
