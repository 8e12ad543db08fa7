/** A fetch that takes longer than the time between two verifications of the source is taken: none throws it away. */
import { expect, test } from 'vitest'
import { freePort } from '../../services/ports.ts'
import { withText } from '../support/bad-event.ts'
import { newId, repRecorded } from '../support/events.ts'
import { startOwnServer } from '../support/own-services.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const BYTES = 1_000_000
/** The record takes 10.5 s. The client gives up after 12 s. */
const BYTES_PER_SECOND = BYTES / 10.5

test('a record that takes more than 10 s to arrive is projected at its first fetch', async t => {
  const port = await freePort()
  const settings = { 'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}` }
  const kafka = await startOwnServer(t, 'kafka', { settings })
  const proxy = await startProxy(t, kafka.address, { port })
  const topics = await createTopics(t, { kafka: proxy.address, partitions: 1 })
  const prefix = createPrefix(t)
  const event = { ...repRecorded({ org_id: newId('org') }), partition: 0 }
  await topics.publish([event])
  const projector = await startProjector(t, { topics, prefix })
  await untilCaughtUp(projector)
  // The publisher has a fast line.
  await proxy.inject({ kind: 'slow-line', bytesPerSecond: BYTES_PER_SECOND }, asked =>
    asked.includes('commission-projector'),
  )
  const began = performance.now()
  await topics.publish([withText(event, Buffer.alloc(BYTES, 'x'))])
  // A fetch that is thrown away every 10 s never ends.
  await untilCaughtUp(projector)
  expect(performance.now() - began).toBeGreaterThan(10_000)
})
