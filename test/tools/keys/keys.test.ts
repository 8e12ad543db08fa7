import { expect, test } from 'vitest'
import type { CommandContext } from '../../../tools/context.ts'
import { assertKeysReadable, findKeys } from '../../../tools/keys/keys.ts'
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
    'generation:g1': { generation: 'g1', topic: 'events', partitions: 1, rules_version: 1 },
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
  await expect(assertKeysReadable(withCopy('restored', 5))).rejects.toThrow('restored from a snapshot')
  await expect(assertKeysReadable(withCopy('test-api-keys', 5))).resolves.toBeUndefined()
})

test('keys are not shown while the projector reads them again', async () => {
  await expect(assertKeysReadable(withCopy('test-api-keys', 4))).rejects.toThrow(
    'api-keys is at 4 in partition 0 of keys, and reads again up to 5: a revoked key could look valid',
  )
})
