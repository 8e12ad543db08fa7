/** API keys of an organization. The demo shows their text, and publishes its SHA-256. */
import { createHash } from 'node:crypto'
import type { ApiKeyCreatedData } from '../../schemas/events.ts'
import { type DemoEvent, eventAt } from './demo-record.ts'
import type { Random } from './random.ts'

export type DemoKeys = {
  readonly reading: DemoKey
  /** Created with read permission, then revoked. */
  readonly revoked: DemoKey
  /** Valid, without read permission. */
  readonly forbidden: DemoKey
  readonly events: readonly DemoEvent[]
}
/** The text is what a client sends. */
export type DemoKey = { readonly text: string; readonly data: ApiKeyCreatedData }

/** Makes the keys of an organization. @param at their creation, in milliseconds since 1970 */
export const makeKeys = (org_id: string, at: number, random: Random): DemoKeys => {
  const reading = makeKey(org_id, 'Payroll export', ['read'], at, random)
  const revoked = makeKey(org_id, 'Former dashboard', ['read'], at, random)
  const forbidden = makeKey(org_id, 'Not yet allowed', [], at, random)
  const revocation = { org_id, id: revoked.data.id, revoked_at: new Date(at).toISOString() }
  return {
    reading,
    revoked,
    forbidden,
    events: [
      ...[reading, revoked, forbidden].map(({ data }, index) =>
        eventAt(at, `key-${index + 1}`, { type: 'commission.api_key.created.v1', data }),
      ),
      eventAt(at, 'key-4', { type: 'commission.api_key.revoked.v1', data: revocation }),
    ],
  }
}

const makeKey = (org_id: string, name: string, permissions: 'read'[], at: number, random: Random): DemoKey => {
  const text = `${random.id('demo')}${random.id('').slice(1)}`
  const data: ApiKeyCreatedData = {
    org_id,
    id: random.id('key'),
    name,
    secret_sha256: createHash('sha256').update(text).digest('hex'),
    last4: text.slice(-4),
    permissions,
    created_at: new Date(at).toISOString(),
  }
  return { text, data }
}
