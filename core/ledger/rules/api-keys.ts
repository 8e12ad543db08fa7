/**
 * Rules of API keys: created once, revoked forever. Events have only the hash of a key's text. Version 1 of these rules
 * knows the permission `read` alone, no expiry, and stores no name.
 */

import type { ApiKeyCreatedData, ApiKeyRevokedData } from '../../../schemas/events.ts'
import { type ApiKeyDocument, recordId } from '../../../schemas/stored/documents.ts'
import {
  type Decision,
  type DocumentChange,
  type DocumentRef,
  documentChangeOf,
  duplicate,
  parked,
  type Rules,
  refOf,
  type SequencedEvent,
  type State,
} from './state.ts'

type CreatedRefs = { readonly head: DocumentRef; readonly byHash: DocumentRef }
type RevokedRefs = { readonly head: DocumentRef }

export const keyCreatedRules: Rules<ApiKeyCreatedData, CreatedRefs> = {
  reads: ({ org_id, id, secret_sha256 }) => ({ head: headRefOf(org_id, id), byHash: keyRefOf(secret_sha256) }),
  thenReads: () => [],
  decide: (event, state) => decideCreated(event, state, storedOf(event)),
}

/** The rules of version 1, for records that were decided before version 2. */
export const firstKeyCreatedRules: Rules<ApiKeyCreatedData, CreatedRefs> = {
  ...keyCreatedRules,
  decide: (event, state) => decideCreated(event, state, { permissions: event.data.permissions, name: {}, limits: {} }),
}

export const keyRevokedRules: Rules<ApiKeyRevokedData, RevokedRefs> = {
  reads: ({ org_id, id }) => ({ head: headRefOf(org_id, id) }),
  thenReads: ({ reads }, state) => {
    const head = state.apiKeyHead(reads.head)
    return head ? [keyRefOf(head.body.secret_sha256)] : []
  },
  decide: (event, state) => decideRevoked(event, state),
}

const headRefOf = (org: string, id: string): DocumentRef => refOf('api-keys', recordId(org, id))
const keyRefOf = (sha256: string): DocumentRef => refOf('api-keys', sha256)

/** The parts of the stored documents that the versions of the rules decide differently. */
type StoredParts = {
  readonly permissions: string[]
  readonly name: { readonly name?: string }
  readonly limits: Pick<ApiKeyDocument['body'], 'permissions' | 'expires_at' | 'within'>
}

/**
 * A key that expires, or has networks, stores an empty list as `permissions`. The real permissions are in `body`, where
 * only an API that knows this limit looks. An older API, which ignores the limit, then refuses the key.
 */
const storedOf = ({ data }: SequencedEvent<ApiKeyCreatedData, CreatedRefs>): StoredParts => {
  const { name, permissions, expires_at, allowed_networks } = data
  const expires = typeof expires_at === 'string'
  if (allowed_networks) {
    const within = { networks: allowed_networks, permissions }
    return { permissions: [], name: { name }, limits: { ...(expires && { expires_at }), within } }
  }
  return { permissions: expires ? [] : permissions, name: { name }, limits: expires ? { permissions, expires_at } : {} }
}

const decideCreated = (
  { data, reads, hash, seq }: SequencedEvent<ApiKeyCreatedData, CreatedRefs>,
  state: State,
  { permissions, name, limits }: StoredParts,
): Decision => {
  const { org_id, id, secret_sha256 } = data
  const head = state.apiKeyHead(reads.head)
  if (head && head.body.created_seq < seq) return head.body.hash === hash ? duplicate : parked('id_reused')
  const key = state.apiKeyByHash(reads.byHash)
  if (key && key.body.created_seq < seq) return parked('id_reused')
  return changed(seq, [
    [reads.head, { org_id, body: { secret_sha256, hash, created_seq: seq, revoked_seq: null, ...name } }],
    [reads.byHash, { key_id: id, org_id, permissions, revoked: false, body: { created_seq: seq, ...limits } }],
  ])
}

const decideRevoked = ({ reads, seq }: SequencedEvent<ApiKeyRevokedData, RevokedRefs>, state: State): Decision => {
  const head = state.apiKeyHead(reads.head)
  if (head === null || head.body.created_seq >= seq) return parked('key_unknown')
  if (head.body.revoked_seq !== null && head.body.revoked_seq < seq) return duplicate
  const keyRef = keyRefOf(head.body.secret_sha256)
  const key = state.apiKeyByHash(keyRef)
  if (key === null) throw new Error('a key id names a key that does not exist')
  return changed(seq, [
    [reads.head, { ...head, body: { ...head.body, revoked_seq: seq } }],
    [keyRef, { ...key, revoked: true }],
  ])
}

const changed = (seq: number, drafts: [ref: DocumentRef, draft: DocumentChange['draft']][]): Decision => ({
  outcome: 'applied',
  changes: drafts.map(([ref, draft]) => documentChangeOf(ref, seq, draft)),
})
