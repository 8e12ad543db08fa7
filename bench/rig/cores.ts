/**
 * Pins processes to cores of their own, and back. On few cores the measured process otherwise shares them with the
 * servers. Needs taskset (Linux), and servers that the bench started.
 */
import { execFile, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import type { Bench } from './bench.ts'

/**
 * Pins Elasticsearch and Kafka to one core; the bench, and all that it starts from then on, to another one.
 * @param started processes that the bench has started before
 * @returns what unpins them; undefined, with a message, if pinning is not possible
 */
export const separate = async (
  { services, say }: Bench,
  started: readonly (number | undefined)[] = [],
): Promise<AsyncDisposable | undefined> => {
  const servers = [services.elasticsearch?.pid, services.kafka?.pid].filter(pid => pid !== undefined)
  if (process.platform !== 'linux' || servers.length < 2 || availableParallelism() < 2) {
    say('processes are not pinned to cores: that needs Linux, two cores and servers that the bench started')
    return undefined
  }
  const [first, second] = await coresOf(process.pid).catch(() => [])
  if (first === undefined || second === undefined) {
    say('processes are not pinned to cores: taskset is missing')
    return undefined
  }
  await using stack = new AsyncDisposableStack()
  const put = async (pid: number, core: string): Promise<void> => {
    const before = (await coresOf(pid)).join(',')
    stack.defer(() => pin(pid, before))
    await pin(pid, core)
  }
  for (const pid of servers) await put(pid, first)
  for (const pid of [process.pid, ...started]) if (pid !== undefined) await put(pid, second)
  return stack.move()
}

/** Starts a process that computes all the time, until it is disposed of, or this process ends. */
export const takeCore = (): Disposable => {
  const child = spawn(process.execPath, ['--eval', computing], { stdio: ['pipe', 'ignore', 'ignore'] })
  return { [Symbol.dispose]: () => void child.kill() }
}

/** Between two parts of its work it looks whether its input has ended. */
const computing = `
const compute = () => {
  for (const end = Date.now() + 20; Date.now() < end; );
  setImmediate(compute)
}
process.stdin.on('end', () => process.exit()).resume()
compute()`

const run = promisify(execFile)

/** Pins all threads of a process. New threads inherit the cores. */
const pin = async (pid: number, cores: string): Promise<void> => {
  await run('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)])
}

/** The cores that a process may use, one by one. */
const coresOf = async (pid: number): Promise<string[]> => {
  const { stdout } = await run('taskset', ['--cpu-list', '--pid', String(pid)])
  // "pid 17's current affinity list: 0-2,5"
  return stdout
    .slice(stdout.lastIndexOf(':') + 1)
    .trim()
    .split(',')
    .flatMap(range => {
      const [from = Number.NaN, to = from] = range.split('-').map(Number)
      return Array.from({ length: to - from + 1 }, (_, index) => String(from + index))
    })
}
