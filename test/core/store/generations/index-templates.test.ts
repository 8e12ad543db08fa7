/** Which index templates of others apply to an index, and which of them stop a start. */
import { describe, expect, test } from 'vitest'
import { keepTemplate, templateOf, templatesThatApply } from '../../../../core/store/generations/index-templates.ts'
import { prepareCommon } from '../../../../core/store/generations/prepare.ts'
import { StartedElasticsearch as Elasticsearch } from '../../../projector/started-elasticsearch.ts'

test.each([
  ['*', true],
  ['test-*', true],
  ['test-g1-payouts', true],
  ['*-payouts', true],
  ['test-*-pay*', true],
  ['test-g1-payout', false],
  ['test-g1-payouts*x', false],
  ['*-reps', false],
])('a template with the pattern %s applies: %s', async (pattern, applies) => {
  const elasticsearch = new Elasticsearch()
  elasticsearch.templates.push({ name: 'its-name', index_template: { index_patterns: pattern } })
  expect(await templatesThatApply('test-g1-payouts', elasticsearch.request)).toBe(
    applies ? '; index templates of others that apply to it: its-name' : '',
  )
})

/** The first part of a start: it prepares the indices that all generations share. */
const start = (elasticsearch: Elasticsearch): Promise<void> =>
  prepareCommon({ request: elasticsearch.request, prefix: 'test', shards: 1 })

type Template = {
  readonly index_patterns: string | readonly string[]
  readonly priority?: number
  readonly allow_auto_create?: boolean
}
const ofEvery: Template = { index_patterns: ['*'], priority: 1_000 }
const beside = (...templates: readonly Template[]): Elasticsearch => {
  const elasticsearch = new Elasticsearch()
  elasticsearch.templates.push(...templates.map(index_template => ({ name: 'others', index_template })))
  return elasticsearch
}
const refusal = (index: string, priority: number) => ({
  code: 'index_unsuitable',
  message: expect.stringContaining(
    `${index}: index template others, with priority ${priority}, wins over test-no-auto-create, with 504`,
  ),
})

describe('a start', () => {
  test.each([
    ['of every index', ofEvery, 'test-control'],
    ['of one index', { index_patterns: 'test-g1-payouts', priority: 505 }, 'test-g1-payouts'],
    ['that allows it', { index_patterns: ['test-*'], priority: 505, allow_auto_create: true }, 'test-control'],
  ])('is refused while a template of others, %s, wins', async (_, template, index) => {
    const elasticsearch = beside(template)
    await expect(start(elasticsearch)).rejects.toMatchObject(refusal(index, template.priority ?? 0))
    expect([...elasticsearch.indices.keys()]).toEqual([])
  })

  test.each([
    ['has a lower priority', { index_patterns: ['*'], priority: 503 }],
    ['has none', { index_patterns: ['*'] }],
    ['forbids it too', { ...ofEvery, allow_auto_create: false }],
    ['is for other indices', { index_patterns: ['test-other-*'], priority: 1_000 }],
    ['is for indices of an older layout only', { index_patterns: '*-reps', priority: 1_000 }],
  ])('is not refused because of a template of others that %s', async (_, template) => {
    await start(beside(template))
  })

  test('goes on if it may not read the templates, or the setting of the cluster', async () => {
    const withoutTemplates = beside(ofEvery)
    withoutTemplates.mayReadTemplates = false
    await start(withoutTemplates)
    const withoutSetting = beside(ofEvery)
    withoutSetting.autoCreateIndex = undefined
    await start(withoutSetting)
  })

  test('goes on beside a template that does not say, if action.auto_create_index is false', async () => {
    const elasticsearch = beside(ofEvery)
    elasticsearch.autoCreateIndex = 'false'
    await start(elasticsearch)
  })

  test.each([
    ['.monitoring*,.watches', true],
    ['-test-*,+*', true],
    ['+test-*', false],
    ['.watches, *', false],
    ['true', false],
  ])('beside a template that does not say, action.auto_create_index decides: %s', async (setting, goesOn) => {
    const elasticsearch = beside(ofEvery)
    elasticsearch.autoCreateIndex = setting
    const starting = start(elasticsearch)
    if (goesOn) await starting
    else await expect(starting).rejects.toMatchObject({ code: 'index_unsuitable' })
  })

  test('is refused beside a template that allows it, whatever action.auto_create_index is', async () => {
    const elasticsearch = beside(ofEvery, {
      index_patterns: 'test-g1-payouts',
      priority: 2_000,
      allow_auto_create: true,
    })
    for (const setting of ['false', undefined]) {
      elasticsearch.autoCreateIndex = setting
      await expect(start(elasticsearch)).rejects.toMatchObject(refusal('test-g1-payouts', 2_000))
    }
  })

  test.each([
    ['after a rebuild', { layout: 3 }, 'test-g2-*', 'test-g2-payouts'],
    ['of an older layout', {}, '*-reps', 'test-g2-reps'],
  ])('looks at the indices of the live generation, %s', async (_, layout, index_patterns, index) => {
    const elasticsearch = beside({ index_patterns, priority: 1_000 })
    await start(elasticsearch)
    elasticsearch.documents.set('test-control/live', { kind: 'live', body: { generation: 'g2' } })
    const body = { generation: 'g2', ...layout }
    elasticsearch.documents.set('test-control/generation:g2', { kind: 'generation', body })
    await expect(start(elasticsearch)).rejects.toMatchObject(refusal(index, 1_000))
  })
})

