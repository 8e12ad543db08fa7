/** All three brokers restart one after the other under load, as an upgrade of Kafka does. */
import { expect, test } from 'vitest'
import { startOwnServer } from '../support/own-services.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { expectIntactAfterLoad, startBrokers, startUnderLoad, untilMoving } from '../support/several-brokers.ts'
import { canRunSeveralNodes, seconds } from '../support/several-nodes.ts'

const seed = seedOfRun()

test.runIf(canRunSeveralNodes)(
  'a rolling restart of all brokers loses and duplicates nothing: all moves again without each and with each',
  async t => {
    console.log(`seed ${seed}`)
    const { address } = await startOwnServer(t, 'elasticsearch')
    const brokers = await startBrokers(t)
    const loaded = await startUnderLoad(t, brokers, { elasticsearch: address, random: createRandom(seed) })
    for (const node of brokers.nodes) {
      await brokers.untilInSync(loaded.topics)
      await node.stop()
      const without = await untilMoving(loaded)
      await node.restart()
      const withIt = await untilMoving(loaded)
      console.log(`${node.name}: moving ${seconds(without)} after its stop, ${seconds(withIt)} after its return`)
    }
    await brokers.untilInSync(loaded.topics)
    await expectIntactAfterLoad(loaded)
    for (const projector of loaded.projectors) {
      expect(projector.lines().filter(({ level }) => Number(level) >= 50)).toEqual([])
    }
  },
)
