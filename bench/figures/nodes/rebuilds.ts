/**
 * Rebuilds at once: each process makes the generation of another group (another index prefix), and has the same limit
 * of the rate, as if it had a machine of its own. While the servers are not full, the sum should be as many times the
 * limit as there are processes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { forgetProjectors, startProjector } from '../../processes/projection.ts'
import { createTopics, publishDataset, type Topics } from '../../processes/publish.ts'
import { startRebuild } from '../../processes/rebuild-process.ts'
import type { Bench, Figure } from '../../rig/bench.ts'
import { createDataset } from '../../rig/dataset.ts'
import { newPrefix } from '../../rig/elasticsearch.ts'
import { slopeOf } from '../../rig/statistics.ts'
import { serverPids, watchCpu } from '../../rig/usage.ts'
import { type RebuildsMeasured, rebuildsFigure } from './rebuilds-figure.ts'

const PARTITIONS = 6
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
  bench.say('making the empty generations that rebuilds start from')
  for (let at = 0; at < groups.length; at += TOGETHER) {
    const made = groups.slice(at, at + TOGETHER).map(prefix => makeEmpty(bench, topics, prefix, stack))
    await Promise.allSettled(made)
    await Promise.all(made)
  }
  await publishDataset(topics, createDataset(data), data.payouts, 'payouts for rebuilds')
  const measured: RebuildsMeasured[] = []
  for (const count of processes) {
    const atOnce = await measureAtOnce(bench, topics, groups.slice(0, count))
    measured.push({ count, ...atOnce })
    bench.say(`${count} rebuilds: ${atOnce.perSecond.toFixed(0)} records/s`)
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

/** Runs a rebuild of each group, and continues one that was begun. */
const measureAtOnce = async (
  bench: Bench,
  topics: Topics,
  prefixes: readonly string[],
): Promise<Omit<RebuildsMeasured, 'count'>> => {
  const { services, elasticsearch, signal, sizes } = bench
  const { maxRate, settleSeconds, seconds } = sizes.nodes.rebuilds
  await using stack = new AsyncDisposableStack()
  const positions = async (): Promise<number[]> =>
    await Promise.all(
      prefixes.map(async prefix => {
        const all = await elasticsearch.positions(prefix, PARTITIONS, REBUILT)
        return all.reduce((sum, position) => sum + position, 0)
      }),
    )
  const end = (await topics.ends()).reduce((sum, each) => sum + each, 0)
  const before = await positions()
  const running = prefixes.map(prefix => startRebuild(bench, topics, prefix, maxRate))
  stack.defer(async () => void (await Promise.all(running.map(each => each[Symbol.asyncDispose]()))))
  const wait = (milliseconds: number) =>
    Promise.race([sleep(milliseconds, undefined, { signal }), ...running.map(({ died }) => died)])
  for (const start = performance.now(); ; await wait(SAMPLE_MS)) {
    const now = await positions()
    if (now.every((position, at) => position > (before[at] ?? 0))) break
    if (performance.now() - start > START_MS) throw new Error(`a rebuild has no record after ${START_MS / 1000} s`)
  }
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
