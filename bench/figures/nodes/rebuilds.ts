/**
 * Rebuilds at once: each process has the same limit of the rate, as if it had a machine of its own. Either each makes
 * the generation of another group (another index prefix), or all make one generation together. While the servers are
 * not full, the sum should be as many times the limit as there are processes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { forgetProjectors, startProjector } from '../../processes/projection.ts'
import { createTopics, publishDataset, type Topics } from '../../processes/publish.ts'
import { type RunningRebuild, startRebuild } from '../../processes/rebuild-process.ts'
import type { Bench, Figure } from '../../rig/bench.ts'
import { createDataset } from '../../rig/dataset.ts'
import { newPrefix } from '../../rig/elasticsearch.ts'
import { slopeOf } from '../../rig/statistics.ts'
import { serverPids, watchCpu } from '../../rig/usage.ts'
import { type RebuildsMeasured, rebuildsFigure } from './rebuilds-figure.ts'

/** Every number of processes divides it. */
const PARTITIONS = 12
/** The generation that a projector made, of nothing, and the one that a rebuild makes. */
const [EMPTY, REBUILT] = ['g1', 'g2']
const SAMPLE_MS = 200
/** Projectors that start at the same time. */
const TOGETHER = 3
/** Milliseconds until each process must have projected records. */
const START_MS = 60_000

export const measureRebuilds = async (bench: Bench): Promise<Figure> => {
  const { data, processes } = bench.sizes.nodes.rebuilds
  await using topics = await createTopics(bench, PARTITIONS)
  await using stack = new AsyncDisposableStack()
  const groups = Array.from({ length: Math.max(...processes) }, newPrefix)
  const together = new Map(processes.map(count => [count, newPrefix()]))
  bench.say('making the empty generations that rebuilds start from')
  const all = [...groups, ...together.values()]
  for (let at = 0; at < all.length; at += TOGETHER) {
    const made = all.slice(at, at + TOGETHER).map(prefix => makeEmpty(bench, topics, prefix, stack))
    await Promise.allSettled(made)
    await Promise.all(made)
  }
  await publishDataset(topics, createDataset(data), data.payouts, 'payouts for rebuilds')
  const measured: RebuildsMeasured[] = []
  for (const count of processes) {
    const ofGroups = await measureAtOnce(bench, topics, groups.slice(0, count))
    const ofOne = await measureAtOnce(bench, topics, Array<string>(count).fill(together.get(count) ?? ''))
    measured.push({ count, groups: ofGroups, together: ofOne })
    bench.say(
      `${count} rebuilds: ${ofGroups.perSecond.toFixed(0)} records/s; of one generation ${ofOne.perSecond.toFixed(0)} records/s`,
    )
  }
  return rebuildsFigure(bench.sizes.nodes.rebuilds, measured)
}

/** Makes the first generation while the topic is empty. It and the rebuilt one are removed with the stack. */
const makeEmpty = async (bench: Bench, topics: Topics, prefix: string, stack: AsyncDisposableStack): Promise<void> => {
  stack.defer(() => bench.elasticsearch.removeIndices(prefix, [EMPTY, REBUILT]))
  stack.defer(() => topics.forgetGroups([`${prefix}-${REBUILT}`]))
  stack.defer(() => forgetProjectors(topics, prefix))
  await using _ = await startProjector(bench, topics, prefix)
}

/** Runs a rebuild of each prefix; those of one prefix share its partitions. */
const measureAtOnce = async (
  bench: Bench,
  topics: Topics,
  prefixes: readonly string[],
): Promise<RebuildsMeasured['groups']> => {
  const { services, elasticsearch, signal, sizes } = bench
  const { maxRate, settleSeconds, seconds } = sizes.nodes.rebuilds
  await using stack = new AsyncDisposableStack()
  const generations = [...new Set(prefixes)]
  const positions = async (): Promise<number[]> =>
    await Promise.all(
      generations.map(async prefix => {
        const all = await elasticsearch.positions(prefix, PARTITIONS, REBUILT)
        return all.reduce((sum, position) => sum + position, 0)
      }),
    )
  const end = (await topics.ends()).reduce((sum, each) => sum + each, 0)
  const before = await positions()
  const running: RunningRebuild[] = []
  stack.defer(async () => void (await Promise.all(running.map(each => each[Symbol.asyncDispose]()))))
  const start = (prefix: string) => running.push(startRebuild(bench, topics, prefix, maxRate))
  const wait = (milliseconds: number) =>
    Promise.race([sleep(milliseconds, undefined, { signal }), ...running.map(({ died }) => died)])
  const until = async (isSo: () => Promise<boolean>): Promise<void> => {
    for (const began = performance.now(); !(await isSo()); await wait(SAMPLE_MS)) {
      if (performance.now() - began > START_MS) throw new Error(`rebuilds do not project after ${START_MS / 1000} s`)
    }
  }
  // One process makes the generation. More of the same prefix continue with it.
  for (const prefix of generations) start(prefix)
  await until(async () => (await positions()).every((position, at) => position > (before[at] ?? 0)))
  for (const prefix of prefixes.slice(generations.length)) start(prefix)
  await until(async () => {
    const members = await Promise.all(generations.map(prefix => topics.settledMembers(`${prefix}-${REBUILT}`)))
    return members.reduce((sum, count) => sum + count, 0) === prefixes.length
  })
  await wait(settleSeconds * 1000)
  const cpu = watchCpu({ rebuilds: running.map(({ pid }) => pid), ...serverPids(services) })
  const samples: [number, number][] = []
  const began = performance.now()
  while (performance.now() - began < seconds * 1000) {
    const now = await positions()
    if (now.some(position => position >= end)) throw new Error('a rebuild ended while it was measured')
    const done = now.reduce((sum, position) => sum + position, 0)
    samples.push([(performance.now() - began) / 1000, done])
    await wait(SAMPLE_MS)
  }
  const lasted = (performance.now() - began) / 1000
  const cores = Object.entries(cpu()).map(([name, used]): [string, number] => [name, used / lasted])
  return { perSecond: slopeOf(samples), cores: Object.fromEntries(cores) }
}
