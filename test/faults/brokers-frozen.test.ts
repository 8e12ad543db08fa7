/**
 * One of three brokers stands still for 45 s under load. Its connections stay open, and nothing answers on them. Then
 * it returns: it believes that it still leads, and lacks what was written meanwhile.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import type { Service } from '../../services/service.ts'
import { startOwnServer } from '../support/own-services.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope } from '../support/scope.ts'
import {
  type Brokers,
  expectIntactAfterLoad,
  type Loaded,
  startBrokers,
  startUnderLoad,
  untilMoving,
} from '../support/several-brokers.ts'
import { canRunSeveralNodes, START_SEVERAL_MS, seconds } from '../support/several-nodes.ts'

const FROZEN_MS = 45_000
const seed = seedOfRun()
const file = fileScope()
let brokers: Brokers
let elasticsearch: Service

beforeAll(async () => {
  if (!canRunSeveralNodes) return
  console.log(`seed ${seed}`)
  elasticsearch = await startOwnServer(file, 'elasticsearch')
  brokers = await startBrokers(file)
}, START_SEVERAL_MS)

const frozen = [
  { who: 'the leader of a partition', choose: ({ topics }: Loaded) => brokers.leader(topics, 0) },
  {
    who: 'the coordinator of the projectors',
    choose: ({ topics, prefix }: Loaded) => brokers.coordinator(topics, `${prefix}-g1`),
  },
]

describe.skipIf(!canRunSeveralNodes)('of three brokers', () => {
  test.for(frozen)(
    '$who is frozen for 45 s and returns: all moves again, without it and with it',
    async ({ who, choose }, t) => {
      const random = createRandom(seed)
      const loaded = await startUnderLoad(t, brokers, { elasticsearch: elasticsearch.address, random })
      const { topics } = loaded
      await brokers.untilInSync(topics)
      const node = await choose(loaded)
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
