/** Starts and refused starts of the processes: one clear message, an exit code that is not 0, and nothing written. */
import { createServer } from 'node:http'
import { describe, expect, inject, test } from 'vitest'
import { templateNameOf } from '../../schemas/stored/documents.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { newId, repRecorded } from '../support/events.ts'
import {
  expectRefused,
  type LogLine,
  type ProjectorOptions,
  projectorSettings,
  type RunningProcess,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { call, createPrefix, indexNamed, indicesOf } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

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
    ELASTICSEARCH_REPLICAS: 'all',
    LOG_LEVEL: 'loud',
    PROJECTOR_ADMIN_PORT: '65536',
    API_PORT: 'http',
    API_ADMIN_PORT: '-1',
    API_DRAIN_SECONDS: '-1',
    RATE_LIMIT_REQUESTS: '1.5',
    RATE_LIMIT_WINDOW_SECONDS: '0',
    REDIS_URL: 'http://user:CANARY@x',
  }
  const both = ['ELASTICSEARCH_INDEX_PREFIX', 'ELASTICSEARCH_URL', 'LOG_LEVEL']
  const kafka = ['KAFKA_BROKERS', 'KAFKA_EVENTS_TOPIC', 'KAFKA_SSL', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD']
  const files = {
    'projector/main.ts': [
      ...both,
      ...kafka,
      'KAFKA_GROUP_ID',
      'ELASTICSEARCH_SHARDS',
      'ELASTICSEARCH_REPLICAS',
      'PROJECTOR_ADMIN_PORT',
    ],
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

  test('a missing required setting is a problem too', async t => {
    const child = startProcess(t, 'projector/main.ts', {})
    expect(await child.exited).toEqual({ code: 1, signal: null })
    expect(child.log()).toMatch(
      /KAFKA_BROKERS: expected .+; got nothing\n {2}ELASTICSEARCH_URL: expected .+; got nothing/,
    )
  })
})

