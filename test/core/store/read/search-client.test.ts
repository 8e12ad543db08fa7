import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { ANSWER_BYTES_MAX } from '../../../../core/store/limits.ts'
import { createSearchClient } from '../../../../core/store/read/search-client.ts'

const answering = (text: string, privileges?: string, privilegesStatus = privileges === undefined ? 400 : 200) => {
  const outcomes: string[] = []
  const elasticsearch = createSearchClient({
    transport: async ({ path }) =>
      path.startsWith('/_security/')
        ? { statusCode: privilegesStatus, body: Readable.from([Buffer.from(privileges ?? '{}')]) }
        : { statusCode: 200, body: Readable.from([Buffer.from(text)]) },
    observe: (_, outcome) => outcomes.push(outcome),
    elapsed: () => 0,
  })
  return { outcomes, indexIds: () => elasticsearch.indexIds(['a'], new AbortController().signal) }
}

test.each(['', '{"a":', '<html>', 'null', '7', '"a"', '[]', '{"a":null}', '{"a":{"settings":{"index":{"uuid":7}}}}'])(
  'index ids that come as %j are unavailable: nothing is known about the indices',
  async text => {
    const { indexIds } = answering(text)
    await expect(indexIds()).rejects.toMatchObject({
      code: 'unavailable',
      reason: 'elasticsearch_malformed_index_ids',
    })
  },
)

const STATS = {
  indices: { a: { shards: { 0: [{ routing: { primary: true }, commit: { user_data: { history_uuid: 'h' } } }] } } },
}

test('ids of indices come with those of their primary shards where they are asked for; else no shard is asked', async () => {
  const paths: string[] = []
  const { indexIds } = createSearchClient({
    transport: async ({ path }) => {
      paths.push(path)
      const isStats = path.includes('/_stats/')
      const text = isStats ? JSON.stringify(STATS) : path.startsWith('/_security/') ? '{"indices":[]}' : IDS
      return { statusCode: 200, body: Readable.from([Buffer.from(text)]) }
    },
    observe: () => undefined,
    elapsed: () => 0,
  })
  const { signal } = new AbortController()
  expect([...(await indexIds(['a', 'b'], signal))]).toEqual([['a', 'x']])
  expect(paths.some(path => path.includes('_stats'))).toBe(false)
  expect(Object.fromEntries(await indexIds(['a', 'b'], signal, true))).toEqual({ a: 'x', 'a/0': 'h' })
  expect(paths.find(path => path.includes('_stats'))).toMatch(
    /^\/a,b\/_stats\/get\?level=shards&.*ignore_unavailable=true$/,
  )
})

const searching = (parts: readonly Buffer[], statusCode = 200, body = Readable.from(parts)) => {
  const elasticsearch = createSearchClient({
    transport: async () => ({ statusCode, body }),
    observe: () => undefined,
    elapsed: () => 0,
  })
  return elasticsearch.search({ index: 'a', routing: undefined }, '{}', new AbortController().signal)
}

test.each([0, 1, 2, 17, 48, 100])(
  'a response in %i parts is put together whole, and keeps no more memory than its bytes',
  async count => {
    const parts = Array.from({ length: count }, (_, n) => Buffer.alloc(65_536 - n, n))
    const answer = await searching(parts)
    if (typeof answer === 'string') throw new Error('it is not')
    expect(answer.equals(Buffer.concat(parts))).toBe(true)
    if (answer.length > Buffer.poolSize) expect(answer.buffer.byteLength).toBe(answer.length)
  },
)

test('a response up to ANSWER_BYTES_MAX is collected; one byte more is too large', async () => {
  const parts = Array.from({ length: ANSWER_BYTES_MAX / 1_048_576 }, () => Buffer.alloc(1_048_576))
  expect(await searching(parts)).toHaveLength(ANSWER_BYTES_MAX)
  expect(await searching([...parts, Buffer.alloc(1)])).toBe('too_large')
})

