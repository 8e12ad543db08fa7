/** Python packages with exact versions, in an environment of their own. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Scope } from './scope.ts'

const run = promisify(execFile)

/** Installs them without running anything of theirs. Returns the folder of the programs. */
export const installPython = async (scope: Scope, requirements: string): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-python-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await run('python3', ['-m', 'venv', folder])
  const options = ['--quiet', '--disable-pip-version-check', '--only-binary', ':all:', '--requirement', requirements]
  await run(join(folder, 'bin', 'pip'), ['install', ...options])
  return join(folder, 'bin')
}
