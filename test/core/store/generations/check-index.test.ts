/** The check of an index at a start: what is put back, what is told, what stops, and the words of each. */
import { describe, expect, test } from 'vitest'
import { checkIndex, inspectIndex, type ToldSetting } from '../../../../core/store/generations/check-index.ts'
import { indexSettingRules } from '../../../../schemas/stored/index-settings.ts'
import { generationIndices, type IndexDefinition } from '../../../../schemas/stored/mappings.ts'
import { StartedElasticsearch } from '../../../projector/started-elasticsearch.ts'

const name = 'test-g1-payouts'
const definition = generationIndices('test', { generation: 'g1' }, { shards: 1 })[name] as IndexDefinition

/** An index with other settings, by flat names. */
const withSettings = (changes: Readonly<Record<string, string | null>>): StartedElasticsearch => {
  const elasticsearch = new StartedElasticsearch()
  const index: Record<string, unknown> = { ...definition.settings }
  for (const [setting, value] of Object.entries(changes)) {
    if (value === null) delete index[setting]
    else index[setting] = value
  }
  elasticsearch.indices.set(name, { mappings: definition.mappings, settings: { index } })
  return elasticsearch
}
const check = async (elasticsearch: StartedElasticsearch) => {
  const told: ToldSetting[] = []
  await checkIndex(name, definition, elasticsearch.request, found => told.push(found))
  return told
}
const settingsOf = (elasticsearch: StartedElasticsearch) => elasticsearch.indices.get(name)?.settings.index

test('an index as this version creates it needs nothing', async () => {
  const elasticsearch = withSettings({})
  expect(await check(elasticsearch)).toEqual([])
  expect(elasticsearch.asked).toEqual([`GET /${name}`])
})

test('every setting that somebody may choose does no harm', async () => {
  const harmless = {
    number_of_replicas: '2',
    auto_expand_replicas: '0-all',
    'search.idle.after': '5s',
    priority: '10',
    hidden: 'true',
    'merge.policy.max_merged_segment': '1gb',
    'mapping.total_fields.limit': '10',
    'mapping.field_name_length.ignore_dynamic_beyond_limit': 'true',
    'mapping.coerce': 'false',
    'mapping.ignore_malformed': 'true',
    'mapping.use_doc_values_skipper': 'true',
    'mapping.ignore_above': '8191',
    'mapping.source.mode': 'stored',
    'routing.allocation.include._tier_preference': 'data_hot',
    'requests.cache.enable': 'false',
    codec: 'best_compression',
    gc_deletes: '2m',
    max_result_window: '50000',
    'translog.durability': 'REQUEST',
    default_pipeline: '_none',
    'blocks.write': 'false',
    'indexing.slowlog.threshold.index.warn': '-1',
  }
  expect(await check(withSettings(harmless))).toEqual([])
})

const wrong: readonly (readonly [setting: string, value: string | null])[] = [
  ['refresh_interval', null],
  ['refresh_interval', '1s'],
  ['gc_deletes', '1s'],
  ['gc_deletes', '0'],
  ['max_result_window', '100'],
  ['max_terms_count', '10'],
  ['max_docvalue_fields_search', '1'],
  ['translog.durability', 'async'],
]

describe('a setting that does no harm when it is put back', () => {
  test.each(wrong)('%s of %j is put back, and told', async (setting, value) => {
    const elasticsearch = withSettings({ [setting]: value })
    const told = await check(elasticsearch)
    expect(told).toEqual([
      expect.objectContaining({ index: name, setting, put_back: true, got: value ?? 'nothing (the default)' }),
    ])
    expect(settingsOf(elasticsearch)?.[setting]).toBe(setting === 'refresh_interval' ? '-1' : undefined)
    expect(await check(elasticsearch)).toEqual([])
  })

  test.each(wrong.filter(([setting]) => setting !== 'translog.durability'))(
    '%s of %j is told, and does not stop a projector without the right to change it',
    async (setting, value) => {
      const elasticsearch = withSettings({ [setting]: value })
      elasticsearch.mayManage = false
      expect(await check(elasticsearch)).toEqual([expect.objectContaining({ index: name, setting, put_back: false })])
    },
  )

  test('several are put back with one request', async () => {
    const elasticsearch = withSettings({ refresh_interval: null, max_result_window: '1' })
    expect((await check(elasticsearch)).map(({ setting }) => setting)).toEqual([
      'refresh_interval',
      'max_result_window',
    ])
    expect(elasticsearch.asked).toEqual([`GET /${name}`, `PUT /${name}/_settings`])
  })

  test('nothing is put back in a read-only index: the request would wait for the end of the block', async () => {
    const elasticsearch = withSettings({ refresh_interval: null, 'blocks.read_only': 'true' })
    expect(await check(elasticsearch)).toEqual([
      expect.objectContaining({ setting: 'refresh_interval', put_back: false }),
      expect.objectContaining({ setting: 'blocks.read_only', put_back: false }),
    ])
    expect(elasticsearch.asked).toEqual([`GET /${name}`])
  })
})

