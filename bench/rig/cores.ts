/**
 * Gives processes a core of their own, and takes it away again: on few cores, what is measured and what it stands on
 * otherwise share all of them. Only where Linux's taskset is there, and the servers are ours.
 */
import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import type { Bench } from './bench.ts'

/**
 * Puts Elasticsearch and Kafka on one core, and the bench, with all that it starts from then on, on another one.
 * @param started processes that the bench has started before
 * @returns what puts everything back; nothing, and says why, where it cannot be done
 */
export const separate = async (
  { services, say }: Bench,
  started: readonly (number | undefined)[] = [],
): Promise<AsyncDisposable | undefined> => {
  const servers = [services.elasticsearch?.pid, services.kafka?.pid].filter(pid => pid !== undefined)
  if (process.platform !== 'linux' || servers.length < 2 || availableParallelism() < 2) {
    say('nothing is measured on a core of its own: that needs Linux, two cores and servers that were started here')
    return undefined
  }
  const [first, second] = await coresOf(process.pid).catch(() => [])
  if (first === undefined || second === undefined) {
    say('nothing is measured on a core of its own: there is no taskset here')
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
  const kept = stack.move()
  return { [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

const run = promisify(execFile)

/** All threads of a process; those that they start later inherit it. */
const pin = async (pid: number, cores: string): Promise<void> => {
  await run('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)])
}

/** The cores that a process may use, each by itself. */
const coresOf = async (pid: number): Promise<string[]> => {
  const { stdout } = await run('taskset', ['--cpu-list', '--pid', String(pid)])
  // "pid 17's current affinity list: 0-2,5"
  return stdout
    .slice(stdout.lastIndexOf(':') + 1)
    .trim()
    .split(',')
    .flatMap(range => {
      const [from = Number.NaN, to = from] = range.split('-').map(Number)
      return Array.from({ length: to - from + 1 }, (_, place) => String(from + place))
    })
}
