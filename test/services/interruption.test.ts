import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const module = pathToFileURL(join(import.meta.dirname, '..', '..', 'services', 'interruption.ts')).href

test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s stops the process', async signal => {
  const { child, next } = startWaiting(process.execPath, ['--input-type=module', '--eval', script])
  expect(await next()).toBe('waiting')
  child.kill(signal)
  expect(await next()).toBe(signal)
})

test('the end of the npm that runs a process stops it, even if npm could not send a signal', async () => {
  // A shell in place of npm. The process is its child, and the shell dies without a signal to it.
  const { child, next } = startWaiting('/bin/sh', ['-c', '"$NODE" --input-type=module --eval "$SCRIPT"; :'])
  expect(await next()).toBe('waiting')
  child.kill('SIGKILL')
  expect(await next()).toBe('npm is gone')
})

const script = `
  import { waitForInterruption } from ${JSON.stringify(module)}
  const interrupted = waitForInterruption(process)
  console.log('waiting')
  console.log(await interrupted)
`

const startWaiting = (program: string, args: readonly string[]) => {
  const env = { ...process.env, npm_lifecycle_event: 'services', NODE: process.execPath, SCRIPT: script }
  const child = spawn(program, args, { env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  })
  const lines = createInterface(child.stdout)
  return { child, next: async (): Promise<string> => String((await once(lines, 'line'))[0]) }
}
