import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeReference } from '../../../tools/export/reference.ts'

test('the reference is written, and said which file to open; with --json, scripts learn the names of all files', async scope => {
  const parent = await mkdtemp(join(tmpdir(), 'commission-reference-'))
  scope.onTestFinished(() => rm(parent, { recursive: true, force: true }))
  const directory = join(parent, 'new')
  for (const json of [false, true]) {
    const [out, said]: [string[], string[]] = [[], []]
    const steps = { out: (text: string) => void out.push(text), say: (line: string) => void said.push(line) }
    expect(await writeReference({ directory, json }, steps)).toBe(0)
    expect(said).toEqual([`open ${join(directory, 'index.html')}`])
    const files = await readdir(directory)
    expect(files).toContain('openapi.json')
    const told = out.map(text => JSON.parse(text))
    expect(told).toEqual(json ? [{ directory, files: expect.toSatisfy(names => isSame(names, files)) }] : [])
  }
})

const isSame = (a: readonly string[], b: readonly string[]): boolean => a.toSorted().join() === b.toSorted().join()
