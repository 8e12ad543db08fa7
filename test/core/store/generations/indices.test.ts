/** Optional questions about indices, behind a proxy that answers 404 to them, or only reloads. */
import { type Client, errors } from '@elastic/elasticsearch'
import { expect, test } from 'vitest'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import { createElasticsearch } from '../../../../core/store/elasticsearch/client.ts'
import {
  assertSameIndices,
  assertSeesAll,
  readRecordableIds,
  readShardIds,
} from '../../../../core/store/generations/indices.ts'
import { proxied, sending } from '../../../support/answering.ts'
import { answerIds, recordedIds } from '../../../support/shard-answers.ts'

const NAMES = ['p-control', 'p-g1-payouts']
const recorded = { generation: 'g1', ...recordedIds(NAMES) }
const steps = {
  prefix: 'p',
  request: sending(async ({ path, isOptional = false }) => {
    const answer = path.endsWith('/_settings') ? answerIds(path, NAMES) : undefined
    return answer ?? proxied(isOptional)
  }),
}

test('a user whose privileges a proxy does not tell may see less than all', async () => {
  expect(await assertSeesAll(NAMES, steps)).toBe('not told')
  await expect(assertSeesAll(NAMES, steps, false)).rejects.toThrow(Unanswered)
})

const whole = { names: ['*'], privileges: ['read'] }
const isKey = { '/_security/_authenticate': { api_key: { id: 'k1' } } }
const keyWith = (...indices: readonly object[]) => ({
  ...isKey,
  '/_security/api_key?id=k1': { api_keys: [{ role_descriptors: { api: { indices } } }] },
})
const OF_ELASTICSEARCH = { 'x-elastic-product': 'Elasticsearch' }
type Meta = ConstructorParameters<typeof errors.ResponseError>[0]

/** @param answers by path; all others have this status, with these headers */
const seeing = (
  answers: Readonly<Record<string, object>>,
  other = 400,
  headers: Readonly<Record<string, string>> = OF_ELASTICSEARCH,
  isOptional = false,
) => {
  const request = async ({ path }: { readonly path: string }) => {
    const body = answers[path]
    if (body) return { statusCode: 200, body }
    throw new errors.ResponseError({
      statusCode: other,
      body: {},
      headers,
      warnings: null,
      meta: {},
    } as unknown as Meta)
  }
  const client = { transport: { request } } as unknown as Client
  return assertSeesAll(NAMES, { request: createElasticsearch(client).send }, isOptional)
}

test.for([
  ['a user whose roles hide nothing', { '/_security/user/_privileges': { indices: [whole] } }, 400, 'all'],
  ['Elasticsearch that does not know the question who the user is', {}, 400, 'no security'],
  ['a refusal of each question', {}, 403, 'not told'],
  ['a path that is not there', {}, 404, 'not told'],
  ['a defect of Elasticsearch', {}, 500, 'not told'],
  ['a user whose privileges are not told', { '/_security/_authenticate': { username: 'u' } }, 400, 'not told'],
  ['an API key that may not read its roles', isKey, 403, 'not told'],
  ['an API key that is not found', { ...isKey, '/_security/api_key?id=k1': { api_keys: [] } }, 400, 'not told'],
  ['an API key whose own roles hide nothing', keyWith(whole), 400, 'all of the roles of its key'],
] as const)('%s: %#', async ([, answers, other, sight]) => {
  expect(await seeing(answers, other)).toBe(sight)
})

test.each([405, 410, 501])(
  'a proxy that answers %i in place of Elasticsearch proves no missing security',
  async status => {
    expect(await seeing({}, status)).toBe('no security')
    expect(await seeing({}, status, { 'content-type': 'text/html' })).toBe('not told')
  },
)

test('a 400 to an optional question may be of a proxy: it proves no missing security', async () => {
  expect(await seeing({}, 400, {}, true)).toBe('not told')
})

test('an API key with own roles that hide documents stops: an administrator may give it such a role at any time', async () => {
  for (const restricted of [{ query: { match_all: {} } }, { field_security: { grant: ['seq'] } }]) {
    const hidden = expect.objectContaining({ code: 'documents_hidden', where: { index: 'p-control' } })
    await expect(seeing(keyWith({ ...whole, ...restricted }))).rejects.toThrow(hidden)
  }
  const form = expect.objectContaining({ code: 'write_refused' })
  await expect(seeing(keyWith({ ...whole, names: 'p-control' }))).rejects.toThrow(form)
})

test('shards that a proxy does not tell are missing: nothing counts as compared, and none is recorded', async () => {
  expect(await readShardIds(NAMES, steps)).toEqual({})
  await expect(readShardIds(NAMES, steps, false)).rejects.toThrow(Unanswered)
  expect(await readRecordableIds(NAMES, steps)).toBeUndefined()
  await expect(readRecordableIds(NAMES, steps, false)).rejects.toThrow(Unanswered)
  expect(await assertSameIndices(recorded, steps)).toEqual({})
})

test('a read that had to wait does not count while a proxy answers 404 to the question for its shards', async () => {
  const [, read = ''] = NAMES
  await expect(assertSameIndices(recorded, { ...steps, read: [read] })).rejects.toThrow(Unanswered)
})
