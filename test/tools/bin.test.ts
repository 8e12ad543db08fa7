/** `tools/bin/commission.mjs` called by its path, by any Node that can read it. */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Scope } from '../support/scope.ts'

/** Loaded first, it makes Node say that it has this version. Node 22.18 and 23.6 read TypeScript, too. */
const pretend = (version: string): string => {
  const source = `
    if (Number(process.env.STARTED ?? 0) === 3) throw new Error('started again and again')
    process.env.STARTED = Number(process.env.STARTED ?? 0) + 1
    Object.defineProperty(process, 'version', { value: 'v${version}' })
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  return `data:text/javascript,${encodeURIComponent(source)}`
}

/** A project whose program says by which Node it runs. */
const project = (scope: Scope) => {
  const root = mkdtempSync(join(tmpdir(), 'commission-bin-'))
  scope.onTestFinished(async () => rmSync(root, { recursive: true, force: true }))
  const installed = join(root, 'node_modules', '.bin', 'node')
  for (const folder of [join(root, 'tools', 'bin'), join(installed, '..')]) mkdirSync(folder, { recursive: true })
  const file = join(root, 'tools', 'bin', 'commission.mjs')
  copyFileSync(join(import.meta.dirname, '../../tools/bin/commission.mjs'), file)
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(root, 'tools', 'main.ts'), 'console.log("this Node", ...process.argv.slice(2))\n')
  const run = (version: string) => {
    const words = ['--import', pretend(version), file, 'parked', 'list']
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 100_000 })
    return { status, stdout, stderr }
  }
  const refusal = (version: string) => ({
    ...{ status: 1, stdout: '' },
    stderr: `commission needs Node 24, got v${version}: npm ci in the project installs it\n`,
  })
  return { installed, run, refusal }
}
const OLD = ['20.20.2', '22.18.0', '23.6.1']
const NEW = ['24.0.0', '25.1.0', '100.0.0']

test.for(NEW)('Node %s runs the command', (version, scope) => {
  const { run } = project(scope)
  expect(run(version)).toEqual({ status: 0, stdout: 'this Node parked list\n', stderr: '' })
})

test.for(OLD)(
  'Node %s starts the Node that the project installed, with the same words and exit code',
  (version, scope) => {
    const { installed, run } = project(scope)
    writeFileSync(installed, '#!/bin/sh\nshift 3\necho installed "$@"\nexit 3\n')
    chmodSync(installed, 0o755)
    expect(run(version)).toEqual({ status: 3, stdout: 'installed parked list\n', stderr: '' })
  },
)

test.for(OLD)('without an installed Node, Node %s says which one is wanted and which one it is', (version, scope) => {
  const { run, refusal } = project(scope)
  expect(run(version)).toEqual(refusal(version))
})

test('an installed Node that is too old does not start itself again and again', scope => {
  const { installed, run, refusal } = project(scope)
  symlinkSync(process.execPath, installed)
  expect(run('22.18.0')).toEqual(refusal('22.18.0'))
})
