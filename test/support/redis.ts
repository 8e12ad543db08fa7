/** A test's own Redis, if the machine has one (Debian: redis-server). */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'vitest'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { freePort } from '../../services/ports.ts'
import { redisProgram } from './programs.ts'
import { eventually, type Scope } from './scope.ts'

export type Redis = {
  readonly url: string
  /** Starts an empty Redis at the same address, and waits until it answers. */
  readonly start: () => Promise<void>
  readonly kill: () => Promise<void>
  /** It keeps its connections but does not answer. */
  readonly freeze: () => void
  readonly thaw: () => void
  /** It answers, and refuses to write. */
  readonly becomeReplica: () => Promise<void>
  readonly becomeMaster: () => Promise<void>
}

/** Returns a Redis that is not started yet. It ends with the scope, and with this process. */
export const createRedis = async (scope: Scope): Promise<Redis> => {
  const port = await freePort()
  let child: ChildProcess | undefined
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  scope.onTestFinished(kill)
  return {
    url: `redis://127.0.0.1:${port}`,
    start: async () => {
      if (redisProgram === undefined) throw new Error('there is no redis-server on the PATH')
      const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
      child = spawn(redisProgram, settings, { stdio: 'ignore' })
      const will = runOnExit('kill -9 "$0"', String(child.pid))
      child.once('exit', () => void will.revoke())
      await eventually(async () => expect(await answerTo('PING', port)).toMatch(/^\+PONG/))
    },
    kill,
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    becomeReplica: async () => expect(await answerTo('REPLICAOF 127.0.0.1 1', port)).toMatch(/^\+OK/),
    becomeMaster: async () => expect(await answerTo('REPLICAOF NO ONE', port)).toMatch(/^\+OK/),
  }
}

const answerTo = (command: string, port: number): Promise<string> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`))
    socket.once('data', data => {
      socket.destroy()
      resolve(data.toString())
    })
    socket.once('error', () => resolve(''))
  })
