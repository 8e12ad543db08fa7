/**
 * `doctor` asks what a projector asks at its start: each fault that stops a start is found, with the same stop
 * code, and nothing changes. The table below has every refusal of a start.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { recordHash } from '../../../core/ledger/event/decode.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import { control, EVENTS, GROUP, KEYS, setting, started, World, written } from './started-world.ts'

/** A fault that stops a start, by the refusal of `refusals` below. */
const faults: readonly (readonly [what: string, code: string, make: (world: World) => void])[] = [
  ['the topic of events is missing', 'topic_missing', world => delete world.partitions[EVENTS]],
  ['the topic of keys is missing', 'topic_missing', world => delete world.partitions[KEYS]],
  ['a topic is compacted', 'topic_unsuitable', world => (world.configuration['cleanup.policy'] = 'compact')],
  ['the topic of keys has two partitions', 'topic_unsuitable', world => (world.partitions[KEYS] = 2)],
  ['records were deleted', 'records_deleted', world => (world.low = '3')],
  ['the cluster is another one', 'source_changed', world => (world.clusterId = 'cluster-2')],
  ['a topic was made anew', 'source_changed', world => (world.topicId = 'BBBBBBBBBBBBBBBBBBBBBB')],
  ['the topic has another number of partitions', 'source_changed', world => (world.partitions[EVENTS] = 3)],
  [
    'the log ends before a position of events',
    'records_deleted',
    world => control(world, 'position:g1:1', { position: 6 }),
  ],
  [
    'the last record of a partition is another one',
    'source_changed',
    world => control(world, 'position:g1:1', { position: 5, last: { offset: 4, sha256: 'another' } }),
  ],
  [
    'documents are written of another record',
    'source_changed',
    world => written(world, { offset: 4, sha256: 'another' }),
  ],
  ['the log ends before written documents', 'records_deleted', world => written(world, { offset: 5, sha256: 'a' })],
  [
    'the log ends before the position of keys',
    'records_deleted',
    world => control(world, 'position:api-keys:0', { position: 6 }),
  ],
  [
    'the live document is gone',
    'index_missing',
    world => {
      world.elasticsearch.documents.delete('test-control/live')
      world.elasticsearch.indices.set('test-g2-reps', { mappings: {}, settings: { index: {} } })
    },
  ],
  ['the control index is gone', 'index_missing', world => world.elasticsearch.indices.delete('test-control')],
  [
    'the document of the generation is gone',
    'index_missing',
    world => world.elasticsearch.documents.delete('test-control/generation:g1'),
  ],
  [
    'the document of the generation of keys is gone',
    'index_missing',
    world => world.elasticsearch.documents.delete('test-control/generation:api-keys'),
  ],
  ['an index is gone', 'index_missing', world => world.elasticsearch.indices.delete('test-g1-payouts')],
  ['an index of keys is gone', 'index_missing', world => world.elasticsearch.indices.delete('test-api-keys')],
  ['a position is gone', 'index_missing', world => world.elasticsearch.documents.delete('test-control/position:g1:1')],
  [
    'the position of keys is gone',
    'index_missing',
    world => world.elasticsearch.documents.delete('test-control/position:api-keys:0'),
  ],
  ['documents are being removed', 'position_went_back', world => control(world, 'position:g1:0', { removing: true })],
  ['an index of events was restored', 'index_replaced', world => world.elasticsearch.replaced.add('test-g1-payouts')],
  [
    'an index of keys was restored',
    'index_replaced',
    world => world.elasticsearch.replaced.add('test-api-keys-parked'),
  ],
  ['a shard was lost', 'index_replaced', world => world.elasticsearch.lost.add('test-g1-payouts')],
  ['the control index was restored', 'index_replaced', world => world.elasticsearch.replaced.add('test-control')],
  [
    'an index has another mapping',
    'index_unsuitable',
    world => {
      const index = world.elasticsearch.indices.get('test-g1-payouts')
      if (index) index.mappings = { dynamic: 'true' }
    },
  ],
  ['an index has a pipeline', 'index_unsuitable', world => setting(world, 'test-g1-payouts', 'final_pipeline', 'x')],
  [
    'the control index has a pipeline',
    'index_unsuitable',
    world => setting(world, 'test-control', 'default_pipeline', 'x'),
  ],
  ['a template of others refuses ours', 'index_unsuitable', world => (world.elasticsearch.templateStatus = 400)],
  [
    'acknowledged documents can be lost',
    'index_unsuitable',
    world => {
      world.elasticsearch.mayManage = false
      setting(world, 'test-api-keys', 'translog.durability', 'async')
    },
  ],
  [
    'the answer about roles has another form',
    'write_refused',
    world => {
      world.elasticsearch.privileges = { roles: [] }
    },
  ],
  [
    'a role hides payouts',
    'documents_hidden',
    world => {
      const whole = { names: ['test-control', 'test-api-*'], privileges: ['read'] }
      const part = { names: ['*'], privileges: ['all'], query: ['{"term":{"org_id":"org_1"}}'] }
      world.elasticsearch.privileges = { indices: [whole, part] }
    },
  ],
  [
    'a role hides the positions',
    'documents_hidden',
    world => {
      world.elasticsearch.privileges = { indices: [{ names: ['test-control'], privileges: ['read'], query: ['{}'] }] }
    },
  ],
  [
    'a template of others lets indices be created',
    'index_unsuitable',
    world =>
      world.elasticsearch.templates.push({ name: 'a', index_template: { index_patterns: '*', priority: 1_000 } }),
  ],
  ['an index is an alias', 'index_unsuitable', world => world.elasticsearch.aliases.add('test-g1-payouts')],
  ['the projection has other rules', 'rules_changed', world => control(world, 'generation:g1', { rules_version: 99 })],
  ['the keys have other rules', 'rules_changed', world => control(world, 'generation:api-keys', { rules_version: 99 })],
  ['the group of events is another installation’s', 'group_shared', world => (world.members[`${GROUP}-g1`] = 'other')],
  [
    'the group of keys is another installation’s',
    'group_shared',
    world => (world.members[`${GROUP}-api-keys`] = 'other'),
  ],
]

