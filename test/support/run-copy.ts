/** Runs a program of another language in a copy of its folder, so that what it builds does not stay in the project. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import type { Scope } from './scope.ts'

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
  const copy = await copyFolder(folder)
  try {
    for (const [name, content] of Object.entries(files)) await writeFile(join(copy, name), content)
    const { stdout } = await start(copy, 'run.sh', environment, input)
    return stdout.trimEnd().split('\n')
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

/** `code` is the exit code; `lines` are those of standard output; `stderr` has no colours (Maven prints some). */
export type Ended = { readonly code: number; readonly lines: readonly string[]; readonly stderr: string }

/**
 * Copies the folder once, for several runs. Each run starts `run.sh` from another folder than its own.
 *
 * @param folder relative to `test/`, with a `run.sh`
 */
export const programCopy = async (scope: Scope, folder: string) => {
  const copy = await copyFolder(folder)
  scope.onTestFinished(() => rm(copy, { recursive: true, force: true }))
  return async (environment: Readonly<Record<string, string>>, input: string | Buffer): Promise<Ended> => {
    const ended = await start(tmpdir(), join(copy, 'run.sh'), environment, input).catch(error => error)
    const { code = 0, stdout, stderr } = ended as { code?: number; stdout: string; stderr: string }
    return { code, lines: stdout.split('\n').filter(line => line !== ''), stderr: stripVTControlCharacters(stderr) }
  }
}

const copyFolder = async (folder: string): Promise<string> => {
  const copy = await mkdtemp(join(tmpdir(), 'commission-program-'))
  await cp(join(import.meta.dirname, '..', folder), copy, { recursive: true })
  return copy
}

const start = (cwd: string, script: string, environment: Readonly<Record<string, string>>, input: string | Buffer) => {
  const env = { ...process.env, ...environment }
  const running = promisify(execFile)('sh', [script], { cwd, env, maxBuffer: 64 * 1024 * 1024 })
  running.child.stdin?.on('error', () => undefined).end(input)
  return running
}
