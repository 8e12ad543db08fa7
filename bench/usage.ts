/** What a process has used, as Linux counts it; undefined on other systems, and for a process that is not ours to see. */
import { readFileSync } from 'node:fs'

/** Linux counts CPU time for programs in hundredths of a second, whatever its own clock is. */
const TICKS_PER_SECOND = 100

/** CPU seconds of all its threads since it was started. */
export const cpuSeconds = (pid: number | undefined): number | undefined => {
  const stat = readProcess(pid, 'stat')
  if (stat === undefined) return undefined
  // After the name in parentheses, which may hold anything: the 12th and 13th field are user and system time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** The most memory it has had at a time, in MiB. */
export const peakMebibytes = (pid: number | undefined): number | undefined => {
  const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readProcess(pid, 'status') ?? '')?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) / 1024
}

const readProcess = (pid: number | undefined, file: string): string | undefined => {
  if (pid === undefined) return undefined
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return undefined
  }
}