describe('what stops a start is found, and nothing changes:', () => {
  test.each(faults)('%s', async (_, code, make) => {
    const world = await started()
    make(world)
    const before = structuredClone([...world.elasticsearch.documents])
    const asked = world.elasticsearch.asked.length
    const failed = (await world.doctor()).filter(({ outcome }) => outcome === 'failed')
    expect(failed.length).toBeGreaterThan(0)
    const writes = world.elasticsearch.asked
      .slice(asked)
      .filter(one => !/^(GET|POST \/_index_template\/_simulate)/.test(one))
    expect(writes).toEqual([])
    expect([...world.elasticsearch.documents]).toEqual(before)
    const refused = await world.start().then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(StopError)
    expect(refused).toMatchObject({ code })
    // The checks of topics have their own words.
    if (!code.startsWith('topic'))
      expect(failed.map(({ detail }) => detail).join('\n')).toMatch(new RegExp(`\\b${code}\\b`))
  })
})

test.each<[unread: string, make: (elasticsearch: World['elasticsearch']) => void]>([
  ['index templates', elasticsearch => (elasticsearch.mayReadTemplates = false)],
  [
    'action.auto_create_index',
    elasticsearch => {
      elasticsearch.autoCreateIndex = undefined
      elasticsearch.templates.push({ name: 'a', index_template: { index_patterns: '*', priority: 1_000 } })
    },
  ],
])('a user who may not read %s gets one warning, and the rest is inspected', async (unread, make) => {
  const world = await started()
  make(world.elasticsearch)
  const found = (await world.doctor()).filter(({ check }) => check === 'projection')
  expect(found.flatMap(({ outcome, detail }) => (outcome === 'ok' ? [] : [detail]))).toEqual([
    `${unread} cannot be read: an index template of others could let Elasticsearch create an index automatically`,
  ])
  expect(found.length).toBeGreaterThan(1)
})

