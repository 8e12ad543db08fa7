/** The linter reports a promise that no code awaits, also when its type comes from another file. */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

const other = `
export type Steps = { readonly stop: () => Promise<void> }
export const start = (): Steps => ({ stop: async () => undefined })
export const ask = async (): Promise<number> => 1
`
const planted = {
  'a call of a function from another file': 'ask()',
  'a call of a method whose type is in another file': 'start().stop()',
  'a promise with a listener for success only': 'ask().then(() => undefined)',
  'an asynchronous callback whose caller ignores the promise': '[1].forEach(async () => ask())',
}

test('the style check refuses each kind of promise that no code awaits', async scope => {
  const folder = await mkdtemp(join(tmpdir(), 'linter-'))
  scope.onTestFinished(() => rm(folder, { recursive: true }))
  await copyFile(join(root, 'biome.json'), join(folder, 'biome.json'))
  await writeFile(join(folder, 'other.ts'), other)
  const names = Object.keys(planted)
  for (const [at, code] of Object.values(planted).entries()) {
    const text = `import { ask, start } from './other.ts'\n\nexport const run = (): void => {\n  ${code}\n}\nvoid start\nvoid ask\n`
    await writeFile(join(folder, `planted-${at}.ts`), text)
  }
  const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome')
  const said = await new Promise<string>(resolve => {
    const args = [biome, 'lint', '--reporter=json', '.']
    execFile(process.execPath, args, { cwd: folder }, (_, stdout, stderr) => resolve(stdout + stderr))
  })
  for (const [at, name] of names.entries()) {
    expect(said, name).toMatch(new RegExp(`"lint/nursery/no(?:Floating|Misused)Promises"[^]*?planted-${at}\\.ts`))
  }
})
