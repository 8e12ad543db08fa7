/** `doctor` of an identity that reads what is projected: nothing restored, closed or missing passes for whole. */
import { expect, test } from 'vitest'
import { Refusal, unavailable } from '../../../core/runtime/refusals.ts'
import type { MultiGet, SearchClient } from '../../../core/store/read/search-client.ts'
import type { IdentityName } from '../../../schemas/access.ts'
import { type CheckedIdentity, doctor } from '../../../tools/doctor/doctor.ts'
import type { Finding } from '../../../tools/doctor/finding.ts'
import { sending } from '../../support/answering.ts'
import { control, EVENTS, KEYS, started, World } from './started-world.ts'

const readsOf = ({ elasticsearch }: World): SearchClient => {
  const multiGet: MultiGet = async names => {
    const docs = names.map(({ _index, _id }) => {
      const _source = elasticsearch.documents.get(`${_index}/${_id}`)
      return { _index, _id, ...(_source === undefined ? { found: false } : { _version: 1, found: true, _source }) }
    })
    return Buffer.from(JSON.stringify({ docs }))
  }
  return {
    multiGet,
    search: () => Promise.reject(new Error('nothing is searched')),
    indexIds: async names => {
      const there = names.filter(name => elasticsearch.indices.has(name))
      return new Map(there.map(name => [name, elasticsearch.replaced.has(name) ? 'another' : `id of ${name}`]))
    },
  }
}

/** The requests that try a right change nothing: they are of a generation `doctor`, or of a sandbox. */
const isOfRight = (path: string): boolean => /^\/test-(doctor|sandbox)-/.test(path)
const refused = { status: 400, body: {} }

/** Returns what the doctor of an identity says of what is projected. */
const examine = async (name: IdentityName, world: World, reads = readsOf(world)): Promise<readonly Finding[]> => {
  const unanswered = () => Promise.reject(new Error('the rights in Kafka are not asked for'))
  const admin = world.admin as unknown as NonNullable<CheckedIdentity['kafka']>['admin']
  const identity: CheckedIdentity = {
    values: { ELASTICSEARCH_INDEX_PREFIX: 'test', KAFKA_EVENTS_TOPIC: EVENTS, KAFKA_API_KEYS_TOPIC: KEYS },
    settings: {},
    send: sending(async request => (isOfRight(request.path) ? refused : world.elasticsearch.request(request))),
    ...(name === 'api' ? { reads } : { kafka: { admin, open: unanswered, openLog: world.openLog, messageBytes: 1 } }),
  }
  const out: string[] = []
  await doctor(
    { identities: [name], json: true },
    {
      ...{ out: (text: string) => void out.push(text), say: () => undefined, checkedIdentityOf: () => identity },
      ...{ hasKafka: true, readFile: () => Buffer.alloc(0), now: () => 0, signal: new AbortController().signal },
    },
  )
  const { checks } = JSON.parse(out.join('')) as { checks: readonly Finding[] }
  return checks.filter(({ check }) => check === (name === 'api' ? 'answers' : 'projection'))
}
const finding = (outcome: Finding['outcome'], detail: string) => [
  expect.objectContaining({ outcome, detail: expect.stringContaining(detail) }),
]
/** Keys that are read up to the end of their topic. */
const served = async (): Promise<World> => {
  const world = await started()
  control(world, 'position:api-keys:0', { position: 5 })
  return world
}

test('of an installation that is whole, the API answers, and the live generation is of the topic', async () => {
  const world = await served()
  expect(await examine('api', world)).toEqual(finding('ok', 'a generation and the API keys are served'))
  expect(await examine('projection', world)).toEqual(finding('ok', 'generation g1 is of topic'))
})

test('before the first start nothing is wrong', async () => {
  for (const name of ['api', 'projection'] as const)
    expect(await examine(name, new World())).toEqual(finding('ok', 'nothing is projected yet'))
})

test('after a restore, the doctors of the API and of commands fail', async () => {
  const world = await served()
  world.elasticsearch.replaced.add('test-g1-payouts')
  expect(await examine('api', world)).toEqual(finding('failed', 'the API answers 503: indices_replaced'))
  expect(await examine('projection', world)).toEqual(finding('failed', 'test-g1-payouts, an index of g1'))
})

test('while a shard cannot be compared, the doctor of commands warns', async () => {
  const world = await served()
  world.elasticsearch.starting.add('test-g1-payouts/0')
  const detail = 'the shard test-g1-payouts/0 of g1 cannot be compared with the recorded one'
  expect(await examine('projection', world)).toEqual(finding('warning', detail))
})

test('while only some partitions are served, the doctor of the API warns, and names the others', async () => {
  const world = await served()
  control(world, 'position:g1:1', { serve_from: 9 })
  const [found] = await examine('api', world)
  const detail = 'the API answers 503 for the organizations of some partitions: partition 1: not_read_again_yet'
  const repair = 'docs/runbooks.md, CommissionPartitionNotServed'
  expect(found).toEqual(expect.objectContaining({ outcome: 'warning', detail }))
  expect(JSON.stringify(found)).toContain(repair)
  control(world, 'position:g1:0', { serve_from: 9 })
  expect(await examine('api', world)).toEqual(finding('failed', 'the API answers 503: partition 0: not_read_again_yet'))
})

test('the doctor of the API names each reason for which it answers 503', async () => {
  const lost = await served()
  control(lost, 'generation:g1', { lost: 'test-g1-payouts/0' })
  expect(await examine('api', lost)).toEqual(finding('failed', 'the API answers 503: shard_lost'))
  const closed = await served()
  const indexIds = () => Promise.reject(unavailable('index_closed'))
  expect(await examine('api', closed, { ...readsOf(closed), indexIds })).toEqual(finding('failed', ': index_closed'))
  expect(await examine('api', await started())).toEqual(finding('failed', ': keys_not_read_yet'))
  const whole = await served()
  const search = () => Promise.reject(new Refusal('unavailable', { reason: 'elasticsearch_status_403' }))
  expect(await examine('api', whole, { ...readsOf(whole), search })).toEqual(
    finding('failed', ': elasticsearch_status_403'),
  )
  const gone = await served()
  gone.elasticsearch.indices.delete('test-control')
  expect(await examine('api', gone)).toEqual(finding('failed', 'test-control, but there are'))
})
