/**
 * CPU and memory of processes, as Linux counts them. Undefined on other systems, and for processes that cannot be seen.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { Service } from '../../services/service.ts'
import type { Services } from '../../services/services.ts'

/** CPU seconds by process, and those of all others as `everything else`. Processes that cannot be seen are missing. */
export type Cpu = Readonly<Record<string, number>>

/** Linux reports CPU time in hundredths of a second, whatever its own clock is. */
const TICKS_PER_SECOND = 100

/** The ids of processes by name; several processes of one name count together. Undefined if it cannot be seen. */
export type Pids = Readonly<Record<string, Pid>>
type Pid = number | undefined | readonly (number | undefined)[]

/** Returns the ids of the servers' processes by name, for `watchCpu`. */
export const serverPids = ({ elasticsearch, kafka }: Services) => ({
  Elasticsearch: pidsOf(elasticsearch),
  Kafka: pidsOf(kafka),
})
const pidsOf = (service: Service | undefined): Pid => service?.nodes?.map(({ pid }) => pid) ?? service?.pid

/**
 * Starts to watch processes. @returns a function that returns the CPU used since: the bench itself as `bench`, and the
 * compilers of all JVMs apart. A JVM compiles for minutes after its start, whatever it serves.
 */
export const watchCpu = (pids: Pids): (() => Cpu) => {
  const watched = Object.entries({ ...pids, bench: process.pid })
  const before = new Map(watched.map(([name, pid]) => [name, usageOf(pid)]))
  const machineBefore = machineCpuSeconds()
  return () => {
    const machine = machineCpuSeconds()
    const used: Record<string, number> = {}
    let compilers = 0
    for (const [name, pid] of watched) {
      const [then, now] = [before.get(name), usageOf(pid)]
      if (then === undefined || now === undefined) continue
      const compiled = [...now.compilers].map(([thread, seconds]) => seconds - (then.compilers.get(thread) ?? 0))
      const compiling = compiled.reduce((sum, seconds) => sum + seconds, 0)
      used[name] = now.seconds - then.seconds - compiling
      compilers += compiling
    }
    const isAllSeen = Object.keys(used).length === watched.length
    if (machine === undefined || machineBefore === undefined || !isAllSeen) return used
    const ours = Object.values(used).reduce((sum, seconds) => sum + seconds, compilers)
    return { ...used, [COMPILERS]: compilers, [EVERYTHING_ELSE]: Math.max(0, machine - machineBefore - ours) }
  }
}

export const COMPILERS = 'compilers of the JVMs'
/** CPU of other processes of the machine. If it is high, times and rates are unreliable, and ratios even more. */
export const EVERYTHING_ELSE = 'everything else'

/** Seconds of all threads of a process since its start, and those of its compiler threads that still exist. */
type Usage = { readonly seconds: number; readonly compilers: ReadonlyMap<string, number> }

const usageOf = (pid: Pid): Usage | undefined => {
  if (typeof pid !== 'object') return usageOfProcess(pid)
  const all = pid.map(usageOfProcess).filter(usage => usage !== undefined)
  if (all.length < pid.length) return undefined
  return {
    seconds: all.reduce((sum, { seconds }) => sum + seconds, 0),
    compilers: new Map(all.flatMap(({ compilers }) => [...compilers])),
  }
}

const usageOfProcess = (pid: number | undefined): Usage | undefined => {
  const seconds = cpuSeconds(`${pid}/stat`)
  if (seconds === undefined) return undefined
  const compilers = threadsOf(pid).flatMap((thread): [string, number][] => {
    const name = read(`${pid}/task/${thread}/comm`)
    const used = /^C[12] Compiler/.test(name ?? '') ? cpuSeconds(`${pid}/task/${thread}/stat`) : undefined
    return used === undefined ? [] : [[thread, used]]
  })
  return { seconds, compilers: new Map(compilers) }
}

const threadsOf = (pid: number | undefined): string[] => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

const cpuSeconds = (file: string): number | undefined => {
  const stat = read(file)
  if (stat === undefined) return undefined
  // The name in parentheses may contain anything. After it, the 12th and 13th fields are user and system time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Of all processes on all cores. Time that the host took away (steal) counts as used. */
const machineCpuSeconds = (): number | undefined => {
  const line = read('stat')?.split('\n', 1)[0]
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    line?.split(/ +/).slice(1).map(Number) ?? []
  return line === undefined ? undefined : (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND
}

/** Peak memory in MiB. */
export const peakMebibytes = (pid: number | undefined): number | undefined => mebibytes(pid, /^VmHWM:\s+(\d+) kB$/m)

/** Present memory in MiB. */
export const memoryMebibytes = (pid: number | undefined): number | undefined => mebibytes(pid, /^VmRSS:\s+(\d+) kB$/m)

const mebibytes = (pid: number | undefined, line: RegExp): number | undefined => {
  const status = pid === undefined ? undefined : read(`${pid}/status`)
  const kibibytes = line.exec(status ?? '')?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) / 1024
}

const read = (file: string): string | undefined => {
  try {
    return readFileSync(`/proc/${file}`, 'utf8')
  } catch {
    return undefined
  }
}
