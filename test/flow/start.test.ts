/** How the processes start, and when they do not: one clear message, an exit code that is not 0, and nothing written. */
import { createServer } from 'node:http'
import kafkajs from 'kafkajs'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { commonIndices, generationId, generationIndices, positionId } from '../../schemas/documents.ts'
import { freePort } from '../../services/ports.ts'
import { keyCreated, newId, newKeyText, periodRecorded, repRecorded } from '../support/events.ts'
import {
  caughtUp,
  expectRefused,
  type LogLine,
  type ProjectorOptions,
  projectorSettings,
  type RunningProcess,
  startApi,
  startProcess,
  startProjector,
} from '../support/processes.ts'
import { passOn } from '../support/proxy.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import {
  allStored,
  call,
  createPrefix,
  deleteStored,
  everythingProjected,
  indexNamed,
  indicesOf,
  type Stored,
  store,
  storedById,
} from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const { ConfigResourceTypes } = kafkajs

const startRefused = (scope: Scope, options: ProjectorOptions, code: string): Promise<string> =>
  expectRefused(startProcess(scope, 'projector/main.ts', projectorSettings(options)), code)

describe('settings', () => {
  const wrong = {
    KAFKA_BROKERS: 'nonsense',
    KAFKA_EVENTS_TOPIC: 'no spaces',
    KAFKA_SSL: 'yes',
    KAFKA_SASL_MECHANISM: 'plain',
    KAFKA_GROUP_ID: '?',
    ELASTICSEARCH_INDEX_PREFIX: 'Upper',
    ELASTICSEARCH_URL: 'ftp://x',
    ELASTICSEARCH_SHARDS: '0',
    LOG_LEVEL: 'loud',
    PROJECTOR_ADMIN_PORT: '65536',
    API_PORT: 'http',
    API_ADMIN_PORT: '-1',
    RATE_LIMIT_REQUESTS: '1.5',
    RATE_LIMIT_WINDOW_SECONDS: '0',
    REDIS_URL: 'http://user:CANARY@x',
  }
  const both = ['ELASTICSEARCH_INDEX_PREFIX', 'ELASTICSEARCH_URL', 'LOG_LEVEL']
  const kafka = ['KAFKA_BROKERS', 'KAFKA_EVENTS_TOPIC', 'KAFKA_SSL', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD']
  const files = {
    'projector/main.ts': [...both, ...kafka, 'KAFKA_GROUP_ID', 'ELASTICSEARCH_SHARDS', 'PROJECTOR_ADMIN_PORT'],
    'projector/topics.ts': kafka,
    'api/main.ts': [...both, ...Object.keys(wrong).filter(name => /^(API|RATE|REDIS)_/.test(name))],
  } as const

  test.for(Object.entries(files))(
    '%s lists every problem in one message: name, expected, got',
    async ([file, names], t) => {
      const child = startProcess(t, file as keyof typeof files, wrong)
      expect(await child.exited).toEqual({ code: 1, signal: null })
      const problems = [...child.log().matchAll(/^ {2}([A-Z_]+): expected .+; got .+$/gm)].map(([, name]) => name)
      expect(problems.toSorted()).toEqual(names.toSorted())
      expect(child.log()).toContain(`${names.length} settings are wrong`)
      expect(child.log()).not.toContain('CANARY')
    },
  )

  test('what is required and missing is a problem too', async t => {
    const child = startProcess(t, 'projector/main.ts', {})
    expect(await child.exited).toEqual({ code: 1, signal: null })
    expect(child.log()).toMatch(
      /KAFKA_BROKERS: expected .+; got nothing\n {2}ELASTICSEARCH_URL: expected .+; got nothing/,
    )
  })
})

describe('topics', () => {
  test('a missing topic is refused with the command that makes it, and nothing is written', async t => {
    const topics = await createTopics(t)
    const prefix = createPrefix(t)
    for (const name of ['events', 'apiKeys'] as const) {
      const missing = `${topics[name]}.missing`
      const options = { topics: { ...topics, [name]: missing }, prefix }
      expect(await startRefused(t, options, 'topic_missing')).toMatch(new RegExp(`${missing}.*npm run topics`))
    }
    expect(await indicesOf(prefix)).toEqual([])
  })

  test('npm run topics makes what is missing, so that nothing is ever deleted, and leaves what is there', async t => {
    const topics = await createTopics(t)
    const fresh = { ...topics, events: `${topics.events}.fresh` }
    t.onTestFinished(() => topics.admin.deleteTopics({ topics: [fresh.events] }))
    const prefix = createPrefix(t)
    const command = startProcess(t, 'projector/topics.ts', projectorSettings({ topics: fresh, prefix }))
    expect(await command.exited, command.log()).toEqual({ code: 0, signal: null })
    expect(command.log()).toContain(`${fresh.events} created with 6 partitions\n${topics.apiKeys} is there already\n`)

    const projector = await startProjector(t, { topics: { ...fresh, partitions: 6 }, prefix })
    await caughtUp(projector)
    expect(warningsOf(projector)).toEqual([])
  })

  const unsuitable = {
    'retention.ms': '604800000',
    'retention.bytes': '1073741824',
    'cleanup.policy': 'compact',
  }
  test.for(Object.entries(unsuitable))(
    'a topic that would lose records is refused: %s=%s',
    async ([name, value], t) => {
      const topics = await createTopics(t, { configuration: { [name]: value } })
      const prefix = createPrefix(t)
      const message = await startRefused(t, { topics, prefix }, 'topic_unsuitable')
      expect(message).toContain(topics.events)
      expect(message).toContain(`${name}: expected`)
      expect(message).toContain(`got ${value}`)
      expect(await indicesOf(prefix)).toEqual([])
    },
  )

  test('a topic of API keys with two partitions is refused', async t => {
    const topics = await createTopics(t, { keyPartitions: 2 })
    const prefix = createPrefix(t)
    const message = await startRefused(t, { topics, prefix }, 'topic_unsuitable')
    expect(message).toContain(`${topics.apiKeys}: expected 1 partition, got 2`)
    expect(await indicesOf(prefix)).toEqual([])
  })

  test('time-stamps of the publishers give a warning, and the projector goes on', async t => {
    const topics = await createTopics(t, { configuration: { 'message.timestamp.type': 'CreateTime' } })
    const projector = await startProjector(t, { topics, prefix: createPrefix(t) })
    await caughtUp(projector)
    const warnings = warningsOf(projector)
    expect(warnings.map(({ topic }) => topic)).toEqual([topics.events, topics.apiKeys])
    for (const { msg } of warnings) expect(msg).toContain('LogAppendTime')
  })
})

/** About the topics: what it waits for while it starts is said as a warning too. */
const warningsOf = ({ lines }: RunningProcess): LogLine[] =>
  lines().filter(({ level, topic }) => level === 40 && topic !== undefined)

describe('ports', () => {
  test('an admin port in use stops the projector before anything is written', async t => {
    const topics = await createTopics(t)
    const prefix = createPrefix(t)
    const port = await occupiedPort(t)
    const settings = { PROJECTOR_ADMIN_PORT: String(port) }
    expect(await startRefused(t, { topics, prefix, settings }, 'port_unavailable')).toContain(`127.0.0.1:${port}`)
    expect(await indicesOf(prefix)).toEqual([])
  })

  test.for(['API_PORT', 'API_ADMIN_PORT'])('%s in use stops the API', async (name, t) => {
    const port = await occupiedPort(t)
    const settings = { ELASTICSEARCH_URL: inject('elasticsearchUrl'), API_PORT: '0', API_ADMIN_PORT: '0' }
    const child = startProcess(t, 'api/main.ts', { ...settings, [name]: String(port) })
    expect(await child.exited).toEqual({ code: 1, signal: null })
    expect(child.log()).toContain(`127.0.0.1:${port}: the port is in use`)
  })
})

const occupiedPort = async (scope: Scope): Promise<number> => {
  const server = createServer()
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await listening
  scope.onTestFinished(async () => void server.close())
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return address.port
}

describe('what was projected before', () => {
  const file = fileScope()
  let topics: Topics
  let prefix: string
  const org = newId('org')

  beforeAll(async () => {
    topics = await createTopics(file)
    prefix = createPrefix(file)
    const projector = await startProjector(file, { topics, prefix })
    await topics.publish([repRecorded({ org_id: org }), periodRecorded({ org_id: org }), keyCreated({ org_id: org })])
    await caughtUp(projector)
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
  })

  /** Starts on what is there now, which must be refused and must stay as it is. */
  const expectUntouched = async (t: Scope, code: string, options: Partial<ProjectorOptions> = {}): Promise<string> => {
    const before = await everythingStored(prefix)
    const message = await startRefused(t, { topics, prefix, ...options }, code)
    expect(await everythingStored(prefix)).toEqual(before)
    return message
  }

  const definitions = () => ({ ...generationIndices(prefix, 'g1', 1), ...commonIndices(prefix) })

  /** Changes a document of the control index for the time of a test. */
  const change = async (t: Scope, id: string, changes: object): Promise<void> => {
    const control = indexNamed(prefix, 'control')
    const document = await storedById(control, id)
    if (document === undefined) throw new Error(`there is no ${id}`)
    t.onTestFinished(() => store(control, id, document))
    await store(control, id, { ...document, body: { ...(document.body as object), ...changes } })
  }

  test('another cluster is refused', async t => {
    await change(t, generationId('g1'), { cluster_id: 'another' })
    expect(await expectUntouched(t, 'source_changed')).toContain('cluster_id: expected another')
  })

  test('another topic is refused', async t => {
    const other = await createTopics(t)
    expect(await expectUntouched(t, 'source_changed', { topics: other })).toContain(other.events)
    const mixed = { ...topics, apiKeys: other.apiKeys }
    expect(await expectUntouched(t, 'source_changed', { topics: mixed })).toContain(other.apiKeys)
  })

  test('another version of the rules is refused', async t => {
    await change(t, generationId('g1'), { rules_version: 99 })
    expect(await expectUntouched(t, 'rules_changed')).toContain('version 99')
  })

  test('another version of the rules for API keys is refused', async t => {
    await change(t, generationId('api-keys'), { rules_version: 99 })
    expect(await expectUntouched(t, 'rules_changed')).toContain('version 99')
  })

  test.for(['g1', 'api-keys'])('a missing position of %s is refused', async (generation, t) => {
    const control = indexNamed(prefix, 'control')
    const id = positionId(generation, 0)
    const document = await storedById(control, id)
    await deleteStored(control, id)
    t.onTestFinished(() => store(control, id, document ?? {}))
    expect(await expectUntouched(t, 'index_missing')).toContain('position')
  })

  test('a record that is not the one that was read is refused', async t => {
    const { partition } = topics.published()[0] ?? {}
    await change(t, positionId('g1', partition ?? 0), { last: { offset: 1, sha256: '0'.repeat(64) } })
    expect(await expectUntouched(t, 'source_changed')).toContain('the last record read')
  })

  test('a partition that ends before what was read is refused', async t => {
    const { partition } = topics.published()[0] ?? {}
    await change(t, positionId('g1', partition ?? 0), { position: 3, last: { offset: 2, sha256: '0'.repeat(64) } })
    await expectUntouched(t, 'records_deleted')
  })

  test.for(['statements', 'reps', 'parked', 'api-keys', 'api-keys-parked'] as const)(
    'a missing index is refused, not made anew: %s',
    async (kind, t) => {
      const name = indexNamed(prefix, kind)
      const documents = await allStored(name)
      const { mappings, settings } = definitions()[name] ?? {}
      await call('DELETE', `/${name}`)
      t.onTestFinished(async () => {
        await call('PUT', `/${name}`, { mappings, settings: { index: settings } })
        for (const { id, version, source } of documents) {
          const path = `/${name}/_doc/${encodeURIComponent(id)}?version=${version}&version_type=external`
          expect((await call('PUT', path, source)).status).toBe(201)
        }
      })
      expect(await expectUntouched(t, 'index_missing')).toContain(name)
    },
  )

  test('an index that refreshes by itself is refused', async t => {
    const settings = `/${indexNamed(prefix, 'payouts')}/_settings`
    await call('PUT', settings, { index: { refresh_interval: '1s' } })
    t.onTestFinished(async () => void (await call('PUT', settings, { index: { refresh_interval: '-1' } })))
    expect(await expectUntouched(t, 'index_unsuitable')).toContain('refresh_interval')
  })

  test('all of this repaired, the projector goes on where it was', async t => {
    const before = await everythingProjected(prefix)
    const projector = await startProjector(t, { topics, prefix })
    await caughtUp(projector)
    expect(await everythingProjected(prefix)).toEqual(before)
    await topics.publish([repRecorded({ org_id: org, name: 'Eve' })])
    await caughtUp(projector)
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
    expect(await everythingProjected(prefix)).not.toEqual(before)
  })

  test('an index with another mapping is refused', async t => {
    const properties = { another: { type: 'keyword' } }
    await call('PUT', `/${indexNamed(prefix, 'payouts')}/_mapping`, { properties })
    expect(await expectUntouched(t, 'index_unsuitable')).toContain('another mapping')
  })
})

/**
 * All but how far the topic of API keys was seen: that topic is in order, and read, while the other one is refused.
 */
const everythingStored = async (prefix: string): Promise<Record<string, unknown>> => {
  const indices = (await indicesOf(prefix)).toSorted()
  const all = await Promise.all(
    indices.map(async index => [index, (await allStored(index)).filter(isOfEvents)] as const),
  )
  return Object.fromEntries(all)
}

const isOfEvents = ({ id }: Stored): boolean => id !== positionId('api-keys', 0)

describe.concurrent('a topic that is not what it was', () => {
  const recorded = (org: string, count: number) =>
    Array.from({ length: count }, (_, place) => repRecorded({ org_id: org, id: `rep_${place}` }))

  /** Topics of one partition, projected and stopped. */
  const projected = async (t: Scope) => {
    const topics = await createTopics(t, { partitions: 1 })
    const prefix = createPrefix(t)
    await topics.publish(recorded(newId('org'), 3))
    const projector = await startProjector(t, { topics, prefix })
    await caughtUp(projector)
    return { topics, prefix, projector }
  }

  /** A producer counts on in a topic that it knows: the new one gets another. */
  const recreate = async (t: Scope, { admin, events, apiKeys }: Topics): Promise<Topics> => {
    await admin.deleteTopics({ topics: [events] })
    await eventually(async () => expect(await admin.listTopics()).not.toContain(events))
    return createTopics(t, { partitions: 1, named: { events, apiKeys } })
  }

  test('a topic made anew under the same name is refused: empty, longer, or as long as it was', async t => {
    const { topics, prefix, projector } = await projected(t)
    await projector.stop()
    const before = await everythingStored(prefix)

    const anew = await recreate(t, topics)
    await startRefused(t, { topics, prefix }, 'records_deleted')
    await anew.publish(recorded(newId('org'), 3))
    await startRefused(t, { topics, prefix }, 'source_changed')
    await anew.publish(recorded(newId('org'), 3))
    await startRefused(t, { topics, prefix }, 'source_changed')
    expect(await everythingStored(prefix)).toEqual(before)
  })

  test('partitions that were added are refused', async t => {
    const { topics, prefix, projector } = await projected(t)
    await projector.stop()
    const before = await everythingStored(prefix)
    await topics.admin.createPartitions({ topicPartitions: [{ topic: topics.events, count: 2 }] })
    const message = await startRefused(t, { topics, prefix }, 'source_changed')
    expect(message).toContain('partitions: expected 1, got 2')
    expect(await everythingStored(prefix)).toEqual(before)
  })

  test('a topic that is deleted while it is read stops the projector', async t => {
    const { topics, prefix, projector } = await projected(t)
    await topics.admin.deleteTopics({ topics: [topics.events] })
    expect(await expectRefused(projector, 'topic_missing')).toContain(topics.events)
    const before = await everythingStored(prefix)
    await startRefused(t, { topics, prefix }, 'topic_missing')
    expect(await everythingStored(prefix)).toEqual(before)
  })

  test('a topic whose first records are gone is refused', async t => {
    const { topics, prefix, projector } = await projected(t)
    await projector.stop()
    const before = await everythingStored(prefix)
    // The client only knows the leaders of topics that it was asked about before.
    await topics.admin.fetchTopicOffsets(topics.events)
    await topics.admin.deleteTopicRecords({ topic: topics.events, partitions: [{ partition: 0, offset: '2' }] })
    expect(await startRefused(t, { topics, prefix }, 'records_deleted')).toContain('no longer begins at offset 0')
    expect(await everythingStored(prefix)).toEqual(before)
  })

  test('a topic that begins to lose records while it is read stops the projector', async t => {
    const { topics, projector } = await projected(t)
    await topics.admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: topics.events,
          configEntries: [{ name: 'retention.ms', value: '1000' }],
        },
      ],
    })
    expect(await expectRefused(projector, 'topic_unsuitable')).toContain('retention.ms: expected -1, got 1000')
  })
})

