/**
 * What processes have used, as Linux counts it. On other systems, and for a process that is not ours to see, nothing is
 * said.
 */
import { readFileSync } from 'node:fs'

/** CPU seconds by process; of all that is not among them, as `everything else`. Whatever cannot be seen is absent. */
export type Cpu = Readonly<Record<string, number>>

/** Linux counts CPU time for programs in hundredths of a second, whatever its own clock is. */
const TICKS_PER_SECOND = 100

/** Begins to watch processes. @returns what each has used since, the bench itself as `bench` */
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

/**
 * CPU that other processes of the machine took meanwhile. Where it is much, times and rates say little, and ratios even
 * less.
 */
export const EVERYTHING_ELSE = 'everything else'

const cpuOf = (pids: Readonly<Record<string, number | undefined>>): Cpu =>
  Object.fromEntries(
    Object.entries(pids).flatMap(([name, pid]) => {
      const seconds = cpuSeconds(pid)
      return seconds === undefined ? [] : [[name, seconds]]
    }),
  )

/** Of all its threads since it was started. */
const cpuSeconds = (pid: number | undefined): number | undefined => {
  const stat = pid === undefined ? undefined : read(`${pid}/stat`)
  if (stat === undefined) return undefined
  // After the name in parentheses, which may hold anything: the 12th and 13th field are user and system time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Of all processes on all cores; what the host took away counts as used. */
const machineCpuSeconds = (): number | undefined => {
  const line = read('stat')?.split('\n', 1)[0]
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    line?.split(/ +/).slice(1).map(Number) ?? []
  return line === undefined ? undefined : (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND
}

/** The most memory it has had at a time, in MiB. */
export const peakMebibytes = (pid: number | undefined): number | undefined => mebibytes(pid, /^VmHWM:\s+(\d+) kB$/m)

/** What it has now, in MiB. */
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
