/** The commands as processes: with a closed or full output, or interrupted while no server answers. Needs no server. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { compileCache } from '../support/compile-cache.ts'

const project = join(import.meta.dirname, '..', '..')
const start = (args: readonly string[], env: Record<string, string> = {}, stdout: 'pipe' | number = 'pipe') => {
  const child = spawn(process.execPath, ['tools/main.ts', ...args], {
    cwd: project,
    env: { ...compileCache, ...env },
    stdio: ['ignore', stdout, 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}
const ended = async (child: ChildProcess) => {
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', text => (said += text))
  const [code, signal] = await once(child, 'close')
  return { code, signal, said }
}

/** Accepts connections and never answers. */
const silentServer = async () => {
  const connected = Promise.withResolvers<void>()
  const server = createServer(socket => {
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    connected.resolve()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, connected: connected.promise }
}

test('a command whose output is closed fails', async () => {
  const child = start(['projection', '--help'])
  child.stdout?.destroy()
  expect(await ended(child)).toEqual({ code: 1, signal: null, said: expect.stringContaining('nobody reads') })
})

test.runIf(existsSync('/dev/full'))('a command that writes to a full disk fails and says so', async () => {
  const child = start(['projection', '--help'], {}, openSync('/dev/full', 'w'))
  expect(await ended(child)).toEqual({ code: 1, signal: null, said: expect.stringContaining('ENOSPC') })
})

test.for([['--help'], ['completion', 'bash']])(
  'a command whose output is a file that takes only a part of a write fails and says so: %s',
  async args => {
    const directory = mkdtempSync(join(tmpdir(), 'part-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const file = join(directory, 'out')
    // Two blocks are 1 or 2 KiB. Without a compile cache: its files would be cut off, too.
    const limited = 'ulimit -f 2; exec "$0" "$@" >"$OUT"'
    const child = spawn('sh', ['-c', limited, process.execPath, 'tools/main.ts', ...args], {
      cwd: project,
      env: { OUT: file },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const said = 'the output cannot be written: EFBIG\n'
    expect(await ended(child)).toEqual({ code: 1, signal: null, said })
    expect(statSync(file).size).toBeGreaterThan(0)
  },
)

test('closed standard error changes no exit code', async () => {
  const child = start(['parked', 'list', '--limit', 'many'])
  child.stderr?.destroy()
  expect(await ended(child)).toMatchObject({ code: 2, signal: null })
})

test('a command that is interrupted while no server answers ends, at the latest on the second signal', async () => {
  const { address, connected } = await silentServer()
  const env = { KAFKA_BROKERS: address, ELASTICSEARCH_URL: `http://${address}` }
  const child = start(['projection', 'rebuild'], env)
  const end = ended(child)
  await connected
  child.kill('SIGINT')
  child.kill('SIGTERM')
  expect(await end).toMatchObject({ code: 130, signal: null, said: expect.stringContaining('stopped') })
})

test('a command that is interrupted while Elasticsearch does not answer says that it was stopped, without a stack', async () => {
  const { address, connected } = await silentServer()
  const out = join(import.meta.dirname, 'no-such-directory', 'x')
  const child = start(['projection', 'totals', '--org', 'org_1', '--svg', out], {
    ELASTICSEARCH_URL: `http://${address}`,
  })
  const end = ended(child)
  await connected
  child.kill('SIGINT')
  expect(await end).toEqual({ code: 130, signal: null, said: 'stopped\n' })
})