test('a healthy installation, and one before its first start, has nothing that stops a start', async () => {
  for (const world of [await started(), new World()]) {
    const found = await world.doctor()
    expect(found.filter(({ outcome }) => outcome === 'failed')).toEqual([])
    expect(found.filter(({ check, outcome }) => check === 'projection' && outcome !== 'ok')).toEqual([])
    await world.start()
  }
})

test('a log that has the last known records has nothing that stops a start', async () => {
  const world = await started()
  const last = { offset: 4, sha256: recordHash(world.record) }
  control(world, 'position:g1:0', { position: 5, last })
  written(world, last)
  expect((await world.doctor()).filter(({ outcome }) => outcome === 'failed')).toEqual([])
  await world.start()
})

test('a spare generation that would not be projected is a warning, as a projector leaves it', async () => {
  const world = await started()
  control(world, 'live', { kept: ['g1', 'g2'] })
  const found = await world.doctor()
  await world.start()
  expect(found.filter(({ outcome }) => outcome === 'failed')).toEqual([])
  expect(found).toContainEqual(
    expect.objectContaining({
      outcome: 'warning',
      detail: expect.stringContaining('spare generation g2 would not be projected: index_missing'),
    }),
  )
})

test('a generation of another topic, as after a topic has grown, is told with both topics', async () => {
  const world = await started()
  const { documents } = world.elasticsearch
  documents.set('test-control/generation:g2', structuredClone(documents.get('test-control/generation:g1')))
  control(world, 'generation:g2', { generation: 'g2', topic: 'events-9' })
  control(world, 'live', { generation: 'g2', kept: ['g1', 'g2'] })
  expect(await world.doctor()).toContainEqual(
    expect.objectContaining({
      outcome: 'warning',
      detail: expect.stringContaining(`the live generation g2 is of topic events-9, not ${EVENTS}`),
    }),
  )
})

test('the index template is a warning if it was deleted after the first start, as the next start puts it back', async () => {
  const world = await started()
  world.elasticsearch.deleteTemplate('test-no-auto-create')
  const found = await world.doctor()
  expect(found.filter(({ outcome }) => outcome === 'failed')).toEqual([])
  expect(found).toContainEqual(
    expect.objectContaining({
      check: 'projection',
      outcome: 'warning',
      detail: expect.stringMatching(/: .* somebody deleted or changed the index template test-no-auto-create/),
    }),
  )
  expect(world.elasticsearch.templates).toEqual([])
  await world.start()
  expect((await world.doctor()).filter(({ check, outcome }) => check === 'projection' && outcome !== 'ok')).toEqual([])
})

test('a setting that a start puts back is told, and stays', async () => {
  const world = await started()
  setting(world, 'test-g1-payouts', 'refresh_interval', '1s')
  const found = await world.doctor()
  expect(found).toContainEqual(
    expect.objectContaining({
      check: 'index test-g1-payouts',
      outcome: 'warning',
      detail: expect.stringContaining('index.refresh_interval: expected -1, got 1s'),
    }),
  )
  expect(world.elasticsearch.indices.get('test-g1-payouts')?.settings.index.refresh_interval).toBe('1s')
})

