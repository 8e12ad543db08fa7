/** Certificates and tokens in files: those that are not in force fail, those that end soon are a warning. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkFiles } from '../../../tools/doctor/files.ts'

const pem = readFileSync(join(import.meta.dirname, '../../support/tls/cert.pem'))
const [from, to] = [Date.parse('2026-11-22T11:42:29Z'), Date.parse('2126-10-29T11:42:29Z')]
const DAY_MS = 86_400_000

test.for([
  [from - 1_000, 'failed', 'the certificate begins at 2026-11-22T11:42:29.000Z'],
  [from + 1_000, 'ok', 'the certificate ends at 2126-10-29T11:42:29.000Z'],
  [to - 15 * DAY_MS, 'ok', 'the certificate ends at'],
  [to - 13 * DAY_MS, 'warning', 'the certificate ends at'],
  [to, 'failed', 'the certificate ended at 2126-10-29T11:42:29.000Z'],
] as const)('a certificate at %i is %s', ([now, outcome, detail]) => {
  for (const name of ['KAFKA_SSL_CA_FILE', 'KAFKA_SSL_CERT_FILE', 'ELASTICSEARCH_CA_FILE', 'API_TLS_CERT_FILE']) {
    const found = checkFiles({ [name]: '/file' }, () => pem, now)
    expect(found).toEqual([expect.objectContaining({ check: name, outcome, detail: expect.stringContaining(detail) })])
  }
})

test('a file without a certificate fails', () => {
  const found = checkFiles({ KAFKA_SSL_CA_FILE: '/file' }, () => Buffer.from('nothing'), from)
  expect(found).toEqual([expect.objectContaining({ outcome: 'failed', check: 'KAFKA_SSL_CA_FILE' })])
})

const token = (claims: object): string => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`

test.for([
  [token({ exp: 100 }), 99_999, 'ok', 'the token ends at 1970-01-01T00:01:40.000Z'],
  [token({ exp: 100 }), 100_000, 'failed', 'the token ended at 1970-01-01T00:01:40.000Z'],
  [token({}), 0, 'ok', 'does not tell when it ends'],
  ['opaque', 0, 'ok', 'does not tell when it ends'],
] as const)('a token is looked at, and never shown: %#', ([text, now, outcome, detail]) => {
  const found = checkFiles({ KAFKA_SASL_TOKEN_FILE: '/token' }, () => Buffer.from(`${text}\n`), now)
  expect(found).toEqual([expect.objectContaining({ outcome, detail: expect.stringContaining(detail) })])
  expect(JSON.stringify(found)).not.toContain(text)
})
