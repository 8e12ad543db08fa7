/** A start that finds another state than before is refused with a clear code, and changes nothing. */
import kafkajs from 'kafkajs'
import { beforeAll, describe, expect, test } from 'vitest'
import { generationId, positionId } from '../../schemas/stored/documents.ts'
import { commonIndices, generationIndices } from '../../schemas/stored/mappings.ts'
import { shardIdsIn, shardIdsRequest } from '../../schemas/stored/shard-ids.ts'
import { keyCreated, newId, periodRecorded, repRecorded } from '../support/events.ts'
import { newLayout } from '../support/layout.ts'
import {
  expectRefused,
  type ProjectorOptions,
  projectorSettings,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import {
  allIn,
  call,
  createPrefix,
  deleteStored,
  everythingProjected,
  indexNamed,
  indicesOf,
  pathTo,
  store,
  storedById,
} from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const { ConfigResourceTypes } = kafkajs

const startRefused = (scope: Scope, options: ProjectorOptions, code: string): Promise<string> =>
  expectRefused(startProcess(scope, 'projector/main.ts', projectorSettings(options)), code)

describe('after an earlier run', () => {
  const file = fileScope()
  let topics: Topics
  let prefix: string
  const org = newId('org')

  beforeAll(async () => {
    // One partition: other, healthy partitions would continue and update the time of their data.
    const started = await startProjection(
      file,
      [repRecorded({ org_id: org }), periodRecorded({ org_id: org }), keyCreated({ org_id: org })],
      { partitions: 1 },
    )
    ;({ topics, prefix } = started)
    expect(await started.projector.stop()).toEqual({ code: 0, signal: null })
  })

  /** Starts with the current state. Expects a refusal, and no change. */
  const expectUntouched = async (t: Scope, code: string, options: Partial<ProjectorOptions> = {}): Promise<string> => {
    const before = await everythingStored(prefix)
    const message = await startRefused(t, { topics, prefix, ...options }, code)
    expect(await everythingStored(prefix)).toEqual(before)
    return message
  }

  const definitions = () => ({
    ...generationIndices(prefix, { generation: 'g1', ...newLayout }, { shards: 1 }),
    ...commonIndices(prefix),
  })

  /** Changes a document of the control index until the end of the test. */
  const change = async (t: Scope, id: string, changes: object): Promise<void> => {
    const control = indexNamed(prefix, 'control')
    const document = await storedById(control, id)
    if (document === undefined) throw new Error(`there is no ${id}`)
    t.onTestFinished(() => store(control, id, document))
    await store(control, id, { ...document, body: { ...(document.body as object), ...changes } })
  }

  /** Records a recreated index as if it had always been there. */
  const recordIndex = async (generation: string, name: string): Promise<void> => {
    const control = indexNamed(prefix, 'control')
    const document = (await storedById(control, generationId(generation))) as { kind: string; body: Recorded }
    const { text } = await call('GET', `/${name}/_settings`)
    const { uuid } =
      (JSON.parse(text) as Record<string, { settings: { index: { uuid: string } } }>)[name]?.settings.index ?? {}
    const indices = { ...document.body.indices, [name]: uuid }
    const { path } = shardIdsRequest(name)
    const found = shardIdsIn(JSON.parse((await call('GET', `${path}?level=shards`)).text), [name])
    expect(Object.keys(found)).toEqual([`${name}/0`])
    const body = { ...document.body, indices, shards: { ...document.body.shards, ...found } }
    await store(control, generationId(generation), { ...document, body })
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

  test('another record in place of the last one is refused', async t => {
    const { partition } = topics.published()[0] ?? {}
    await change(t, positionId('g1', partition ?? 0), { last: { offset: 1, sha256: '0'.repeat(64) } })
    expect(await expectUntouched(t, 'source_changed')).toContain('the last record read')
  })

  test('a partition that ends before the position is refused', async t => {
    const { partition } = topics.published()[0] ?? {}
    await change(t, positionId('g1', partition ?? 0), { position: 3, last: { offset: 2, sha256: '0'.repeat(64) } })
    await expectUntouched(t, 'records_deleted')
  })

  test.for(['statements', 'payouts', 'parked', 'api-keys', 'api-keys-parked'] as const)(
    'a missing index is refused, and not created again: %s',
    async (kind, t) => {
      const name = indexNamed(prefix, kind)
      const documents = await allIn(name)
      const { mappings, settings } = definitions()[name] ?? {}
      await call('DELETE', `/${name}`)
      t.onTestFinished(async () => {
        await call('PUT', `/${name}`, { mappings, settings: { index: settings } })
        for (const { id, version, source } of documents) {
          const path = pathTo(name, id, `version=${version}&version_type=external`)
          expect((await call('PUT', path, source)).status).toBe(201)
        }
        await recordIndex(kind.startsWith('api-keys') ? 'api-keys' : 'g1', name)
      })
      expect(await expectUntouched(t, 'index_missing')).toContain(name)
    },
  )

  test.for(['payouts', 'control', 'api-keys'] as const)(
    'a replaced index with the same name is refused: %s',
    async (kind, t) => {
      const indices = Object.fromEntries([[indexNamed(prefix, kind), 'another']])
      await change(t, generationId(kind === 'api-keys' ? 'api-keys' : 'g1'), { indices })
      expect(await expectUntouched(t, 'index_replaced')).toContain(indexNamed(prefix, kind))
    },
  )

  test('an index whose documents go through a pipeline is refused', async t => {
    const settings = `/${indexNamed(prefix, 'payouts')}/_settings`
    await call('PUT', settings, { index: { final_pipeline: 'none-such' } })
    t.onTestFinished(async () => void (await call('PUT', settings, { index: { final_pipeline: null } })))
    expect(await expectUntouched(t, 'index_unsuitable')).toContain('index.final_pipeline: expected none, got none-such')
  })

  test('settings that do no harm are put back, with a warning that names index, setting, expected and got', async t => {
    // A projector that runs also writes times and past positions.
    const withoutTimes = () => everythingStored(prefix, /^(position:api-keys|times|past):/)
    const before = await withoutTimes()
    const settings = `/${prefix}-*/_settings`
    // The first is what somebody does who wants the default again.
    await call('PUT', settings, { index: { refresh_interval: null, 'translog.durability': 'async', priority: 5 } })
    const projector = await startProjector(t, { topics, prefix })
    await untilCaughtUp(projector)
    const names = Object.keys(definitions()).sort()
    const told = () => projector.lines().filter(({ msg }) => msg === 'a setting of an index was put back')
    for (const [setting, expected, got] of [
      ['refresh_interval', '-1', 'nothing (the default)'],
      ['translog.durability', 'request', 'async'],
    ]) {
      const ofSetting = () => told().filter(line => line.setting === setting)
      const indices = () => ofSetting().map(({ index }) => index)
      await eventually(() => expect(indices().sort()).toEqual(names))
      expect(ofSetting()).toContainEqual(expect.objectContaining({ expected, got, level: 40 }))
    }
    const { text } = await call('GET', `${settings}?flat_settings=true`)
    const found = JSON.parse(text) as Record<string, { settings: Record<string, string> }>
    expect(Object.keys(found).sort()).toEqual(names)
    for (const index of Object.values(found)) {
      expect(index.settings).toMatchObject({ 'index.refresh_interval': '-1', 'index.priority': '5' })
      expect(index.settings).not.toHaveProperty('index.translog.durability')
    }
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
    await call('PUT', settings, { index: { priority: null } })
    expect(await withoutTimes()).toEqual(before)
  })

  test('after these problems are repaired, the projector continues where it stopped', async t => {
    const before = await everythingProjected(prefix)
    const projector = await startProjector(t, { topics, prefix })
    await untilCaughtUp(projector)
    expect(await everythingProjected(prefix)).toEqual(before)
    await topics.publish([repRecorded({ org_id: org, name: 'Eve' })])
    await untilCaughtUp(projector)
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
    expect(await everythingProjected(prefix)).not.toEqual(before)
  })

  test('an index with a different mapping is refused', async t => {
    const properties = { another: { type: 'keyword' } }
    await call('PUT', `/${indexNamed(prefix, 'payouts')}/_mapping`, { properties })
    expect(await expectUntouched(t, 'index_unsuitable')).toContain('another mapping')
  })
})

type Recorded = Readonly<Record<'indices' | 'shards', Readonly<Record<string, string>>>>

/** Everything except positions and times of the API keys: their topic is still read while the other one is refused. */
const everythingStored = async (
  prefix: string,
  except = /^(position|times|past):api-keys(:|$)/,
): Promise<Record<string, unknown>> => {
  const indices = (await indicesOf(prefix)).toSorted()
  const compared = async (index: string) => (await allIn(index)).filter(({ id }) => !except.test(id))
  return Object.fromEntries(await Promise.all(indices.map(async index => [index, await compared(index)] as const)))
}

describe.concurrent('a topic that has changed', () => {
  const recorded = (org: string, count: number) =>
    Array.from({ length: count }, (_, place) => repRecorded({ org_id: org, id: `rep_${place}` }))

  /** Topics of one partition, projected, with their projector. */
  const projected = async (t: Scope) => {
    const topics = await createTopics(t, { partitions: 1 })
    const prefix = createPrefix(t)
    await topics.publish(recorded(newId('org'), 3))
    const projector = await startProjector(t, { topics, prefix })
    await untilCaughtUp(projector)
    return { topics, prefix, projector }
  }

  /** Deletes and creates the topic. Uses a new producer: the old one would continue its sequence numbers. */
  const recreate = async (t: Scope, { admin, events, apiKeys }: Topics): Promise<Topics> => {
    await admin.deleteTopics({ topics: [events] })
    await eventually(async () => expect(await admin.listTopics()).not.toContain(events))
    return createTopics(t, { partitions: 1, named: { events, apiKeys } })
  }

  test('a recreated topic with the same name is refused: empty, longer, or of the same length', async t => {
    const { topics, prefix, projector } = await projected(t)
    await projector.stop()
    const before = await everythingStored(prefix)

    const anew = await recreate(t, topics)
    expect(await startRefused(t, { topics, prefix }, 'source_changed')).toContain('topic_id: expected ')
    await anew.publish(recorded(newId('org'), 3))
    await startRefused(t, { topics, prefix }, 'source_changed')
    await anew.publish(recorded(newId('org'), 3))
    await startRefused(t, { topics, prefix }, 'source_changed')
    expect(await everythingStored(prefix)).toEqual(before)
  })

  test('added partitions are refused', async t => {
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

  test('a topic without its first records is refused', async t => {
    const { topics, prefix, projector } = await projected(t)
    await projector.stop()
    const before = await everythingStored(prefix)
    // kafkajs knows the leaders only of topics that it has asked about.
    await topics.admin.fetchTopicOffsets(topics.events)
    await topics.admin.deleteTopicRecords({ topic: topics.events, partitions: [{ partition: 0, offset: '2' }] })
    expect(await startRefused(t, { topics, prefix }, 'records_deleted')).toContain('no longer begins at offset 0')
    expect(await everythingStored(prefix)).toEqual(before)
  })

  test('a topic whose retention is changed while it is read stops the projector', async t => {
    const { topics, projector } = await projected(t)
    // Long: the broker must not delete a record before the projector reads the setting.
    const oneWeek = 7 * 24 * 60 * 60 * 1000
    await topics.admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: topics.events,
          configEntries: [{ name: 'retention.ms', value: String(oneWeek) }],
        },
      ],
    })
    expect(await expectRefused(projector, 'topic_unsuitable')).toContain(`retention.ms: expected -1, got ${oneWeek}`)
  })
})
