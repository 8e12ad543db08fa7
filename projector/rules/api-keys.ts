/**
 * Rules of API keys: created once, revoked forever. Events have only the hash of a key's text. Version 1 of these rules
 * knows the permission `read` alone, no expiry, and stores no name.
 */

import type { ApiKeyCreatedData, ApiKeyRevokedData } from '../../schemas/events.ts'
import { type ApiKeyDocument, recordId } from '../../schemas/stored/documents.ts'
import { type Decision, duplicate, parked, type Rules, type SequencedEvent } from './decision.ts'
import { type DocumentChange, type DocumentRef, documentChangeOf, refOf, type State } from './state.ts'

type CreatedNames = { readonly head: DocumentRef; readonly secret: DocumentRef }
type RevokedNames = { readonly head: DocumentRef }

export const keyCreatedRules: Rules<ApiKeyCreatedData, CreatedNames> = {
  reads: ({ org_id, id, secret_sha256 }) => ({ head: headOf(org_id, id), secret: secretOf(secret_sha256) }),
  thenReads: () => [],
  decide: (event, state) => decideCreated(event, state, storedOf(event)),
}

/** The rules of version 1, for records that were decided before version 2. */
export const firstKeyCreatedRules: Rules<ApiKeyCreatedData, CreatedNames> = {
  ...keyCreatedRules,
  decide: (event, state) => decideCreated(event, state, { permissions: event.data.permissions, name: {}, limits: {} }),
}

export const keyRevokedRules: Rules<ApiKeyRevokedData, RevokedNames> = {
  reads: ({ org_id, id }) => ({ head: headOf(org_id, id) }),
  thenReads: ({ reads }, state) => {
    const head = state.apiKey(reads.head)
    return head ? [secretOf(head.body.secret_sha256)] : []
  },
  decide: (event, state) => decideRevoked(event, state),
}

const headOf = (org: string, id: string): DocumentRef => refOf('api-keys', recordId(org, id))
const secretOf = (sha256: string): DocumentRef => refOf('api-keys', sha256)

/** The parts of the stored documents that the versions of the rules decide differently. */
type StoredParts = {
  readonly permissions: string[]
  readonly name: { readonly name?: string }
  readonly limits: Pick<ApiKeyDocument['body'], 'permissions' | 'expires_at'>
}

/** A key that expires has its permissions beside the expiry: an API that knows no expiry must refuse it. */
const storedOf = ({ data }: SequencedEvent<ApiKeyCreatedData, CreatedNames>): StoredParts => {
  const { name, permissions, expires_at } = data
  const expires = typeof expires_at === 'string'
  return { permissions: expires ? [] : permissions, name: { name }, limits: expires ? { permissions, expires_at } : {} }
}

const decideCreated = (
  { data, reads, hash, seq }: SequencedEvent<ApiKeyCreatedData, CreatedNames>,
  state: State,
  { permissions, name, limits }: StoredParts,
): Decision => {
  const { org_id, id, secret_sha256 } = data
  const head = state.apiKey(reads.head)
  if (head && head.body.created_seq < seq) return head.body.hash === hash ? duplicate : parked('id_reused')
  const secret = state.apiKeySecret(reads.secret)
  if (secret && secret.body.created_seq < seq) return parked('id_reused')
  return changed(seq, [
    [reads.head, { org_id, body: { secret_sha256, hash, created_seq: seq, revoked_seq: null, ...name } }],
    [reads.secret, { key_id: id, org_id, permissions, revoked: false, body: { created_seq: seq, ...limits } }],
  ])
}

const decideRevoked = ({ reads, seq }: SequencedEvent<ApiKeyRevokedData, RevokedNames>, state: State): Decision => {
  const head = state.apiKey(reads.head)
  if (head === null || head.body.created_seq >= seq) return parked('key_unknown')
  if (head.body.revoked_seq !== null && head.body.revoked_seq < seq) return duplicate
  const secretName = secretOf(head.body.secret_sha256)
  const secret = state.apiKeySecret(secretName)
  if (secret === null) throw new Error('a key id names a key that does not exist')
  return changed(seq, [
    [reads.head, { ...head, body: { ...head.body, revoked_seq: seq } }],
    [secretName, { ...secret, revoked: true }],
  ])
}

const changed = (seq: number, drafts: [name: DocumentRef, draft: DocumentChange['draft']][]): Decision => ({
  outcome: 'applied',
  changes: drafts.map(([name, draft]) => documentChangeOf(name, seq, draft)),
})
