/**
 * The projector refuses a source other than the one that it has projected: with one clear log line and exit code 1, and
 * without any write. Both at a start and while it reads. (test/flow/start-again.long.test.ts covers changes between two
 * starts.)
 */
import kafkajs from 'kafkajs'
import { beforeAll, describe, expect, test } from 'vitest'
import { newClusterId } from '../../services/kafka.ts'
import { freePort } from '../../services/ports.ts'
import { type Service, shortLived } from '../../services/service.ts'
import { newId, type Outgoing, repRecorded } from '../support/events.ts'
import { type OwnServices, startOwnServer, startOwnServices } from '../support/own-services.ts'
import { expectRefused, projectorSettings, startProcess, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { createPrefix, everythingProjected, readPosition } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const { ConfigResourceTypes } = kafkajs

const file = fileScope()
let services: OwnServices
beforeAll(async () => {
  services = await startOwnServices(file)
})

const reps = (count: number): Outgoing[] => {
  const org = newId('org')
  return Array.from({ length: count }, (_, at) => repRecorded({ org_id: org, id: `rep_${at}` }))
}

/** Starts a projector that catches up with some records. Returns it with the state at that moment. */
const projected = async (t: Scope, topics: Topics, records: readonly Outgoing[]) => {
  const prefix = createPrefix(t, services.elasticsearch.address)
  await topics.publish(records)
  const projector = await startProjector(t, { topics, prefix })
  await untilCaughtUp(projector)
  return { topics, prefix, projector, before: await everythingStored(prefix) }
}
type Projected = Awaited<ReturnType<typeof projected>>

/** Everything but the time of the position, which may still advance until the change. */
const everythingStored = async (prefix: string) => {
  const { position, last, at } = await readPosition(prefix, 'g1', 0)
  return { ...(await everythingProjected(prefix)), position, last, at }
}

/** Expects that the projector stopped with this code, refuses to start again, and changed nothing. */
const expectRefusedForGood = async (
  t: Scope,
  { topics, prefix, projector, before }: Projected,
  code: string,
): Promise<string[]> => {
  const running = await expectRefused(projector, code)
  expect(await everythingStored(prefix)).toEqual(before)
  const again = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }))
  const starting = await expectRefused(again, code)
  expect(await everythingStored(prefix)).toEqual(before)
  return [running, starting]
}

describe.concurrent('a projector stops when its topic changes while it reads', () => {
  const configure = (name: string, value: string) => (topics: Topics) =>
    topics.admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topics.events, configEntries: [{ name, value }] }],
    })

  test.for([
    {
      what: 'partitions are added',
      change: ({ admin, events }: Topics) =>
        admin.createPartitions({ topicPartitions: [{ topic: events, count: 2 }] }).then(() => undefined),
      code: 'source_changed',
      says: 'partitions: expected 1, got 2',
    },
    {
      what: 'the first records are deleted',
      change: async ({ admin, events }: Topics) => {
        // The client knows only the leaders of topics that it asked about before.
        await admin.fetchTopicOffsets(events)
        await admin.deleteTopicRecords({ topic: events, partitions: [{ partition: 0, offset: '2' }] })
      },
      code: 'records_deleted',
      says: 'no longer begins at offset 0',
    },
    {
      what: 'the topic becomes compacted',
      change: configure('cleanup.policy', 'compact'),
      code: 'topic_unsuitable',
      says: 'cleanup.policy: expected delete, got compact',
    },
    {
      what: 'the topic gets a retention by size',
      change: configure('retention.bytes', '1000000000'),
      code: 'topic_unsuitable',
      says: 'retention.bytes: expected -1, got 1000000000',
    },
  ])('$what', async ({ change, code, says }, t) => {
    const topics = await createTopics(t, { kafka: services.kafka.address, partitions: 1 })
    const its = await projected(t, topics, reps(3))
    await change(topics)
    for (const message of await expectRefusedForGood(t, its, code)) expect(message).toContain(says)
  })

  test('the topic is deleted and created again at once, with the same number of records', async t => {
    const topics = await createTopics(t, { kafka: services.kafka.address, partitions: 1 })
    const its = await projected(t, topics, reps(3))
    const { admin, events, apiKeys } = topics
    await admin.deleteTopics({ topics: [events] })
    // At once: the projector may not notice that the topic was missing.
    await eventually(async () => expect(await admin.listTopics()).not.toContain(events), { every: 1 })
    const anew = await createTopics(t, { kafka: services.kafka.address, partitions: 1, named: { events, apiKeys } })
    await anew.publish(reps(3))
    const { exit, log } = its.projector
    await eventually(() => expect(exit(), log()).toEqual({ code: 1, signal: null }), { within: 60_000 })
    expect(await everythingStored(its.prefix)).toEqual(its.before)
    await expectRefused(startProcess(t, 'projector/main.ts', projectorSettings(its)), 'source_changed')
    expect(await everythingStored(its.prefix)).toEqual(its.before)
  })
})

test.concurrent('a projector refuses another log behind the same address, at once and at every start, and writes nothing of it', async t => {
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const advertised = { 'advertised.listeners': `PLAINTEXT://${address}` }
  const sameId = `-Dcluster.id=${newClusterId()}`
  const startBehindIt = (...javaOptions: readonly string[]) =>
    startOwnServer(t, 'kafka', {
      settings: advertised,
      javaOptions: [...(shortLived.javaOptions ?? []), ...javaOptions],
    })
  const [one, cut, another] = await Promise.all([startBehindIt(sameId), startBehindIt(sameId), startBehindIt()])
  const { skip } = t
  skip(one.pid === undefined, 'the id of a cluster cannot be chosen in Docker')
  let door = await startProxy(t, cut.address, { port })
  const turnTo = async (kafka: Service): Promise<void> => {
    await door.inject({ kind: 'away' })
    door = await startProxy(t, kafka.address, { port })
  }
  const newTopics = (named?: Topics) => createTopics(t, { kafka: address, partitions: 1, ...(named && { named }) })

  const there = { shorter: 1, 'as long': 3, longer: 6 }
  const names = new Map<string, Topics>()
  for (const [what, count] of Object.entries(there)) {
    const topics = await newTopics()
    await topics.publish(reps(count))
    names.set(what, topics)
  }
  await turnTo(another)
  const later = [await newTopics(), await newTopics()]
  for (const topics of later) await topics.publish(reps(6))

  await turnTo(one)
  const read = new Map<string, Projected>()
  for (const [what, topics] of names) read.set(what, await projected(t, await newTopics(topics), reps(3)))
  read.set('missing', await projected(t, await newTopics(), reps(3)))

  // The same cluster with topics of the same names that were made anew, whatever is in them.
  await turnTo(cut)
  const codes = {
    shorter: 'source_changed',
    'as long': 'source_changed',
    longer: 'source_changed',
    missing: 'topic_missing',
  }
  await Promise.all(
    Object.entries(codes).map(async ([what, code]) => {
      const its = read.get(what)
      if (its === undefined) throw new Error(`nothing was read of ${what}`)
      await expectRefusedForGood(t, its, code)
    }),
  )

  // Another cluster, which also has records where there were none before.
  await turnTo(one)
  const both: Projected[] = []
  for (const [at, topics] of later.entries()) {
    both.push(await projected(t, await newTopics(topics), at === 0 ? reps(3) : []))
  }
  await turnTo(another)
  for (const its of both) {
    for (const message of await expectRefusedForGood(t, its, 'source_changed')) expect(message).toContain('cluster_id')
  }
})
