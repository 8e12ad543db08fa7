/** The Python client, built as a wheel and installed in an empty environment beside an API that serves the example. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { exampleIn, serveExample } from './client-example.ts'
import type { Scope } from './scope.ts'

const project = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** `installProof` adds the package that a proof needs. */
export const installPythonClient = async (scope: Scope) => {
  const served = await serveExample(scope)
  const folder = await mkdtemp(join(tmpdir(), 'commission-python-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const source = join(folder, 'client', 'python')
  const isSource = (path: string): boolean => !/\.venv|dist$|generated$/.test(path)
  await cp(join(project, 'client', 'python'), source, { recursive: true, filter: isSource })
  await cp(join(project, 'contract'), join(folder, 'contract'), { recursive: true })
  const wheel = (await run('./build.sh', { cwd: source })).stdout.trim()
  await run('python3', ['-m', 'venv', 'user'], { cwd: folder })
  const python = join(folder, 'user', 'bin', 'python')
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', join(source, wheel)])
  const installProof = () =>
    run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `${join(source, wheel)}[prove]`])
  const page = await readFile(join(source, 'README.md'), 'utf8')

  /** Runs a program. Returns its lines. */
  const runProgram = async (program: string, environment = served.environment): Promise<string[]> => {
    const file = join(folder, 'program.py')
    await writeFile(file, program)
    return (await run(python, [file], { cwd: folder, env: environment })).stdout.trimEnd().split('\n')
  }
  return { ...served, example: exampleIn(page, 'python'), runProgram, installProof }
}
