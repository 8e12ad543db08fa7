/** DuckDB from its package in PyPI, in an environment of its own. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Scope } from './scope.ts'

const VERSION = '1.5.6'
const run = promisify(execFile)

/** Returns the folder of the program `duckdb`. */
export const installDuckdb = async (scope: Scope): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-duckdb-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await run('python3', ['-m', 'venv', folder])
  const options = ['--quiet', '--disable-pip-version-check', '--only-binary', ':all:']
  await run(join(folder, 'bin', 'pip'), ['install', ...options, `duckdb-cli==${VERSION}`])
  return join(folder, 'bin')
}

/** Returns the rows of a query. @param folder of the program @param cwd directory of its files */
export const queryDuckdb = async (
  folder: string,
  cwd: string,
  query: string,
): Promise<Readonly<Record<string, unknown>>[]> => {
  const { stdout } = await run(join(folder, 'duckdb'), ['-json', '-c', query], { cwd })
  return JSON.parse(stdout || '[]')
}
