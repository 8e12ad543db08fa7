/**
 * CPU and memory of processes, as Linux counts them. Undefined on other systems, and for processes that cannot be seen.
 */
import { readFileSync } from 'node:fs'
import type { Services } from '../../services/services.ts'

/** CPU seconds by process, and those of all others as `everything else`. Processes that cannot be seen are missing. */
export type Cpu = Readonly<Record<string, number>>

/** Linux reports CPU time in hundredths of a second, whatever its own clock is. */
const TICKS_PER_SECOND = 100

/** Returns the ids of the servers' processes by name, for `watchCpu`. */
export const serverPids = ({ elasticsearch, kafka }: Services) => ({
  Elasticsearch: elasticsearch?.pid,
  Kafka: kafka?.pid,
})

/** Starts to watch processes. @returns a function that returns the CPU used since, the bench itself as `bench` */
export const watchCpu = (pids: Readonly<Record<string, number | undefined>>): (() => Cpu) => {
  const watched = { ...pids, bench: process.pid }
  const before = cpuOf(watched)
  const machineBefore = machineCpuSeconds()
  return () => {
    const after = cpuOf(watched)
    const machine = machineCpuSeconds()
    const used = Object.entries(after).map(([name, seconds]) => [name, seconds - (before[name] ?? 0)] as const)
    const isAllSeen = used.length === Object.keys(watched).length
    if (machine === undefined || machineBefore === undefined || !isAllSeen) return Object.fromEntries(used)
    const ours = used.reduce((sum, [, seconds]) => sum + seconds, 0)
    return { ...Object.fromEntries(used), [EVERYTHING_ELSE]: Math.max(0, machine - machineBefore - ours) }
  }
}

/** CPU of other processes of the machine. If it is high, times and rates are unreliable, and ratios even more. */
export const EVERYTHING_ELSE = 'everything else'

const cpuOf = (pids: Readonly<Record<string, number | undefined>>): Cpu =>
  Object.fromEntries(
    Object.entries(pids).flatMap(([name, pid]) => {
      const seconds = cpuSeconds(pid)
      return seconds === undefined ? [] : [[name, seconds]]
    }),
  )

/** Of all its threads since its start. */
const cpuSeconds = (pid: number | undefined): number | undefined => {
  const stat = pid === undefined ? undefined : read(`${pid}/stat`)
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
