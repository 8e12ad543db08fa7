/**
 * Restored indices are read again, the projector is killed on the way, the log is cut below the end that it had, and
 * publishers go on with other records. Then `adopt` must leave no document of the lost records. Before the cut, it must
 * leave all.
 */
import { createRandom } from '../../support/random.ts'
import { EVENTS } from '../history.ts'
import { undividedLayoutsOf } from '../layouts.ts'
import { createOrganizations, recordsAfter, recordsBefore } from './publishers.ts'
import { RealLog } from './real-log.ts'
import { reasonOf } from './run.ts'
import { quietContentOf, World } from './world.ts'

export type ReadAgainVerdict = {
  readonly failure: string | undefined
  /** Whether the cut came before a partition was read again to its end, and after some of it was. */
  readonly isBetween: boolean
}

/** @param requests of the projector that reads again, before it is killed */
export const runReadAgain = async (seed: number, requests: number): Promise<ReadAgainVerdict> => {
  const random = createRandom(seed)
  const organizations = createOrganizations(random)
  const world = new World(random, 5, undefined, undividedLayoutsOf(seed))
  try {
    world.startProjector()
    const { kept, tail } = recordsBefore(organizations)
    for (const record of [...kept, ...tail]) world.publish(record)
    await world.untilCaughtUp()
    const { indices } = world.beginSnapshot(50)
    await world.pass(1_000)
    await world.stopProjectors()
    for (const [name, copy] of indices) world.engine.indices.set(name, copy.copy())
    await adopt(world)
    const ofEvents = () =>
      world
        .content('g1')
        .filter(one => one.startsWith('events '))
        .join()
    const restored = ofEvents()
    await adopt(world)
    if (ofEvents() !== restored) world.fail('adopt again removes documents that the log has')
    const partitions = world.broker.topic(EVENTS).partitions.map((_, partition) => partition)
    const servedFrom = partitions.map(partition => world.position('g1', partition)?.serve_from ?? 0)

    let seen = 0
    world.onRequest = host => {
      if (seen++ === requests) world.kill(host)
    }
    world.restartAfter = Number.POSITIVE_INFINITY
    world.startProjector()
    await world.pass(20_000)
    world.onRequest = () => undefined
    await world.stopProjectors()
    const positions = partitions.map(partition => world.position('g1', partition)?.position ?? 0)
    const isBetween = positions.some((position, partition) => position < (servedFrom[partition] ?? 0) - 1)

    const { [EVENTS]: events = [], ...others } = world.log.entries
    const cut = events.map((all, partition) => {
      const least = positions[partition] ?? 0
      const end = least + random.below(Math.max(1, all.length - least))
      world.broker.topic(EVENTS).partitions[partition]?.cut(end)
      return all.slice(0, end)
    })
    world.logs.push(new RealLog({ ...others, [EVENTS]: cut }))
    // As many as were lost, and more: the ends do not tell that something was lost.
    for (const record of recordsAfter(organizations)) world.publish(record)
    await adopt(world)
    world.startProjector()
    await world.untilCaughtUp()
    if (world.failure === undefined) {
      const wanted = new Set(await quietContentOf(world.log.entries))
      const [extra] = new Set(world.content('g1')).difference(wanted)
      if (extra !== undefined) world.fail(`a document of a lost record stays: ${extra.slice(0, 200)}`)
    }
    return { failure: world.failure && `seed ${seed}, request ${requests}: ${world.failure}`, isBetween }
  } finally {
    world.killAll()
    await world.release()
  }
}

const adopt = async (world: World): Promise<void> => {
  const { code, error, said } = await world.command({ name: 'adopt' })
  if (code !== 0) world.fail(`adopt: ${reasonOf(error)} ${said.join(' | ')}`)
}
