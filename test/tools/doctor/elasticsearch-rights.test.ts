/** Whether the doctor says that a role hides documents: answers would be short, with status 200. */
import { expect, test } from 'vitest'
import { identities } from '../../../schemas/access.ts'
import { tryHidingRoles } from '../../../tools/doctor/elasticsearch-rights.ts'
import { proxied, sending } from '../../support/answering.ts'

const role = identities.api.elasticsearch
const whole = { names: ['*'], privileges: ['read'] }
const part = { ...whole, query: '{"term":{"org_id":"org_1"}}' }

/** @param answers by path; all others are 400, as without security */
const examine = (answers: Readonly<Record<string, object>>) => {
  const send = sending(async ({ path }) => {
    const body = answers[path]
    return { status: body ? 200 : 400, body: body ?? {} }
  })
  return tryHidingRoles(role, { ELASTICSEARCH_INDEX_PREFIX: 'p' }, send, new AbortController().signal)
}
const asKey = (indices: readonly object[]) => ({
  '/_security/_authenticate': { api_key: { id: 'k1' } },
  '/_security/api_key?id=k1': { api_keys: [{ role_descriptors: { api: { indices } } }] },
})

test.for([
  ['a user whose roles hide nothing', { '/_security/user/_privileges': { indices: [whole] } }, 'ok'],
  ['no security', {}, 'not tried'],
  ['an API key that hides nothing: the roles of its maker are not told', asKey([whole]), 'warning'],
  ['an API key that may not ask', { '/_security/_authenticate': { api_key: { id: 'k1' } } }, 'warning'],
  ['an API key with a query', asKey([part]), 'failed'],
  ['an API key that hides fields', asKey([{ ...whole, field_security: { grant: ['org_id'] } }]), 'failed'],
  ['an API key with one role that shows all', asKey([part, whole]), 'warning'],
] as const)('%s: %#', async ([, answers, outcome]) => {
  expect(await examine(answers)).toEqual([expect.objectContaining({ outcome })])
})

test('a proxy that answers 404 to questions about security: roles are not told', async () => {
  const send = sending(async ({ isOptional = false }) => proxied(isOptional))
  const found = await tryHidingRoles(role, { ELASTICSEARCH_INDEX_PREFIX: 'p' }, send, new AbortController().signal)
  expect(found).toEqual([expect.objectContaining({ outcome: 'warning' })])
})
