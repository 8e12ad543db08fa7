/** A projector is killed at every point of the flow. The next one stores the same bytes as an undisturbed one. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { expectProjectedAsModelled } from '../../support/agreement.ts'
import { type Plan, type Point, startCrashing, steps } from '../../support/crashes.ts'
import {
  projectorSettings,
  type RunningProcess,
  startProcess,
  startProjector,
  untilCaughtUp,
  withAdminPort,
} from '../../support/processes.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { eventually, fileScope, type Scope } from '../../support/scope.ts'
import { createPrefix, everythingProjected } from '../../support/stored.ts'
import { createStream, organizationsIn } from '../../support/streams.ts'
import { createTopics, type Topics } from '../../support/topics.ts'

const PARTITIONS = 3
/** Projectors that run at the same time, on machines with few cores. */
const TOGETHER = 4
const seed = seedOfRun()
console.log(`seed ${seed}`)

const plans = [
  ...steps.flatMap((step): Point[] => [`before ${step}`, `after ${step}`]),
  ...(['amid write', 'amid write', 'amid bulk request', 'a later write first'] as const),
].map((point, place): Plan => {
  const own = seed + place
  // The step `decode` runs for each record, the others for each batch.
  const time = 1 + createRandom(own).below(point.endsWith('decode') ? 40 : 3)
  return { point, time: point === 'a later write first' ? 1 : time, fate: 'killed', seed: own }
})
type Killed = { readonly prefix: string; readonly projector: RunningProcess }

const file = fileScope()
const random = createRandom(seed)
const stream = createStream(random, organizationsIn(random, [0, 1, 1], PARTITIONS), PARTITIONS)
let topics: Topics
const killed = new Map<Plan, Killed>()
let undisturbed: Record<string, string[]>

beforeAll(async () => {
  topics = await createTopics(file, { partitions: PARTITIONS })
  await publish(60)
  const waiting = [...plans]
  await Promise.all(
    Array.from({ length: TOGETHER }, async () => {
      for (let plan = waiting.shift(); plan; plan = waiting.shift()) killed.set(plan, await kill(file, plan))
    }),
  )
  await publish(20)

  const prefix = createPrefix(file)
  const projector = await startProjector(file, { topics, prefix })
  await untilCaughtUp(projector)
  await projector.stop()
  await expectProjectedAsModelled(prefix, topics)
  undisturbed = await everythingProjected(prefix)
})

/** One after the other: the order of the stream matters. */
let publishing: Promise<unknown> = Promise.resolve()
const publish = (count: number): Promise<unknown> => {
  publishing = publishing.then(() => topics.publish(stream.take(count)))
  return publishing
}

/** Publishes until the projector has reached its point. */
const kill = async (scope: Scope, plan: Plan): Promise<Killed> => {
  const prefix = createPrefix(scope)
  const projector = await startCrashing(scope, { topics, prefix, groupId: `${prefix}-killed` }, plan)
  await eventually(() => {
    if (projector.exit() === undefined) expect(said(projector), projector.log()).toContain('projecting')
  })
  await eventually(async () => {
    if (projector.exit() === undefined) await publish(4)
    expect(projector.exit(), projector.log()).toBeDefined()
  })
  return { prefix, projector }
}

const said = (projector: RunningProcess) => projector.lines().map(({ msg }) => msg)

describe.concurrent('a projector that is killed', () => {
  test.for(plans)('$point (time $time, seed $seed) loses and duplicates nothing', async (plan, t) => {
    const { prefix, projector } = killed.get(plan) ?? {}
    if (projector === undefined || prefix === undefined) throw new Error('it was not started')
    expect(projector.exit(), projector.log()).toEqual({ code: null, signal: 'SIGKILL' })
    expect(said(projector)).toContain('the point is reached')

    // Kafka keeps a killed member until its session timeout: a new group does not wait for it.
    const next = await startProjector(t, { topics, prefix })
    await untilCaughtUp(next)
    expect(await next.stop(), next.log()).toEqual({ code: 0, signal: null })
    expect(await everythingProjected(prefix)).toEqual(undisturbed)
  })
})

describe('the production entry', () => {
  test('ignores the same argument', async t => {
    const prefix = createPrefix(t)
    const plan: Plan = { point: 'before decode', time: 1, fate: 'killed', seed }
    const started = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }), {
      parameters: [JSON.stringify(plan)],
    })
    const projector = await withAdminPort(started)
    await untilCaughtUp(projector)
    expect(said(projector)).not.toContain('the point is reached')
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
    expect(await everythingProjected(prefix)).toEqual(undisturbed)
  })

  test('reads only its settings, not its arguments, and wraps no step', () => {
    const main = readFileSync(join(import.meta.dirname, '../../../projector/main.ts'), 'utf8')
    expect(main).not.toMatch(/argv|wrapSteps|wrapParts|stuckMs|SIGKILL|SIGSTOP/)
    expect(main.match(/process\.env/g)).toHaveLength(1)
    expect(main).toContain('readSettings(projectorSettings, process.env, readFileSync)')
    // Only the caller of a stream can set the hooks of tests: nothing reads them from elsewhere.
    const root = join(import.meta.dirname, '../../..')
    const sources = ['projector', 'core'].flatMap(folder =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(name => join(folder, name)),
    )
    const hooks = /wrapSteps|wrapParts|stuckMs|argv|SIGKILL|SIGSTOP/
    const given = sources.filter(name => name.endsWith('.ts') && hooks.test(readFileSync(join(root, name), 'utf8')))
    expect(given.sort()).toEqual(['core/projection/progress/watchdog.ts', 'core/projection/stream/stream.ts'])
    expect(readFileSync(join(root, 'core/projection/stream/stream.ts'), 'utf8')).not.toMatch(/process\./)
  })
})
