/** Sealed texts of known keys, to test publishers in other languages: `contract/sealed.json`. */
import { additionalData, type SealedField } from '../../schemas/sealed/sealed-text.ts'
import { seal, sealKey } from '../support/seal.ts'

const org = 'org_a'
const keyId = 'k_2026-01'
const locations = [
  ['rep_1', 'name', 'Ada'],
  ['rep_1', 'name', ''],
  ['rep_1', 'email', 'ada@example.com'],
  ['rep_2', 'name', 'Zoë 😀 \u0000 "quoted"\nsecond line'],
  ['rep_3', 'name', '😀'.repeat(1_000)],
  ['payroll_1', 'destination.label', 'DE89 3704 0044 0532 0130 00'],
] as const satisfies readonly (readonly [record: string, field: SealedField, text: string])[]

export const sealedVectors = () => {
  const first = seal('Ada', { org, record: 'rep_1', field: 'name', keyId })
  const at = { organization: org, record: 'rep_1', field: 'name' }
  return {
    keys: { [keyId]: sealKey(keyId).toString('base64') },
    sealed: locations.map(([record, field, text]) => ({
      ...{ organization: org, record, field, key_id: keyId, text },
      additional_data: additionalData({ org, record, field }),
      sealed: seal(text, { org, record, field, keyId }),
    })),
    unreadable: [
      { why: 'sealed for another organization', ...at, organization: 'org_b', sealed: first },
      { why: 'sealed for another record', ...at, record: 'rep_2', sealed: first },
      { why: 'sealed for another field', ...at, field: 'email', sealed: first },
      { why: 'a changed tag', ...at, sealed: first.replace(/.{4}$/, 'AAAA') },
      {
        why: 'a text of 1,001',
        ...at,
        sealed: seal('a'.repeat(1_001), { org, record: 'rep_1', field: 'name', keyId }),
      },
    ],
  }
}
