import { describe, expect, test } from 'vitest'
import { Documents, tellAfter } from '../given.ts'
import type { Event } from '../records.ts'
import { keyCreated, keyRevoked, rep } from '../story.ts'

const tell = (...story: [Event, string][]) =>
  tellAfter({ documents: new Documents(), from: 0, stream: 'api-keys' }, ...story)

const secret = (character: string) => `api-keys/${character.repeat(64)}` as const

describe('an API key', () => {
  test('is stored by its hash with organization and permissions, and by its id', async () => {
    const documents = await tell([keyCreated('key_1', 'a'), 'applied'])
    expect(documents.get(secret('a'))).toEqual({
      key_id: 'key_1',
      org_id: 'org_1',
      permissions: ['read'],
      revoked: false,
      body: { created_seq: 0 },
    })
    expect(documents.get('api-keys/org_1:key_1')).toEqual({
      org_id: 'org_1',
      body: { secret_sha256: 'a'.repeat(64), hash: expect.any(String), created_seq: 0, revoked_seq: null },
    })
  })

  test('stores neither its name nor its last characters', async () => {
    const documents = await tell([keyCreated('key_1', 'a', { name: 'Export', last4: 'wxyz' }), 'applied'])
    expect(JSON.stringify(documents.all())).not.toMatch(/Export|wxyz/)
  })

  test('created again is a duplicate, even once revoked; with other data its id is reused', async () => {
    await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyCreated('key_1', 'a'), 'duplicate'],
      [keyCreated('key_1', 'b'), 'id_reused'],
      [keyCreated('key_1', 'a', { permissions: [] }), 'id_reused'],
      [keyRevoked('key_1'), 'applied'],
      [keyCreated('key_1', 'a'), 'duplicate'],
      [keyCreated('key_1', 'b'), 'id_reused'],
    )
  })

  test('with the secret of another key, of any organization, is always id_reused', async () => {
    const documents = await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyCreated('key_2', 'a'), 'id_reused'],
      [keyCreated('key_1', 'a', { org_id: 'org_2' }), 'id_reused'],
      [keyRevoked('key_1'), 'applied'],
      [keyCreated('key_2', 'a'), 'id_reused'],
      [keyCreated('key_2', 'b'), 'applied'],
    )
    expect(documents.get(secret('a'))).toMatchObject({ key_id: 'key_1', org_id: 'org_1', revoked: true })
  })

  test('of another organization may have the same id', async () => {
    const documents = await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyCreated('key_1', 'b', { org_id: 'org_2' }), 'applied'],
      [keyRevoked('key_1'), 'applied'],
    )
    expect(documents.get(secret('a'))).toMatchObject({ org_id: 'org_1', revoked: true })
    expect(documents.get(secret('b'))).toMatchObject({ org_id: 'org_2', revoked: false })
  })

  test('that was parked reserves neither its id nor its secret', async () => {
    await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyCreated('key_1', 'b'), 'id_reused'],
      [keyCreated('key_2', 'b'), 'applied'],
    )
  })
})

describe('a revocation', () => {
  test('is permanent, and stores its offset', async () => {
    const documents = await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyCreated('key_2', 'b', { permissions: [] }), 'applied'],
      [keyRevoked('key_2'), 'applied'],
    )
    expect(documents.get(secret('b'))).toEqual({
      key_id: 'key_2',
      org_id: 'org_1',
      permissions: [],
      revoked: true,
      body: { created_seq: 1 },
    })
    expect(documents.get('api-keys/org_1:key_2')).toMatchObject({ body: { created_seq: 1, revoked_seq: 2 } })
    expect(documents.get(secret('a'))).toMatchObject({ revoked: false })
  })

  test('again is a duplicate, with any time', async () => {
    await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyRevoked('key_1'), 'applied'],
      [keyRevoked('key_1'), 'duplicate'],
      [keyRevoked('key_1', { revoked_at: '2027-01-01T00:00:00Z' }), 'duplicate'],
    )
  })

  test('of a key that this organization never created is key_unknown, whatever comes later', async () => {
    await tell(
      [keyRevoked('key_1'), 'key_unknown'],
      [keyCreated('key_1', 'a', { org_id: 'org_2' }), 'applied'],
      [keyRevoked('key_1'), 'key_unknown'],
      [keyCreated('key_1', 'a'), 'id_reused'],
      [keyRevoked('key_1'), 'key_unknown'],
      [keyCreated('key_1', 'b'), 'applied'],
      [keyRevoked('key_1'), 'applied'],
    )
  })
})

test('commission events are unknown on the topic of API keys', async () => {
  await tell([rep(), 'type_unknown'])
})
