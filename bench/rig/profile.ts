/** Reads a CPU profile of Node and prints the functions that took most of the time. */
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Say } from '../../services/service.ts'

const FUNCTIONS_SHOWN = 40

/** Prints the functions with the most self time, from the latest profile in a folder. */
export const printProfile = async (folder: string, say: Say): Promise<void> => {
  const names = (await readdir(folder)).filter(name => name.endsWith('.cpuprofile')).sort()
  const name = names.at(-1)
  if (name === undefined) throw new Error(`no profile was left in ${folder}`)
  const profile: Profile = JSON.parse(await readFile(join(folder, name), 'utf8'))
  const { total, functions } = selfTimes(profile)
  say(`\n${name}: ${(total / 1e6).toFixed(1)} s; of the time that the thread was not idle:`)
  for (const [functionName, time] of functions.slice(0, FUNCTIONS_SHOWN)) {
    say(`${((100 * time) / total).toFixed(1).padStart(6)} %  ${functionName}`)
  }
}

/** Node's format; times in microseconds. */
type Profile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}
type CallFrame = { readonly functionName: string; readonly url: string; readonly lineNumber: number }

const selfTimes = ({ nodes, samples, timeDeltas }: Profile) => {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const times = new Map<string, number>()
  for (const [index, node] of samples.entries()) {
    const name = names.get(node) ?? ''
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[index] ?? 0))
  }
  times.delete('(idle)')
  const functions = [...times].sort(([, a], [, b]) => b - a)
  return { total: functions.reduce((sum, [, time]) => sum + time, 0), functions }
}

const nameOf = ({ functionName, url, lineNumber }: CallFrame): string => {
  const name = functionName || '(anonymous)'
  return url === '' ? name : `${name} ${basename(url)}:${lineNumber + 1}`
}