test('a long response stays whole if its connection breaks after its end', async () => {
  const parts = Array.from({ length: 40 }, (_, n) => Buffer.alloc(65_536, n))
  const body = new Readable({ read: () => undefined, autoDestroy: false })
  for (const part of [...parts, null]) body.push(part)
  const answer = await searching([], 200, body)
  body.destroy(new Error('the connection broke'))
  await new Promise(resolve => body.once('close', resolve))
  expect(typeof answer !== 'string' && answer.equals(Buffer.concat(parts))).toBe(true)
})

test('a search that an overloaded Elasticsearch refuses is not said to be too large', async () => {
  expect(await searching([Buffer.from('{"status":429}')], 429)).toBe('overloaded')
})

test('index ids are read by index name; a missing index has no id', async () => {
  const { indexIds } = answering('{"a":{"settings":{"index":{"uuid":"x","history":{"uuid":"y"}}}}}')
  expect([...(await indexIds())]).toEqual([['a', 'x/y']])
  expect([...(await answering('{}').indexIds())]).toEqual([])
})

test('an index with a runtime field is unavailable: searches may read it in place of the field of its name', async () => {
  const withFields = (runtime: string) =>
    answering(`{"a":{"settings":{"index":{"uuid":"x"}},"mappings":{"runtime":${runtime}}},"b":{}}`).indexIds()
  await expect(withFields('{"until_seq":{"type":"long"}}')).rejects.toMatchObject({
    code: 'unavailable',
    reason: 'runtime_fields',
    retry: 'no',
  })
  expect([...(await withFields('{}'))]).toEqual([['a', 'x']])
})

test('a closed index is unavailable', async () => {
  const closed = '{"a":{"settings":{"index":{"uuid":"x","verified_before_close":"true"}}}}'
  await expect(answering(closed).indexIds()).rejects.toMatchObject({ code: 'unavailable', reason: 'index_closed' })
})

test('an index that Elasticsearch does not let read is unavailable', async () => {
  const blocked = (read: string) => answering(`{"a":{"settings":{"index":{"uuid":"x","blocks":{"read":"${read}"}}}}}`)
  const refused = { code: 'unavailable', reason: 'reads_blocked', retry: 'no' }
  await expect(blocked('true').indexIds()).rejects.toMatchObject(refused)
  expect([...(await blocked('false').indexIds())]).toEqual([['a', 'x']])
})

const IDS = '{"a":{"settings":{"index":{"uuid":"x"}}}}'

test('an index of which a role hides documents is unavailable: lists would be short, with status 200', async () => {
  const withQuery = (names: string) =>
    answering(IDS, `{"indices":[{"names":["${names}"],"privileges":["read"],"query":["{}"]}]}`).indexIds()
  const hidden = { code: 'unavailable', reason: 'documents_hidden', retry: 'no' }
  await expect(withQuery('a*')).rejects.toMatchObject(hidden)
  expect([...(await withQuery('b*'))]).toEqual([['a', 'x']])
})

test.each([400, 403, 404, 405, 501])(
  'if Elasticsearch answers %i to the question about roles, nothing is known, and no failure is counted',
  async status => {
    const { indexIds, outcomes } = answering(IDS, '{"error":"no handler found"}', status)
    expect([...(await indexIds())]).toEqual([['a', 'x']])
    expect(outcomes).toEqual(['ok', 'ok', 'ok'])
  },
)

const WHOLE = { names: ['*'], privileges: ['read'] }
const KEY = '/_security/api_key?id=k1'

