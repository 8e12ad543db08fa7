/** API keys: created once, revoked for ever. Only the hash of a key's text is ever seen here. */
import { recordId } from '../../schemas/documents.ts'
import type { ApiKeyCreatedData, ApiKeyRevokedData } from '../../schemas/events.ts'
import { type Change, changeOf, keyOf, type State } from '../state.ts'
import { type Decision, duplicate, type Placed, parked, type Rules } from './decision.ts'

export const keyCreatedRules: Rules<ApiKeyCreatedData> = {
  needs: ({ org_id, id, secret_sha256 }) => [keyOf('api-keys', recordId(org_id, id)), keyOf('api-keys', secret_sha256)],
  needsNext: () => [],
  decide: (event, state) => decideCreated(event, state),
}

export const keyRevokedRules: Rules<ApiKeyRevokedData> = {
  needs: ({ org_id, id }) => [keyOf('api-keys', recordId(org_id, id))],
  needsNext: ({ data }, state) => {
    const head = state.apiKey(recordId(data.org_id, data.id))
    return head ? [keyOf('api-keys', head.body.secret_sha256)] : []
  },
  decide: (event, state) => decideRevoked(event, state),
}

const decideCreated = ({ data, hash, seq }: Placed<ApiKeyCreatedData>, state: State): Decision => {
  const { org_id, id, secret_sha256, permissions } = data
  const head = state.apiKey(recordId(org_id, id))
  if (head && head.body.created_seq < seq) return head.body.hash === hash ? duplicate : parked('id_reused')
  const secret = state.apiKeySecret(secret_sha256)
  if (secret && secret.body.created_seq < seq) return parked('id_reused')
  return changed(seq, [
    [recordId(org_id, id), { org_id, body: { secret_sha256, hash, created_seq: seq, revoked_seq: null } }],
    [secret_sha256, { key_id: id, org_id, permissions, revoked: false, body: { created_seq: seq } }],
  ])
}

const decideRevoked = ({ data, seq }: Placed<ApiKeyRevokedData>, state: State): Decision => {
  const { org_id, id } = data
  const head = state.apiKey(recordId(org_id, id))
  if (head === null || head.body.created_seq >= seq) return parked('key_unknown')
  if (head.body.revoked_seq !== null && head.body.revoked_seq < seq) return duplicate
  const secret = state.apiKeySecret(head.body.secret_sha256)
  if (secret === null) throw new Error('the key that a key id names is missing')
  return changed(seq, [
    [recordId(org_id, id), { ...head, body: { ...head.body, revoked_seq: seq } }],
    [head.body.secret_sha256, { ...secret, revoked: true }],
  ])
}

const changed = (seq: number, drafts: [id: string, draft: Change['draft']][]): Decision => ({
  outcome: 'applied',
  changes: drafts.map(([id, draft]) => changeOf('api-keys', id, seq, draft)),
})