describe('later, while projectors run,', () => {
  const indices = ['test-control', 'test-g1-chains']
  const ours = 'test-no-auto-create'
  const keep = (elasticsearch: Elasticsearch) =>
    keepTemplate(indices, { request: elasticsearch.request, prefix: 'test' })
  const running = async (): Promise<Elasticsearch> => {
    const elasticsearch = new Elasticsearch()
    await start(elasticsearch)
    elasticsearch.asked.length = 0
    return elasticsearch
  }

  test('a template of ours that is there costs one request, and is not written', async () => {
    const elasticsearch = await running()
    expect(await keep(elasticsearch)).toBeUndefined()
    expect(elasticsearch.asked).toEqual(['GET /_index_template'])
  })

  test.each<[string, object | undefined]>([
    ['deleted', undefined],
    ['changed to allow it', { ...templateOf('test'), allow_auto_create: true }],
    ['changed to say nothing', { index_patterns: ['test-*'], priority: 504 }],
    ['changed to be for other indices', { ...templateOf('test'), index_patterns: ['test-g1-*'] }],
  ])(
    'one that somebody has %s is put back: a deleted index must not be made anew by the next write',
    async (_, changed) => {
      const elasticsearch = await running()
      elasticsearch.deleteTemplate(ours)
      if (changed !== undefined) elasticsearch.putTemplate(ours, changed)
      expect(await keep(elasticsearch)).toBe('put back')
      expect(elasticsearch.templates).toEqual([{ name: ours, index_template: templateOf('test') }])
      expect(await keep(elasticsearch)).toBeUndefined()
    },
  )

  test('one that is gone is named if the user may not put it back, and a template of others if it wins', async () => {
    const elasticsearch = await running()
    elasticsearch.deleteTemplate(ours)
    elasticsearch.mayPutTemplates = false
    expect(await keep(elasticsearch)).toMatchObject({
      code: 'index_unsuitable',
      message: expect.stringContaining(
        `test-control: Elasticsearch could create it automatically, because somebody deleted or changed the index template ${ours}`,
      ),
    })
    const won = await running()
    won.putTemplate('others', { index_patterns: ['*-chains'], priority: 1_000 })
    expect(await keep(won)).toMatchObject(refusal('test-g1-chains', 1_000))
  })

  test('one that is put where nobody knows whether it helps is not told, and is put once', async () => {
    const elasticsearch = await running()
    elasticsearch.deleteTemplate(ours)
    elasticsearch.putTemplate('others', { index_patterns: ['*-chains'], priority: 1_000 })
    elasticsearch.autoCreateIndex = undefined
    for (const _ of [1, 2]) expect(await keep(elasticsearch)).toBeUndefined()
    expect(elasticsearch.asked.filter(asked => asked.startsWith('PUT'))).toEqual([`PUT /_index_template/${ours}`])
  })

  test.each<[string, (elasticsearch: Elasticsearch) => void]>([
    ['the user may not read templates', elasticsearch => (elasticsearch.mayReadTemplates = false)],
    ['action.auto_create_index is false', elasticsearch => (elasticsearch.autoCreateIndex = 'false')],
    [
      'our template is there, a template of others wins, and the user may not read action.auto_create_index',
      elasticsearch => {
        elasticsearch.putTemplate(ours, templateOf('test'))
        elasticsearch.putTemplate('others', { index_patterns: ['*-chains'], priority: 1_000 })
        elasticsearch.autoCreateIndex = undefined
      },
    ],
    [
      'a template of others forbids it',
      elasticsearch => elasticsearch.putTemplate('others', { index_patterns: ['*'], allow_auto_create: false }),
    ],
  ])('nothing is written while %s', async (_, make) => {
    const elasticsearch = await running()
    elasticsearch.deleteTemplate(ours)
    make(elasticsearch)
    expect(await keep(elasticsearch)).toBeUndefined()
    expect(elasticsearch.asked.filter(asked => !asked.startsWith('GET'))).toEqual([])
  })
})
