/** Runs a program of another language in a copy of its folder, so that what it builds does not stay in the project. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/**
 * @param folder relative to `test/`, with a `run.sh`
 * @param files more files of the copy, by name
 * @param input its standard input
 * @returns the lines that `run.sh` prints
 * @throws Error with its standard error if it fails
 */
export const runCopy = async (
  folder: string,
  environment: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
  input = '',
): Promise<string[]> => {
  const copy = await mkdtemp(join(tmpdir(), 'commission-program-'))
  try {
    await cp(join(import.meta.dirname, '..', folder), copy, { recursive: true })
    for (const [name, content] of Object.entries(files)) await writeFile(join(copy, name), content)
    const env = { ...process.env, ...environment }
    const running = promisify(execFile)('sh', ['run.sh'], { cwd: copy, env, maxBuffer: 64 * 1024 * 1024 })
    running.child.stdin?.on('error', () => undefined).end(input)
    const { stdout } = await running
    return stdout.trimEnd().split('\n')
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}
