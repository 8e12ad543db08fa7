/** Power failure: all processes are killed at the same time under load, and restart on the same data. */
import { expect, test } from 'vitest'
import { expectProjectedAsModelled } from '../support/agreement.ts'
import { createClient, lists } from '../support/client.ts'
import { keyCreated, newKeyText } from '../support/events.ts'
import { keepPublishing } from '../support/load.ts'
import { startOwnServices } from '../support/own-services.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually } from '../support/scope.ts'
import { expectLogHoldsWhatWasPublished, searchableInAll } from '../support/sickness.ts'
import { createPrefix } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics } from '../support/topics.ts'

const PARTITIONS = 3
const seed = seedOfRun()
console.log(`seed ${seed}`)

test('a kill of all processes at the same time under load loses nothing', async t => {
  const { kafka, elasticsearch } = await startOwnServices(t)
  const random = createRandom(seed)
  const organizations = organizationsIn(random, [0, 1, 2], PARTITIONS)
  const keys = new Map(organizations.map(org => [org, newKeyText()]))
  const topics = await createTopics(t, { kafka: kafka.address, partitions: PARTITIONS })
  const stream = createStream(random, organizations, PARTITIONS)
  const prefix = createPrefix(t, elasticsearch.address)
  const projector = await startProjector(t, { topics, prefix })
  await topics.publish([...keys].map(([org, text]) => keyCreated({ org_id: org, id: 'key_client', text })))
  const load = keepPublishing(t, topics, () => stream.take(60))
  await eventually(async () => expect(await searchableInAll(projector, topics)).toBeGreaterThan(300))
  const api = await startApi(t, prefix)

  const before = topics.published().length
  await Promise.all([kafka, elasticsearch, projector, api].map(process => process.kill()))
  const ends = [projector.exit(), api.exit()]
  expect(ends).toEqual(ends.map(() => ({ code: null, signal: 'SIGKILL' })))

  const next = await startProjector(t, { topics, prefix })
  const nextApi = await startApi(t, prefix, { ready: false })
  await Promise.all([kafka.restart(), elasticsearch.restart()])
  const healed = performance.now()
  await eventually(async () => expect(await searchableInAll(next, topics)).toBeGreaterThan(before))
  console.log(
    `the next projector passed the crash ${Math.round(performance.now() - healed) / 1_000} s after both are back`,
  )
  await load.stop()
  await untilCaughtUp(next)
  await expectLogHoldsWhatWasPublished(topics)
  const model = await expectProjectedAsModelled(prefix, topics)
  for (const [org, key] of keys) {
    for (const list of lists) expect(await createClient([nextApi], key).all(list)).toEqual(model.view(org)[list])
  }
})
