/** Images and containers of a test, with the `docker` command. They are removed when their scope ends. */
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import type { Scope } from './scope.ts'

/** False without the command, and without an engine that answers it. */
export const dockerAnswers = spawnSync('docker', ['version']).status === 0

/** Returns what the command prints. @throws Error with its stderr if it fails */
export const docker = async (...args: readonly string[]): Promise<string> => {
  const { stdout } = await promisify(execFile)('docker', args, { maxBuffer: 64 * 1024 * 1024 })
  return stdout.trim()
}

/** Builds an image without the engine's cache. Returns its name. */
export const buildImage = async (scope: Scope, folder: string, target = 'service'): Promise<string> => {
  const name = `commission-test-${randomBytes(6).toString('hex')}`
  removeAtEnd(scope, 'image rm --force', name)
  await docker('build', '--no-cache', '--quiet', '--target', target, '--tag', name, folder)
  return name
}

export type Container = {
  readonly log: () => Promise<string>
  /** Returns a part of what the engine tells of it, by a template. */
  readonly inspect: (template: string) => Promise<string>
  readonly stop: () => Promise<unknown>
  /** Lists the files that it has added, changed or deleted. */
  readonly changes: () => Promise<string>
}

/** Starts a container in the background. */
export const startContainer = async (scope: Scope, ...args: readonly string[]): Promise<Container> => {
  const name = `commission-test-${randomBytes(6).toString('hex')}`
  removeAtEnd(scope, 'rm --force --volumes', name)
  await docker('run', '--detach', '--name', name, ...args)
  return {
    log: () => docker('logs', name),
    inspect: template => docker('inspect', '--format', template, name),
    stop: () => docker('stop', name),
    changes: () => docker('diff', name),
  }
}

/** Removes also what an interrupted command leaves. */
const removeAtEnd = (scope: Scope, command: string, name: string): void => {
  const will = runOnExit(`docker ${command} "$0"`, name)
  scope.onTestFinished(async () => {
    await docker(...command.split(' '), name)
    await will.revoke()
  })
}
