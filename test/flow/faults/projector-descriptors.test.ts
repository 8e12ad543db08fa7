/** A projector that runs out of file descriptors, and gets them back. */
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { expectProjectedAsModelled } from '../../support/agreement.ts'
import { newId, repRecorded } from '../../support/events.ts'
import {
  type Projector,
  projectorSettings,
  startProcess,
  untilCaughtUp,
  withAdminPort,
} from '../../support/processes.ts'
import { startProxy } from '../../support/proxy.ts'
import { eventually, type Scope } from '../../support/scope.ts'
import { createPrefix, elasticsearchOf } from '../../support/stored.ts'
import { createTopics } from '../../support/topics.ts'

const DESCRIPTORS = 80

/** Takes all file descriptors by connections to the admin port. Returns a function that closes them. */
const takeAll = async (scope: Scope, port: number): Promise<() => void> => {
  const held: Socket[] = []
  for (let count = 0; count < 2 * DESCRIPTORS; count++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    held.push(socket)
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  }
  const release = (): void => {
    for (const socket of held) socket.destroy()
  }
  scope.onTestFinished(async () => release())
  return release
}

test('a projector without a free file descriptor stays alive, and continues when it has some again', async t => {
  const topics = await createTopics(t)
  const prefix = createPrefix(t)
  const [kafka, elasticsearch] = [
    await startProxy(t, topics.brokers),
    await startProxy(t, new URL(elasticsearchOf(prefix)).host),
  ]
  const settings = { KAFKA_BROKERS: kafka.address, ELASTICSEARCH_URL: `http://${elasticsearch.address}` }
  const started = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix, settings }), {
    descriptors: DESCRIPTORS,
  })
  const projector = await withAdminPort(started)
  const org = newId('org')
  let ids = 0
  const publish = () =>
    topics.publish(Array.from({ length: 20 }, () => repRecorded({ org_id: org, id: `rep_${++ids}` })))
  await publish()
  await untilCaughtUp(projector)

  const held = [await takeAll(t, portOf(projector))]
  // A connection that fails may free its descriptor after `takeAll`, and the next connection gets it. Then the test
  // takes all descriptors again.
  await eventually(async () => {
    // Its connections break, their descriptors are taken too, and it cannot open new ones.
    await elasticsearch.inject({ kind: 'away' })
    held.push(await takeAll(t, portOf(projector)))
    await eventually(() => expect(openIn(projector)).toBeGreaterThanOrEqual(DESCRIPTORS))
    const asked = elasticsearch.asked().length
    await elasticsearch.heal()
    await publish()
    await eventually(() => expect(projector.log()).toMatch(/"part":"elasticsearch[^}]*does not work/))
    // Elasticsearch is well again, but no descriptor is left to connect.
    await eventually(() => expect(openIn(projector)).toBeGreaterThanOrEqual(DESCRIPTORS))
    expect(elasticsearch.asked()).toHaveLength(asked)
  })
  expect(projector.exit(), projector.log()).toBeUndefined()

  for (const release of held) release()
  await untilCaughtUp(projector)
  await eventually(async () => expect((await projector.ask('/readyz')).text).toContain('true'))
  await publish()
  await untilCaughtUp(projector)
  expect(await projector.stop()).toEqual({ code: 0, signal: null })
  await expectProjectedAsModelled(prefix, topics)
})

/** Returns its open descriptors; on machines that do not tell, the maximum. */
const openIn = ({ pid }: Projector): number =>
  process.platform === 'linux' ? readdirSync(`/proc/${pid}/fd`).length : DESCRIPTORS

const portOf = (projector: Projector): number => {
  const address = projector.lines().find(({ msg }) => msg === 'the admin port listens')?.address
  return (address as { port: number }).port
}
