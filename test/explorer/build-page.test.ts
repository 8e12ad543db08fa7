/** The built page: its size, its policy, and that it names no other host. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { buildPage } from '../../explorer/build-page.ts'

test('the page is less than 400 KB compressed, has only files of its own, and a policy that allows nothing else', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'explorer-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await buildPage(process.execPath, folder, t.signal)
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile())
  const files = await Promise.all(
    names.map(async ({ parentPath, name }) => ({ name, bytes: await readFile(join(parentPath, name)) })),
  )
  expect(files.map(({ name }) => name.replace(/-[\w-]{8}\./, '.')).toSorted()).toEqual([
    ...['icon.svg', 'index.css', 'index.html', 'index.js'],
  ])
  const compressed = files.reduce((sum, { bytes }) => sum + gzipSync(bytes).length, 0)
  expect(compressed).toBeGreaterThan(10_000)
  expect(compressed).toBeLessThan(400_000)

  const html = String(files.find(({ name }) => name === 'index.html')?.bytes)
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1]?.split('; ') ?? []
  expect(policy).toEqual(expect.arrayContaining(["default-src 'none'", "script-src 'self'", "connect-src 'self'"]))
  expect(policy.join()).not.toMatch(/unsafe|\*|https?:|data:/)
  expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?![^>]* src=)/)
  const addresses = files.flatMap(({ bytes }) => String(bytes).match(/https?:\/\/[\w.-]+/g) ?? [])
  // Names of XML namespaces: nothing is read from there.
  expect(addresses.filter(address => address !== 'http://www.w3.org')).toEqual([])
})
