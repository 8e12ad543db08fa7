import { expect, test } from 'vitest'
import type { ClusterContext, CommandContext } from '../../../tools/context.ts'
import { assertKeysReadable, createKey, findKeys, revokeKey } from '../../../tools/keys/keys.ts'
import { KEYS_PAGE } from '../../../tools/limits.ts'

type Asked = Parameters<CommandContext['send']>[0]
type Search = { readonly size: number; readonly search_after?: readonly [string] }

/** A projection with this many keys of one organization, as Elasticsearch answers for it. */
const withKeys = (count: number) => {
  const all = Array.from({ length: count }, (_, index) => `key_${String(index).padStart(6, '0')}`)
  const documentOf = (key_id: string) => ({ key_id, org_id: 'org_1', permissions: ['read'], revoked: false, body: {} })
  let searches = 0
  const whole = { _shards: { failed: 0 }, timed_out: false }
  const answerOf = ({ path, body }: Asked): object => {
    if (path.endsWith('/_refresh')) return whole
    if (path.endsWith('/_mget')) {
      const { docs } = body as { docs: readonly { _id: string }[] }
      return { docs: docs.map(({ _id }) => ({ _id, found: true, _source: { body: { name: `name of ${_id}` } } })) }
    }
    const { size, search_after: [after] = [''] } = body as Search
    if (size > 10_000) throw new Error('Elasticsearch returns at most 10,000 hits of one search')
    if (++searches > count + 1) throw new Error('the search does not go on')
    const hits = all.filter(id => id > after).slice(0, size)
    return {
      ...whole,
      hits: { total: { value: count }, hits: hits.map(id => ({ _source: documentOf(id), sort: [id] })) },
    }
  }
  const send = async (request: Asked) => ({ status: 200, body: answerOf(request) })
  return { all, context: { send, prefix: 'test' } as unknown as CommandContext }
}

test.for([0, 1, KEYS_PAGE, KEYS_PAGE + 1, 10_001])(
  'all of %d keys are found, each once, with its name',
  async count => {
    const { all, context } = withKeys(count)
    const keys = await findKeys('org_1', context)
    expect(keys.map(({ id }) => id)).toEqual(all)
    expect(keys.every(({ id, name }) => name?.includes(id))).toBe(true)
  },
)

/** The index of keys has this id now, and the projector has read this many of its five events. */
const withCopy = (id: string, position: number) => {
  const names = ['test-control', 'test-api-keys', 'test-api-keys-parked']
  const recorded = Object.fromEntries(names.map(name => [name, name]))
  const documents: Readonly<Record<string, object>> = {
    live: { generation: 'g1' },
    // The role of `keys` does not see it.
    'generation:g1': { ...{ generation: 'g1', topic: 'events', partitions: 1 }, indices: { 'test-g1-reps': 'x' } },
    'generation:api-keys': {
      generation: 'api-keys',
      topic: 'keys',
      partitions: 1,
      rules_version: 1,
      indices: recorded,
    },
    'position:api-keys:0': { position, time: 0, at: 0, last: null, serve_from: 5 },
  }
  const answerOf = ({ path, body }: Asked): object => {
    if (path.startsWith('/_security/')) return { indices: [] }
    if (path === '/test-*/_settings') {
      const idOf = (name: string) => (name === 'test-api-keys' ? id : name)
      return Object.fromEntries(names.map(name => [name, { settings: { index: { uuid: idOf(name) } } }]))
    }
    const { docs } = body as { docs: readonly { _id: string }[] }
    return {
      docs: docs.map(({ _id }) => {
        const found = documents[_id]
        return { _id, found: found !== undefined, _source: { kind: _id.split(':')[0], body: found } }
      }),
    }
  }
  const send = async (request: Asked) => ({ status: 200, body: answerOf(request) })
  return { send, prefix: 'test' } as unknown as CommandContext
}

test('keys of a restored copy are not shown: it has keys that were revoked since', async () => {
  await expect(assertKeysReadable(undefined, withCopy('restored', 5))).rejects.toThrow('restored from a snapshot')
  await expect(assertKeysReadable(undefined, withCopy('test-api-keys', 5))).resolves.toBeUndefined()
})

test('keys are not shown while the projector reads them again', async () => {
  await expect(assertKeysReadable(undefined, withCopy('test-api-keys', 4))).rejects.toThrow(
    'api-keys is at 4 in partition 0 of keys, and reads again up to 5: a revoked key could look valid',
  )
})

/** A projection that has read nine events of keys, of which the last one revoked a key, and a topic of this many. */
const withTopic = (end: number) => {
  const identity = { topic: 'keys', cluster_id: 'c', partitions: 1, rules_version: 1 }
  const documents: Readonly<Record<string, object>> = {
    live: { generation: 'g1' },
    'generation:g1': { ...identity, generation: 'g1', topic: 'events' },
    'generation:api-keys': { ...identity, generation: 'api-keys' },
    'position:api-keys:0': { position: 9, time: 0, at: 0, last: null, serve_from: 5 },
    'org_1:key_1': { created_seq: 3, revoked_seq: 8 },
  }
  const send = async ({ body }: Asked) => {
    const { docs } = body as { docs: readonly { _id: string }[] }
    const found = ({ _id }: { _id: string }) => {
      const [document, kind] = [documents[_id], _id.split(':')[0]]
      return { _id, found: document !== undefined, _source: { kind, body: document } }
    }
    return { status: 200, body: { docs: docs.map(found) } }
  }
  const admin = {
    ...{ connect: async () => undefined, disconnect: async () => undefined },
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: `${end}` }],
  }
  const said: string[] = []
  const context = {
    ...{ send, prefix: 'test', now: () => 0, say: (line: string) => void said.push(line), out: () => undefined },
    ...{ kafka: { admin: () => admin }, topics: { events: 'events', 'api-keys': 'keys' } },
  } as unknown as ClusterContext
  return { context, said }
}
const revoked = { org: 'org_1', id: 'key_1', waitSeconds: 1, json: false }

test('a key that was revoked before is named so only while the topic has the event', async () => {
  const { context, said } = withTopic(9)
  await revokeKey(revoked, context)
  expect(said).toEqual(['key_1 of org_1 was revoked before.'])
})

test('no key is made or revoked while the topic lacks events that are projected: the projector would not read it', async () => {
  const refusal = 'keys ends at 8, before 9: it has lost events that are projected. Run npx commission projection adopt'
  await expect(revokeKey(revoked, withTopic(8).context)).rejects.toThrow(refusal)
  const made = { org: 'org_1', name: 'x', permissions: ['read' as const], expiresAt: null, networks: null }
  await expect(createKey({ ...made, waitSeconds: 1, json: false }, withTopic(8).context)).rejects.toThrow(refusal)
})