/** How often each file refuses with each code before the first record, and how the doctor finds it. */
type Row = { readonly times: number; readonly doctor: 'same function' | 'another check' | `not found: ${string}` }
const LATER = 'not found: only after the first record'
const WRITES = 'not found: only a write shows it'
const same = (times: number): Row => ({ times, doctor: 'same function' })
const other = (times: number): Row => ({ times, doctor: 'another check' })
const refusals: Readonly<Record<string, Row>> = {
  // The live generation, or the position of keys, is gone between two requests.
  'projector/start.ts index_missing': { times: 3, doctor: 'not found: it lasts for a moment' },
  'projector/start.ts access_refused': other(1),
  'core/store/generations/check-index.ts index_missing': same(1),
  'core/store/generations/check-index.ts index_unsuitable': same(3),
  'core/store/generations/index-templates.ts index_unsuitable': same(3),
  // Only where a generation is made.
  'core/store/generations/prepare.ts index_unsuitable': same(1),
  // One of them while a first start writes.
  'core/store/generations/prepare.ts index_missing': same(4),
  'core/store/generations/recorded.ts index_missing': same(2),
  'core/store/generations/prepare.ts rules_changed': same(1),
  // A cluster that may hold no more shards.
  'core/store/generations/prepare.ts write_refused': { times: 1, doctor: WRITES },
  'core/store/generations/indices.ts index_missing': same(2),
  'core/store/generations/indices.ts index_replaced': same(2),
  'core/store/generations/indices.ts documents_hidden': same(1),
  'core/store/generations/indices.ts write_refused': same(1),
  // A swap that cannot be finished does not stop a projector: `/readyz` says so.
  'core/store/generations/generations.ts index_missing': { times: 5, doctor: WRITES },
  'core/log/kafka/source.ts topic_missing': same(1),
  'core/log/kafka/source.ts topic_unsuitable': same(2),
  'core/log/kafka/source.ts source_changed': same(2),
  'core/log/kafka/source.ts records_deleted': same(2),
  'core/log/kafka/access-refusal.ts access_refused': other(1),
  'core/store/elasticsearch/client.ts access_refused': other(1),
  'core/store/elasticsearch/client.ts write_refused': same(1),
  // The settings of an index show its pipelines.
  'core/store/elasticsearch/pipelines.ts index_unsuitable': other(2),
  'core/store/elasticsearch/primary-reads.ts index_missing': { times: 2, doctor: LATER },
  // Two of them when a decision reads from primaries, after the first record.
  'core/store/elasticsearch/primary-reads.ts write_refused': same(3),
  'core/log/kafka-retry.ts access_refused': other(1),
  'core/log/follow/group.ts group_shared': same(1),
  'core/projection/stream/assign.ts source_changed': same(1),
  // The other one, a hole in the log after the position, is not found: the record itself must be read.
  'core/projection/stream/assign.ts records_deleted': same(2),
  'core/log/follow/consume.ts consumer_stopped': { times: 1, doctor: LATER },
  'core/projection/stream/monitor-source.ts stuck': { times: 2, doctor: LATER },
  // One is a missing position, the other ones are writes.
  'core/store/positions/publish.ts index_missing': same(4),
  // One of them only after the first record.
  'core/store/positions/publish.ts position_went_back': same(2),
  'core/store/positions/publish.ts source_changed': { times: 1, doctor: LATER },
  'core/projection/flow/follow.ts index_missing': { times: 2, doctor: LATER },
  // The running projector has the port.
  'projector/admin/admin.ts port_unavailable': { times: 1, doctor: 'not found: a running projector has the port' },
}

/** The files that run before the first record: all that refuse, of these rooms. */
const root = join(import.meta.dirname, '../../..')
const startRooms = ['projector', 'core/projection', 'core/projection/stream', 'core/store/generations', 'core/log']
  .concat(['core/log/kafka', 'core/log/follow', 'core/store/elasticsearch', 'core/store/positions', 'core/store'])
  .concat(['core/runtime'])
const startFiles = startRooms
  .flatMap(room => readdirSync(join(root, room)).map(name => join(room, name)))
  .filter(file => file.endsWith('.ts'))
  .concat('core/projection/flow/follow.ts', 'projector/admin/admin.ts')

test('the table has every refusal in the files that a start goes through', () => {
  const found: Record<string, number> = {}
  for (const file of startFiles) {
    for (const [, code] of readFileSync(join(root, file), 'utf8').matchAll(/new StopError\(\s*'(\w+)'/g)) {
      found[`${file} ${code}`] = (found[`${file} ${code}`] ?? 0) + 1
    }
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(refusals).map(([key, { times }]) => [key, times])))
})
