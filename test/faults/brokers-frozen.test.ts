/**
 * One of three brokers stands still for 45 s under load. Its connections stay open, and nothing answers on them. Then
 * it returns: it believes that it still leads, and lacks what was written meanwhile.
 */
import { describe, expect, test } from 'vitest'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually } from '../support/scope.ts'
import {
  brokersByRole,
  expectIntactAfterLoad,
  startServersOfFile,
  startUnderLoad,
  untilMoving,
} from '../support/several-brokers.ts'
import { canRunSeveralNodes, seconds } from '../support/several-nodes.ts'

const FROZEN_MS = 45_000
const seed = seedOfRun()
const servers = startServersOfFile(seed)

describe.skipIf(!canRunSeveralNodes)('of three brokers', () => {
  test.for([brokersByRole.leader, brokersByRole.coordinator])(
    '$who is frozen for 45 s and returns: all moves again, without it and with it',
    async ({ who, choose }, t) => {
      const { brokers, elasticsearch } = servers()
      const loaded = await startUnderLoad(t, brokers, { elasticsearch, random: createRandom(seed) })
      const { topics } = loaded
      await brokers.untilInSync(topics)
      const node = await choose(brokers, loaded)
      const began = performance.now()
      await node.freeze()
      // The broker does not return before the others have taken over everything.
      const without = await untilMoving(loaded, FROZEN_MS)
      await eventually(() => expect(performance.now() - began).toBeGreaterThan(FROZEN_MS), { every: 500 })
      await node.thaw()
      const withIt = await untilMoving(loaded)
      console.log(`${who} frozen: moving ${seconds(without)} after the freeze, ${seconds(withIt)} after the thaw`)
      await brokers.untilInSync(topics)
      await expectIntactAfterLoad(loaded)
    },
  )
})