describe.concurrent('services that come later', () => {
  const inTheWay = ({ lines }: RunningProcess, part: string): LogLine[] => lines().filter(line => line.part === part)

  test.for([
    ['kafka', 'KAFKA_BROKERS', ''],
    ['elasticsearch', 'ELASTICSEARCH_URL', 'http://'],
  ] as const)(
    'without %s the projector is alive, not ready, says so once, and goes on when it comes',
    async (given, t) => {
      const [part, setting, scheme] = given
      const topics = await createTopics(t)
      const prefix = createPrefix(t)
      const port = await freePort()
      const address = `${scheme}127.0.0.1:${port}`
      const projector = await startProjector(t, { topics, prefix, settings: { [setting]: address } })

      await eventually(async () => {
        const { status, text } = await projector.ask('/readyz')
        expect(status).toBe(503)
        expect(JSON.parse(text)).toMatchObject({
          ready: false,
          reasons: { [part]: expect.stringMatching(/not answer/) },
        })
      })
      expect((await projector.ask('/livez')).status).toBe(200)
      expect((await projector.ask('/metrics')).status).toBe(200)
      expect(await indicesOf(prefix)).toEqual([])

      const target = part === 'kafka' ? topics.brokers : new URL(inject('elasticsearchUrl')).host
      await passOn(t, port, target)
      await topics.publish([repRecorded({ org_id: newId('org') })])
      await caughtUp(projector)
      await eventually(async () => expect((await projector.ask('/readyz')).status).toBe(200))
      expect(inTheWay(projector, part).map(({ msg }) => msg)).toEqual(['does not work; trying again', 'works again'])
    },
  )

  test('a projector that waits for a service stops at once when it is told to', async t => {
    const topics = await createTopics(t)
    const settings = { KAFKA_BROKERS: `127.0.0.1:${await freePort()}` }
    const projector = await startProjector(t, { topics, prefix: createPrefix(t), settings })
    await eventually(() => expect(inTheWay(projector, 'kafka')).toHaveLength(1))
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
  })

  test('without elasticsearch the API is alive, not ready, answers 503, says so once, and goes on when it comes', async t => {
    const topics = await createTopics(t)
    const prefix = createPrefix(t)
    const org = newId('org')
    const text = newKeyText()
    const projector = await startProjector(t, { topics, prefix })
    await topics.publish([repRecorded({ org_id: org }), keyCreated({ org_id: org, text })])
    await caughtUp(projector)

    const port = await freePort()
    const settings = { ELASTICSEARCH_URL: `http://127.0.0.1:${port}` }
    const api = await startApi(t, prefix, { settings, ready: false })
    const answer = () => fetch(`${api.url}/reps`, { headers: { authorization: `Bearer ${text}` } })
    expect((await fetch(`${api.adminUrl}/livez`)).status).toBe(200)
    await eventually(async () => {
      const readiness = await fetch(`${api.adminUrl}/readyz`)
      expect(readiness.status).toBe(503)
      expect(await readiness.json()).toMatchObject({ ready: false, reasons: [expect.any(String)] })
    })
    const refused = await answer()
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toMatch(/^[0-9]+$/)
    expect(await refused.json()).toMatchObject({ error: { code: 'unavailable' } })

    await passOn(t, port, new URL(inject('elasticsearchUrl')).host)
    await eventually(async () => expect((await fetch(`${api.adminUrl}/readyz`)).status).toBe(200))
    await eventually(async () => expect((await answer()).status).toBe(200))
    expect(api.log().match(/not ready yet/g)).toHaveLength(1)
  })
})
