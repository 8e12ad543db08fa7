/** Rules of API keys: created once, revoked forever. Events have only the hash of a key's text. */

import type { ApiKeyCreatedData, ApiKeyRevokedData } from '../../schemas/events.ts'
import { recordId } from '../../schemas/stored/documents.ts'
import { type Decision, duplicate, parked, type Rules, type SequencedEvent } from './decision.ts'
import { type DocumentChange, type DocumentRef, documentChangeOf, refOf, type State } from './state.ts'

type CreatedNames = { readonly head: DocumentRef; readonly secret: DocumentRef }
type RevokedNames = { readonly head: DocumentRef }

export const keyCreatedRules: Rules<ApiKeyCreatedData, CreatedNames> = {
  reads: ({ org_id, id, secret_sha256 }) => ({ head: headOf(org_id, id), secret: secretOf(secret_sha256) }),
  thenReads: () => [],
  decide: (event, state) => decideCreated(event, state),
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

const decideCreated = (
  { data, reads, hash, seq }: SequencedEvent<ApiKeyCreatedData, CreatedNames>,
  state: State,
): Decision => {
  const { org_id, id, secret_sha256, permissions } = data
  const head = state.apiKey(reads.head)
  if (head && head.body.created_seq < seq) return head.body.hash === hash ? duplicate : parked('id_reused')
  const secret = state.apiKeySecret(reads.secret)
  if (secret && secret.body.created_seq < seq) return parked('id_reused')
  return changed(seq, [
    [reads.head, { org_id, body: { secret_sha256, hash, created_seq: seq, revoked_seq: null } }],
    [reads.secret, { key_id: id, org_id, permissions, revoked: false, body: { created_seq: seq } }],
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
