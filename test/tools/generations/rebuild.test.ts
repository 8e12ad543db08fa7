/** How `rebuild` begins, also with `--unless-spare`, as the Job of the chart runs it. */
import { expect, test } from 'vitest'
import { StopError } from '../../../core/runtime/failures.ts'
import { type RebuildSteps, rebuild } from '../../../tools/generations/rebuild.ts'
import { proxied, sending } from '../../support/answering.ts'
import { given } from './swap-world.ts'

/** Other steps, where the log of g1 was redacted, and further fields of both generations. */
type Of = Partial<RebuildSteps> & { readonly redactedTo?: readonly number[]; readonly both?: object }

/** Asks Kafka only to make a generation. */
const run = async (live: object, unlessSpare: boolean, of: Of = {}, hidden: readonly string[] = []) => {
  const { redactedTo, both, ...others } = of
  const { context, said } = given({
    live,
    positions: { g1: [0, 0], g2: [0, 0] },
    hidden,
    ...(redactedTo && { redactedTo }),
    ...(both && { both }),
  })
  const describeCluster = async () => {
    throw new Error(['makes a generation', ...said].join('; '))
  }
  const kafka = {
    admin: () => ({ connect: async () => undefined, disconnect: async () => undefined, describeCluster }),
  }
  const steps = { ...context, kafka, topics: { events: 't', 'api-keys': 'k' }, rulesVersion: 1, layout: 1, ...others }
  return { code: await rebuild({ maxRate: 1, unlessSpare, json: false }, steps as unknown as RebuildSteps), said }
}
const spare = { kept: ['g1', 'g2'] }
/** Each organization is in two of four shards. */
const inTwo = { layout: 3, shards: 4, routingPartitionSize: 2 } as const

test('with --unless-spare, no generation is made beside a complete one of these rules, this layout and this topic', async () => {
  const { code, said } = await run(spare, true)
  expect(code).toBe(0)
  expect(said).toEqual([
    'g2 is complete, of these rules and this layout, and beside the live generation: nothing is made',
  ])
})

test('nor beside one that has an organization in as many shards as asked', async () => {
  const { code } = await run(spare, true, { ...inTwo, both: { layout: 3, routing_partition_size: 2 } })
  expect(code).toBe(0)
})

test.each<[string, object, boolean, Of]>([
  ['without the option', spare, false, {}],
  ['without a spare generation', { kept: ['g1'] }, true, {}],
  ['while one is still being made', { ...spare, building: 'g3' }, true, {}],
  ['beside one of other rules', spare, true, { rulesVersion: 2 }],
  ['beside one of an older layout', spare, true, { layout: 3 }],
  ['beside one that has an organization in fewer shards', spare, true, { ...inTwo, both: { layout: 3 } }],
  ['beside one of another topic', spare, true, { topics: { events: 'other', 'api-keys': 'k' } }],
  ['beside one that has texts that were redacted since', { ...spare, generation: 'g2' }, true, { redactedTo: [0, 0] }],
])('%s a generation is made', async (_, live, unlessSpare, of) => {
  await expect(run(live, unlessSpare, of)).rejects.toThrow('makes a generation')
})

test('under other rules, a rebuild says that a shard of the generation that it follows cannot be compared', async () => {
  const what = 'the shard p-g1-parked/0 cannot be compared'
  const hidden = ['p-g1-parked/0']
  await expect(run(spare, false, { rulesVersion: 2 }, hidden)).rejects.toThrow(`makes a generation; ${what}`)
  await expect(run(spare, false, {}, hidden)).rejects.toThrow(/^makes a generation$/)
})

test('while Elasticsearch could create indices automatically, and the user may not forbid it, no generation is begun', async () => {
  const { context } = given({ positions: { g1: [0, 0], g2: [0, 0] } })
  const asked: string[] = []
  const templates: Record<string, object> = {}
  const send = sending(async request => {
    const { method, path } = request
    asked.push(method)
    if (path === '/_cluster/settings')
      return { status: 200, body: { defaults: { action: { auto_create_index: 'true' } } } }
    // Of the user of a command, only `monitor` is asked.
    if (path === '/_cluster/state/metadata')
      return { status: 200, body: { metadata: { index_template: { index_template: templates } } } }
    if (path.startsWith('/_index_template/')) throw new StopError('access_refused', 'Elasticsearch answers 403')
    return context.send(request)
  })
  await expect(run(spare, false, { send })).rejects.toThrow(
    'p-g1-reps: Elasticsearch could create it automatically, because somebody deleted or changed the index template p-no-auto-create',
  )
  expect(asked.filter(method => method !== 'GET')).toEqual(['PUT'])
  templates['p-no-auto-create'] = { index_patterns: ['p-*'], allow_auto_create: false, priority: 501 }
  await expect(run(spare, false, { send })).rejects.toThrow(/^makes a generation$/)
})

test('behind a proxy that answers 404 to the metadata of the cluster, a generation is begun', async () => {
  const { context } = given({ positions: { g1: [0, 0], g2: [0, 0] } })
  const send = sending(async request =>
    request.path === '/_cluster/state/metadata' ? proxied(request.isOptional ?? false) : context.send(request),
  )
  await expect(run(spare, false, { send })).rejects.toThrow(/^makes a generation$/)
})
