import { describe, expect, test } from 'vitest'
import type { KeyPermission } from '../../../../schemas/values.ts'
import { Documents, tellAfter } from '../../../projector/given.ts'
import type { Event } from '../../../projector/records.ts'
import { keyCreated, keyRevoked, rep } from '../../../projector/story.ts'

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
      body: {
        secret_sha256: 'a'.repeat(64),
        hash: expect.any(String),
        created_seq: 0,
        revoked_seq: null,
        name: 'Payroll export',
      },
    })
  })

  test('does not store its last characters', async () => {
    const documents = await tell([keyCreated('key_1', 'a', { last4: 'wxyz' }), 'applied'])
    expect(JSON.stringify(documents.all())).not.toContain('wxyz')
  })

  test('keeps each permission; one that expires has them where an older API does not look', async () => {
    const permissions: KeyPermission[] = ['totals:read', 'payouts:read']
    const expires_at = '2027-01-01T00:00:00+01:00'
    const documents = await tell(
      [keyCreated('key_1', 'a', { permissions }), 'applied'],
      [keyCreated('key_2', 'b', { permissions, expires_at }), 'applied'],
      [keyRevoked('key_2'), 'applied'],
    )
    expect(documents.get(secret('a'))).toMatchObject({ permissions, body: { created_seq: 0 } })
    const body = { created_seq: 1, permissions, expires_at }
    expect(documents.get(secret('b'))).toMatchObject({ permissions: [], revoked: true, body })
  })

  test('with networks has its permissions where no API looks that does not know networks', async () => {
    const permissions: KeyPermission[] = ['totals:read']
    const expires_at = '2027-01-01T00:00:00Z'
    const networks = ['203.0.113.0/24', '2001:DB8::/32']
    const documents = await tell(
      [keyCreated('key_1', 'a', { permissions, allowed_networks: networks }), 'applied'],
      [keyCreated('key_2', 'b', { permissions, expires_at, allowed_networks: networks }), 'applied'],
      [keyRevoked('key_2'), 'applied'],
    )
    const within = { networks, permissions }
    expect(documents.get(secret('a'))).toMatchObject({ permissions: [], revoked: false })
    expect(documents.get(secret('a'))?.body).toEqual({ created_seq: 0, within })
    expect(documents.get(secret('b'))).toMatchObject({ permissions: [], revoked: true })
    expect(documents.get(secret('b'))?.body).toEqual({ created_seq: 1, expires_at, within })
  })

  test('without networks, with null and created before there were any, is one event; with others, another one', async () => {
    const allowed_networks = ['10.0.0.0/8', '192.0.2.0/24']
    const documents = await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyCreated('key_1', 'a', { allowed_networks: null }), 'duplicate'],
      [keyCreated('key_1', 'a', { allowed_networks }), 'id_reused'],
      [keyCreated('key_2', 'b', { allowed_networks }), 'applied'],
      [keyCreated('key_2', 'b', { allowed_networks }), 'duplicate'],
      [keyCreated('key_2', 'b', { allowed_networks: allowed_networks.toReversed() }), 'id_reused'],
      [keyCreated('key_2', 'b'), 'id_reused'],
      [keyCreated('key_3', 'c', { allowed_networks: ['10.0.0.0/8', '10.0.0.1'] }), 'data_invalid'],
    )
    expect(documents.get(secret('a'))?.body).toEqual({ created_seq: 0 })
    expect(documents.get(secret('c'))).toBeUndefined()
  })

  test('without an expiry, with null and created before there was one, is one event', async () => {
    await tell(
      [keyCreated('key_1', 'a'), 'applied'],
      [keyCreated('key_1', 'a', { expires_at: null }), 'duplicate'],
      [keyCreated('key_1', 'a', { expires_at: '2027-01-01T00:00:00Z' }), 'id_reused'],
      [keyCreated('key_2', 'b', { expires_at: '2027-01-01T00:00:00Z' }), 'applied'],
      [keyCreated('key_2', 'b', { expires_at: '2027-01-01T00:00:00Z' }), 'duplicate'],
      [keyCreated('key_2', 'b'), 'id_reused'],
    )
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

describe('before the offset from which on version 2 of the rules decides', () => {
  /** Version 2 decides from offset 4 on. */
  const tellBeside = (...story: [Event, string][]) =>
    tellAfter({ documents: new Documents(), from: 0, stream: 'api-keys', firstKeyRulesUntil: 4 }, ...story)
  const expires_at = '2027-01-01T00:00:00Z'
  const permissions: KeyPermission[] = ['payouts:read']

  test('other permissions are invalid, an expiry is ignored, and no name is stored', async () => {
    const documents = await tellBeside(
      [keyCreated('key_1', 'a', { permissions }), 'data_invalid'],
      [keyCreated('key_2', 'b', { expires_at }), 'applied'],
      [keyCreated('key_3', 'c', { expires_at: 'soon' }), 'applied'],
      [keyCreated('key_3', 'c'), 'duplicate'],
    )
    expect(documents.get('api-keys/org_1:key_1')).toBeUndefined()
    expect(documents.get(secret('b'))).toMatchObject({ permissions: ['read'], body: { created_seq: 1 } })
    expect(JSON.stringify(documents.all())).not.toMatch(/Payroll export|expires_at/)
  })

  test('networks are invalid: a key that ignored them would work from everywhere', async () => {
    const documents = await tellBeside(
      [keyCreated('key_1', 'a', { allowed_networks: ['10.0.0.0/8'] }), 'data_invalid'],
      [keyCreated('key_2', 'b', { allowed_networks: null }), 'applied'],
    )
    expect(documents.get(secret('a'))).toBeUndefined()
    expect(documents.get(secret('b'))).toMatchObject({ permissions: ['read'], body: { created_seq: 1 } })
  })

  test('a parked event stays parked; after it, the same event is applied, and an event from before is a duplicate', async () => {
    const documents = await tellBeside(
      [keyCreated('key_1', 'a', { permissions }), 'data_invalid'],
      [keyCreated('key_2', 'b', { expires_at }), 'applied'],
      [keyCreated('key_3', 'c'), 'applied'],
      [keyRevoked('key_3'), 'applied'],
      [keyCreated('key_1', 'a', { permissions }), 'applied'],
      [keyCreated('key_3', 'c'), 'duplicate'],
      // Applied without its expiry before: with it, it is another event.
      [keyCreated('key_2', 'b', { expires_at }), 'id_reused'],
      [keyCreated('key_4', 'd', { permissions, expires_at }), 'applied'],
      [keyCreated('key_5', 'e', { expires_at: 'soon' as never }), 'data_invalid'],
    )
    expect(documents.get(secret('a'))).toMatchObject({ permissions, body: { created_seq: 4 } })
    expect(documents.get(secret('d'))).toMatchObject({ permissions: [], body: { permissions, expires_at } })
    expect(documents.get('api-keys/org_1:key_3')).not.toHaveProperty('body.name')
    expect(documents.get('api-keys/org_1:key_1')).toHaveProperty('body.name', 'Payroll export')
  })
})
