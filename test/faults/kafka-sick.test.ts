/** Kafka dies or freezes under load: the projector stays alive, recovers, and loses or duplicates nothing. */
import { beforeAll, expect, test } from 'vitest'
import type { Service } from '../../services/service.ts'
import { expectProjectedAsModelled } from '../support/agreement.ts'
import { keepPublishing } from '../support/load.ts'
import { startOwnServer } from '../support/own-services.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope } from '../support/scope.ts'
import {
  expectAliveAndNotReady,
  expectLogHoldsWhatWasPublished,
  readiness,
  searchableInAll,
} from '../support/sickness.ts'
import { createPrefix } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics } from '../support/topics.ts'

const PARTITIONS = 3
const seed = seedOfRun()
console.log(`seed ${seed}`)

/** Maximum resident memory of the process, with a heap of 256 MiB. */
const MEMORY_MIB = 512
const settings = { NODE_OPTIONS: '--max-old-space-size=256' }

const file = fileScope()
let elasticsearch: Service
beforeAll(async () => {
  elasticsearch = await startOwnServer(file, 'elasticsearch')
})

const sicknesses = [
  { does: 'dies', seconds: 10, begin: (kafka: Service) => kafka.kill(), heal: (kafka: Service) => kafka.restart() },
  { does: 'freezes', seconds: 45, begin: (kafka: Service) => kafka.freeze(), heal: (kafka: Service) => kafka.thaw() },
]

test.concurrent.for(sicknesses)(
  'a projector whose Kafka $does for $seconds s under load stays alive, is not ready, and continues within 30 s of recovery',
  async ({ does, seconds, begin, heal }, t) => {
    const kafka = await startOwnServer(t, 'kafka')
    const random = createRandom(seed + seconds)
    const stream = createStream(random, organizationsIn(random, [0, 1, 1, 2], PARTITIONS), PARTITIONS)
    const topics = await createTopics(t, { kafka: kafka.address, partitions: PARTITIONS })
    const prefix = createPrefix(t, elasticsearch.address)
    const projector = await startProjector(t, { topics, prefix, settings })
    const load = keepPublishing(t, topics, () => stream.take(20))
    await eventually(async () => expect(await searchableInAll(projector, topics)).toBeGreaterThan(100))

    await begin(kafka)
    const notReady = { ready: false, reasons: { kafka: 'does not answer' } }
    await eventually(async () => expect(await readiness(projector)).toMatchObject(notReady))
    const most = await expectAliveAndNotReady(projector, seconds)

    await heal(kafka)
    const healed = performance.now()
    const before = topics.published().length
    await eventually(
      async () => {
        expect(await readiness(projector)).toEqual({ ready: true, reasons: {} })
        expect(topics.published().length).toBeGreaterThan(before)
        expect(await searchableInAll(projector, topics)).toBeGreaterThan(before)
      },
      { within: 30_000 },
    )
    const back = Math.round(performance.now() - healed) / 1_000
    console.log(`Kafka ${does}: the projector continued ${back} s after recovery, and used at most ${most} MiB`)
    await load.stop()
    await untilCaughtUp(projector)
    expect(most).toBeLessThan(MEMORY_MIB)
    expect(projector.exit(), projector.log()).toBeUndefined()
    await expectLogHoldsWhatWasPublished(topics)
    await expectProjectedAsModelled(prefix, topics)
  },
)