describe('topics', () => {
  test('a missing topic is refused with the command that creates it, and nothing is written', async t => {
    const topics = await createTopics(t)
    const prefix = createPrefix(t)
    for (const name of ['events', 'apiKeys'] as const) {
      const missing = `${topics[name]}.missing`
      const options = { topics: { ...topics, [name]: missing }, prefix }
      expect(await startRefused(t, options, 'topic_missing')).toMatch(new RegExp(`${missing}.*npx commission topics`))
    }
    expect(await indicesOf(prefix)).toEqual([])
  })

  test('npx commission topics creates missing topics with unlimited retention, and does not change existing ones', async t => {
    const topics = await createTopics(t)
    const fresh = { ...topics, events: `${topics.events}.fresh` }
    t.onTestFinished(() => topics.admin.deleteTopics({ topics: [fresh.events] }))
    const prefix = createPrefix(t)
    const command = startProcess(t, 'projector/topics.ts', projectorSettings({ topics: fresh, prefix }))
    expect(await command.exited, command.log()).toEqual({ code: 0, signal: null })
    expect(command.log()).toContain(`${fresh.events} created with 6 partitions\n${topics.apiKeys} is there already\n`)

    const projector = await startProjector(t, { topics: { ...fresh, partitions: 6 }, prefix })
    await untilCaughtUp(projector)
    expect(warningsOf(projector)).toEqual([])
  })

  test('npx commission topics creates topics with KAFKA_MAX_MESSAGE_BYTES; a projector that expects larger records warns', async t => {
    const topics = await createTopics(t)
    const fresh = { ...topics, events: `${topics.events}.small`, partitions: 6 }
    t.onTestFinished(() => topics.admin.deleteTopics({ topics: [fresh.events] }))
    const prefix = createPrefix(t)
    const settings = { ...projectorSettings({ topics: fresh, prefix }), KAFKA_MAX_MESSAGE_BYTES: '1048576' }
    const command = startProcess(t, 'projector/topics.ts', settings)
    expect(await command.exited, command.log()).toEqual({ code: 0, signal: null })
    const projector = await startProjector(t, { topics: fresh, prefix })
    await untilCaughtUp(projector)
    await eventually(() =>
      expect(warningsOf(projector).map(({ msg }) => msg)).toEqual([
        'max.message.bytes: expected KAFKA_MAX_MESSAGE_BYTES (9437184) or more, got 1048576: larger records cannot be published',
      ]),
    )
  })

  test('npx commission topics reports differences of an existing topic, and refuses one that would lose records', async t => {
    const two = await createTopics(t, { partitions: 2 })
    const settings = { ...projectorSettings({ topics: two, prefix: createPrefix(t) }), KAFKA_EVENTS_PARTITIONS: '3' }
    const command = startProcess(t, 'projector/topics.ts', settings)
    expect(await command.exited, command.log()).toEqual({ code: 0, signal: null })
    expect(command.log()).toContain(`${two.events} is there already; it has 2 partitions, not 3`)

    const losing = await createTopics(t, { configuration: { 'retention.ms': '1000' } })
    const refused = startProcess(
      t,
      'projector/topics.ts',
      projectorSettings({ topics: losing, prefix: createPrefix(t) }),
    )
    expect(await refused.exited).toEqual({ code: 1, signal: null })
    expect(refused.log()).toContain(`${losing.events}: retention.ms: expected -1, got 1000`)

    // As if the topic of events were named for the keys.
    const keys = { ...two, apiKeys: two.events, events: `${two.events}.other` }
    t.onTestFinished(() => two.admin.deleteTopics({ topics: [keys.events] }))
    const manyKeys = startProcess(
      t,
      'projector/topics.ts',
      projectorSettings({ topics: keys, prefix: createPrefix(t) }),
    )
    expect(await manyKeys.exited).toEqual({ code: 1, signal: null })
    expect(manyKeys.log()).toContain(`${two.events}: expected 1 partition, got 2`)
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

  test('timestamps of the publishers give a warning, and the projector continues', async t => {
    const topics = await createTopics(t, { configuration: { 'message.timestamp.type': 'CreateTime' } })
    const projector = await startProjector(t, { topics, prefix: createPrefix(t) })
    await untilCaughtUp(projector)
    const topicsOf = () => warningsOf(projector).map(({ topic }) => topic)
    await eventually(() => expect(topicsOf()).toEqual([topics.events, topics.apiKeys]))
    for (const { msg } of warningsOf(projector)) expect(msg).toContain('LogAppendTime')
  })
})

/** Warnings about topics. Services that a start waits for are logged as warnings too. */
const warningsOf = ({ lines }: RunningProcess): LogLine[] =>
  lines().filter(({ level, topic }) => level === 40 && topic !== undefined)

describe('indices', () => {
  test('more shards than Elasticsearch allows stop a first start with its reason; a start with fewer completes it', async t => {
    const topics = await createTopics(t)
    const prefix = createPrefix(t)
    // One node allows 1,000 shards. Elasticsearch refuses the first index, and creates none of its shards.
    const settings = { ELASTICSEARCH_SHARDS: '1024' }
    const message = await startRefused(t, { topics, prefix, settings }, 'write_refused')
    expect(message).toMatch(
      new RegExp(`creating ${prefix}-g1-\\w+: Elasticsearch answers 400, validation_exception; .+max_shards_per_node`),
    )
    expect(await indicesOf(prefix)).toEqual([indexNamed(prefix, 'control')])
    await untilCaughtUp(await startProjector(t, { topics, prefix }))
  })

  test('an index template of others, that wins over ours, stops a first start and is named', async t => {
    const topics = await createTopics(t)
    const prefix = createPrefix(t)
    const name = `all-indices-of-${prefix}`
    const template = { settings: { 'index.mapping.ignore_above': 32 } }
    const body = { index_patterns: [`${prefix}-*`], priority: 1_000_000, template }
    t.onTestFinished(async () => void (await call('DELETE', `/_index_template/${name}`)))
    const put = async (given: object) => expect((await call('PUT', `/_index_template/${name}`, given)).status).toBe(200)
    await put(body)
    expect(await startRefused(t, { topics, prefix }, 'index_unsuitable')).toContain(
      `index template ${name}, with priority 1000000, wins over `,
    )
    // With this one, searches would find no record.
    await put({ ...body, allow_auto_create: false })
    const message = await startRefused(t, { topics, prefix }, 'index_unsuitable')
    expect(message).toContain(
      `${indexNamed(prefix, 'control')}: index.mapping.ignore_above: expected 256 or more, got 32`,
    )
    expect(message).toMatch(new RegExp(`index templates of others that apply to it: .*${name}`))
  })

  test('our index template is put back by a running projector, and by a rebuild, after somebody has deleted it', async t => {
    const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: newId('org') })])
    const template = `/_index_template/${templateNameOf(prefix)}`
    const remove = async () => expect((await call('DELETE', template)).status).toBe(200)
    await remove()
    await eventually(async () => expect((await call('GET', template)).status).toBe(200))
    expect(projector.lines()).toContainEqual(
      expect.objectContaining({
        template: templateNameOf(prefix),
        msg: 'the index template of this prefix was put back',
      }),
    )
    await projector.stop()
    await remove()
    const rebuilt = await runCommand(['projection', 'rebuild'], commandSettings(topics, prefix))
    expect(rebuilt, rebuilt.said).toMatchObject({ code: 0 })
    expect((await call('GET', template)).status).toBe(200)
  })

  test('indices that somebody hid belong to their generation: it is listed as whole, and dropped with them', async t => {
    const { topics, prefix } = await startProjection(t, [repRecorded({ org_id: newId('org') })])
    const projection = (...args: string[]) => runCommand(['projection', ...args], commandSettings(topics, prefix))
    expect(await projection('rebuild')).toMatchObject({ code: 0 })
    const hidden = await call('PUT', `/${prefix}-g*/_settings`, { index: { hidden: true } })
    expect(hidden.status, hidden.text).toBe(200)
    const listed = await projection('list')
    expect(listed).toMatchObject({ code: 0 })
    expect(listed.out.toString()).not.toContain('not whole')
    expect(await projection('drop', 'g2')).toMatchObject({ code: 0 })
    expect((await indicesOf(prefix)).filter(name => name.startsWith(`${prefix}-g2-`))).toEqual([])
  })
})

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