test.each([
  ['blocks.write', 'true'],
  ['blocks.read_only_allow_delete', 'true'],
  ['blocks.read', 'true'],
  ['verified_before_close', 'true'],
  ['write.wait_for_active_shards', 'all'],
  ['routing.allocation.enable', 'none'],
  ['lifecycle.name', 'thirty-days'],
  ['indexing.slowlog.threshold.index.trace', '0ms'],
  // Nobody has tried this one.
  ['mapping.index_some_fields', 'false'],
])('%s of %s is told, and stays: somebody chose it', async (setting, value) => {
  const elasticsearch = withSettings({ [setting]: value })
  expect(await check(elasticsearch)).toEqual([expect.objectContaining({ setting, got: value, put_back: false })])
  expect(settingsOf(elasticsearch)?.[setting]).toBe(value)
})

test.each([
  ['final_pipeline', 'enrich'],
  ['default_pipeline', 'enrich'],
  ['mode', 'logsdb'],
  ['mapping.source.mode', 'synthetic'],
  ['mapping.ignore_above', '100'],
  ['disable_sequence_numbers', 'true'],
  ['sort.field', 'seq'],
])('%s of %s stops: documents may be lost, hidden or changed', async (setting, value) => {
  const elasticsearch = withSettings({ [setting]: value })
  await expect(check(elasticsearch)).rejects.toThrow(
    expect.objectContaining({
      code: 'index_unsuitable',
      message: expect.stringMatching(
        new RegExp(`: ${name}: index\\.${setting.replaceAll('.', '\\.')}: expected .+, got ${value}`),
      ),
    }),
  )
  expect(elasticsearch.asked.filter(asked => asked.startsWith('PUT'))).toEqual([])
})

test('translog.durability stops a projector that may not put it back: an acknowledged document could be lost', async () => {
  const elasticsearch = withSettings({ 'translog.durability': 'async' })
  elasticsearch.mayManage = false
  await expect(check(elasticsearch)).rejects.toThrow(
    /: test-g1-payouts: index\.translog\.durability: expected request, got async; with async an acknowledged document/,
  )
})

test('an inspection changes nothing, and returns all that does not stop', async () => {
  const elasticsearch = withSettings({ refresh_interval: null, 'translog.durability': 'async' })
  const found = await inspectIndex(name, definition, elasticsearch.request)
  expect(found.map(({ setting, consequence }) => [setting, consequence])).toEqual([
    ['translog.durability', 'put back or stop'],
    ['refresh_interval', 'put back'],
  ])
  expect(elasticsearch.asked).toEqual([`GET /${name}`])
})

test('another mapping is told with the field, the expected and the given type, and the templates of others', async () => {
  const elasticsearch = withSettings({})
  const { properties } = definition.mappings
  const mappings = { dynamic: 'strict', properties: { ...properties, seq: { type: 'keyword' } } }
  elasticsearch.indices.set(name, { mappings, settings: { index: definition.settings } })
  elasticsearch.templates.push(
    { name: 'all-strings', index_template: { index_patterns: ['*'] } },
    { name: 'other', index_template: { index_patterns: ['logs-*'] } },
    { name: 'test-no-auto-create', index_template: { index_patterns: ['test-*'] } },
  )
  await expect(check(elasticsearch)).rejects.toThrow(
    `${name}: mapping properties.seq.type: expected "long", got "keyword"; index templates of others that apply to it: all-strings`,
  )
  elasticsearch.indices.set(name, {
    mappings: { ...mappings, properties: { ...properties, host: { type: 'text' } } },
    settings: { index: definition.settings },
  })
  await expect(check(elasticsearch)).rejects.toThrow(`mapping properties.host: expected nothing, got {"type":"text"};`)
})

test('every rule of the table is tried above', () => {
  const tried = new Set([
    ...wrong.map(([setting]) => setting),
    ...['final_pipeline', 'default_pipeline', 'mode', 'mapping.source.mode', 'disable_sequence_numbers'],
    ...['mapping.ignore_above', 'mapping.*'],
    ...['blocks.write', 'blocks.read_only', 'blocks.read_only_allow_delete', 'blocks.read', 'verified_before_close'],
    ...['write.wait_for_active_shards', 'routing.allocation.enable', 'lifecycle.name', 'indexing.slowlog.threshold.*'],
  ])
  expect(indexSettingRules.map(({ setting }) => setting).sort()).toEqual([...tried].sort())
})
