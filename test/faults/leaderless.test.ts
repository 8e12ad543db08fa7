/**
 * Three brokers, and one replica of each partition of the events: with its broker, a partition loses its leader.
 * Nothing of the topic is read then: its source is known to be the same in all partitions, or not at all.
 */
import { expect, test } from 'vitest'
import { expectProjectedAsModelled } from '../support/agreement.ts'
import { RECOVERY_MS } from '../support/installation.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually } from '../support/scope.ts'
import { startServersOfFile } from '../support/several-brokers.ts'
import { canRunSeveralNodes, seconds } from '../support/several-nodes.ts'
import { expectAliveAndNotReady, readiness } from '../support/sickness.ts'
import { createPrefix } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics } from '../support/topics.ts'

const seed = seedOfRun()
const servers = startServersOfFile(seed)
const BROKERS = [1, 2, 3]

test.skipIf(!canRunSeveralNodes)(
  'a partition without a leader: projectors live, also one that starts; they name the partition, and are ready once the leader is back',
  async t => {
    const { brokers, elasticsearch } = servers()
    const random = createRandom(seed)
    const partitions = BROKERS.length
    const stream = createStream(random, organizationsIn(random, [0, 1, 2], partitions), partitions)
    const configuration = { 'min.insync.replicas': '1' }
    const replicas = BROKERS.map(broker => [broker])
    const topics = await createTopics(t, { partitions, kafka: brokers.address, configuration, replicas })
    const prefix = createPrefix(t, elasticsearch)
    const start = () => startProjector(t, { topics, prefix, settings: { ELASTICSEARCH_URL: elasticsearch } })
    const projector = await start()
    await topics.publish(stream.take(60))
    await untilCaughtUp(projector)

    const node = await brokers.leader(topics, 1)
    await node.kill()
    const reasons = { kafka: `does not answer for ${topics.events} 1 (LEADER_NOT_AVAILABLE)` }
    const named = { ready: false, reasons: expect.objectContaining(reasons) }
    await eventually(async () => expect(await readiness(projector)).toEqual(named))
    const later = await start()
    await eventually(async () => expect(await readiness(later)).toEqual(named))
    await expectAliveAndNotReady(projector, 20)
    for (const one of [projector, later]) expect(await readiness(one)).toEqual(named)

    await node.restart()
    const back = performance.now()
    for (const one of [projector, later]) {
      await eventually(async () => expect(await readiness(one)).toEqual({ ready: true, reasons: {} }), {
        within: RECOVERY_MS,
      })
      expect(one.exit(), one.log()).toBeUndefined()
    }
    console.log(`a leader is back: ready after ${seconds(performance.now() - back)}`)
    await expectProjectedAsModelled(prefix, topics)
  },
)