/** `told`: answers by path. Each other question is refused, by Elasticsearch or by a proxy. */
const asked = () => {
  const told: Record<string, object> = {}
  const refusal = { status: 400, isOfElasticsearch: true }
  const { indexIds } = createSearchClient({
    transport: async ({ path }) => {
      const isQuestion = path.startsWith('/_security/')
      const answer = isQuestion ? told[path] : path.includes('/_stats/') ? STATS : JSON.parse(IDS)
      const body = Readable.from([Buffer.from(JSON.stringify(answer ?? {}))])
      const headers = refusal.isOfElasticsearch ? { 'x-elastic-product': 'Elasticsearch' } : {}
      return { statusCode: answer ? 200 : refusal.status, body, headers }
    },
    observe: () => undefined,
    elapsed: () => 0,
  })
  const ids = (withShards = false) => indexIds(['a'], new AbortController().signal, withShards)
  return { told, refusal, ids }
}
const unknown = { code: 'unavailable', reason: 'roles_unknown', retry: 'later' }

test('an API key that gets a role with a query while it is used is refused: then only the key tells its roles', async () => {
  const { told, ids } = asked()
  told['/_security/user/_privileges'] = { indices: [WHOLE] }
  expect([...(await ids())]).toEqual([['a', 'x']])
  delete told['/_security/user/_privileges']
  told['/_security/_authenticate'] = { api_key: { id: 'k1' } }
  const ownRole = (role: object) => ({
    api_keys: [{ role_descriptors: { api: { indices: [{ ...WHOLE, ...role }] } } }],
  })
  told[KEY] = ownRole({ query: '{"match_all":{}}' })
  await expect(ids()).rejects.toMatchObject({ reason: 'documents_hidden', retry: 'no' })
  told[KEY] = ownRole({})
  expect([...(await ids())]).toEqual([['a', 'x']])
  delete told[KEY]
  await expect(ids()).rejects.toMatchObject(unknown)
})

test.for([
  [400, true, 'answers'],
  [405, true, 'answers'],
  [400, false, 'refuses'],
  [403, true, 'refuses'],
  [404, true, 'refuses'],
] as const)(
  'before a signature, status %i to each question about roles, of Elasticsearch itself: %j, %s',
  async ([status, isOfElasticsearch, outcome]) => {
    const { refusal, ids } = asked()
    Object.assign(refusal, { status, isOfElasticsearch })
    expect([...(await ids())]).toEqual([['a', 'x']])
    if (outcome === 'refuses') await expect(ids(true)).rejects.toMatchObject(unknown)
    else expect(Object.fromEntries(await ids(true))).toEqual({ a: 'x', 'a/0': 'h' })
  },
)

test.each([401, 429, 503])('if it answers %i, the check has failed', async status => {
  await expect(answering(IDS, '{}', status).indexIds()).rejects.toMatchObject({ code: 'unavailable' })
})

test.each(['', '{}', '{"indices":[{"names":"a"}]}', 'null', '[]'])(
  'privileges that come as %j are unavailable: nothing is known about the roles',
  async text => {
    const reason = 'elasticsearch_malformed_privileges'
    await expect(answering(IDS, text).indexIds()).rejects.toMatchObject({ code: 'unavailable', reason })
  },
)

test('a search and a read by id send the routing of their documents, or no routing', async () => {
  const asked: { path: string; body?: string }[] = []
  const { search, multiGet } = createSearchClient({
    transport: async request => {
      asked.push(request)
      return { statusCode: 200, body: Readable.from([Buffer.from('{}')]) }
    },
    observe: () => undefined,
    elapsed: () => 0,
  })
  const { signal } = new AbortController()
  for (const routing of ['org_1', undefined]) {
    await search({ index: 'a', routing }, '{}', signal)
    await multiGet([{ _index: 'a', _id: 'org_1:payout_1', routing, form: 'record' }], signal)
  }
  expect(asked.map(({ path }) => new URLSearchParams(path.split('?')[1]).get('routing'))).toEqual([
    'org_1',
    null,
    null,
    null,
  ])
  expect([asked[1], asked[3]].map(one => JSON.parse(one?.body ?? '').docs)).toEqual([
    [{ _index: 'a', _id: 'org_1:payout_1', routing: 'org_1' }],
    [{ _index: 'a', _id: 'org_1:payout_1' }],
  ])
})
