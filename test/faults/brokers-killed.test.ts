/**
 * Three brokers, three replicas of each partition, writes on at least two: one broker is killed under load. The last
 * tests leave fewer replicas than a write needs, and a cluster without the broker.
 */
import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { periodRecorded } from '../support/events.ts'
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
import { readiness } from '../support/sickness.ts'
import { place, type Topics, toMessage } from '../support/topics.ts'

const seed = seedOfRun()
const servers = startServersOfFile(seed)

/** Sends one record once. Returns the code of Kafka's refusal. */
const refusal = async ({ kafka, events }: Topics): Promise<string> => {
  const producer = kafka.producer({ allowAutoTopicCreation: false, retry: { retries: 0 } })
  await producer.connect()
  try {
    const record = toMessage(place(periodRecorded({ org_id: 'org_refused' }), 1))
    await producer.send({ topic: events, acks: -1, messages: [record] })
    return 'accepted'
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    return cause instanceof kafkajs.KafkaJSProtocolError ? cause.type : String(cause)
  } finally {
    await producer.disconnect()
  }
}

const READY = { ready: true, reasons: {} }
/** Without a leader that may be elected, the consumer leaves its group, too. */
const PARTLY_SILENT = {
  ready: false,
  reasons: expect.objectContaining({
    kafka: expect.stringMatching(/^does not answer for \S+ \d.* \((?:OFFSET|LEADER)_NOT_AVAILABLE\)$/),
  }),
}

/**
 * Whether Kafka tells the ends of all partitions. With too few replicas, the end of a partition does not move. A new
 * leader that has not heard of the last end tells none until a replica returns (KIP-966).
 */
const tellsEnds = ({ admin, events }: Topics): Promise<boolean> =>
  admin.fetchTopicOffsets(events).then(
    () => true,
    () => false,
  )

describe.skipIf(!canRunSeveralNodes)('of three brokers', () => {
  const { leader, controller, coordinator } = brokersByRole
  test.for([leader, controller, coordinator])(
    '$who is killed and returns: all moves again, without it and with it',
    async ({ who, choose }, t) => {
      const { brokers, elasticsearch } = servers()
      const loaded = await startUnderLoad(t, brokers, { elasticsearch, random: createRandom(seed) })
      const { topics } = loaded
      await brokers.untilInSync(topics)
      const node = await choose(brokers, loaded)
      await node.kill()
      const without = await untilMoving(loaded)
      await node.restart()
      const withIt = await untilMoving(loaded)
      await brokers.untilInSync(topics)
      console.log(`${who} killed: moving ${seconds(without)} after the kill, ${seconds(withIt)} after its return`)
      await expectIntactAfterLoad(loaded)
    },
  )

  test('one is lost, and writes need all three: publishers are refused, projectors and API live on', async t => {
    const { brokers, elasticsearch } = servers()
    const loaded = await startUnderLoad(t, brokers, {
      elasticsearch,
      random: createRandom(seed + 1),
      configuration: { 'min.insync.replicas': '3' },
    })
    const { topics, projectors, walkers } = loaded
    await brokers.untilInSync(topics)
    const node = await brokers.leader(topics, 0)
    await node.kill()
    await eventually(async () => expect(await refusal(topics)).toBe('NOT_ENOUGH_REPLICAS'))
    const { pages } = walkers.soFar()
    for (const projector of projectors) {
      await eventually(async () => {
        const expected = (await tellsEnds(topics)) ? READY : PARTLY_SILENT
        expect(await readiness(projector)).toEqual(expected)
      })
    }
    await eventually(() => expect(walkers.soFar().pages).toBeGreaterThan(pages + 10))
    expect(await refusal(topics)).toBe('NOT_ENOUGH_REPLICAS')
    await node.restart()
    console.log(`too few replicas: moving ${seconds(await untilMoving(loaded))} after the return of the third`)
    await expectIntactAfterLoad(loaded)
  })

  // The last test: the others need all three.
  test('one is lost for good: all moves again, and a new projector starts', async t => {
    const { brokers, elasticsearch } = servers()
    const loaded = await startUnderLoad(t, brokers, { elasticsearch, random: createRandom(seed + 2), projectors: 1 })
    const { topics } = loaded
    await brokers.untilInSync(topics)
    // The address that clients use first.
    await brokers.nodes[0]?.kill()
    const moving = await untilMoving(loaded)
    const later = await loaded.startAnother()
    await brokers.untilInSync(topics, 2)
    const began = performance.now()
    await eventually(async () => expect(await readiness(later)).toEqual({ ready: true, reasons: {} }))
    const ready = performance.now() - began
    await untilMoving(loaded)
    console.log(`lost for good: moving ${seconds(moving)} after the kill, another projector ready in ${seconds(ready)}`)
    await expectIntactAfterLoad({ ...loaded, projectors: [...loaded.projectors, later] })
  })
})
