/** Checks of certificates and tokens in files: whether they are in force now, and for how long. */
import { X509Certificate } from 'node:crypto'
import { type Finding, failed, ok, warning } from './finding.ts'

/** The settings that name files with certificates or with a token. */
const certificateSettings = [
  ...['KAFKA_SSL_CA_FILE', 'KAFKA_SSL_CERT_FILE', 'ELASTICSEARCH_CA_FILE', 'API_TLS_CERT_FILE'],
  'SEAL_KEYS_VAULT_CA_FILE',
]
const TOKEN_SETTING = 'KAFKA_SASL_TOKEN_FILE'
const WARN_DAYS = 14
const DAY_MS = 86_400_000

export const checkFiles = (
  settings: Readonly<Record<string, unknown>>,
  readFile: (path: string) => Buffer,
  now: number,
): Finding[] => [
  ...certificateSettings.flatMap(name => {
    const path = settings[name]
    return typeof path === 'string' ? [checkCertificate(name, readFile(path), now)] : []
  }),
  ...(typeof settings[TOKEN_SETTING] === 'string'
    ? [checkToken(readFile(settings[TOKEN_SETTING]).toString().trimEnd(), now)]
    : []),
]

/** Of a chain or of several authorities, the first one. */
const checkCertificate = (name: string, pem: Buffer, now: number): Finding => {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    return failed(name, 'expected a certificate as PEM, got something else')
  }
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()]
  const mend = 'put a new certificate into the file'
  if (from > now) return failed(name, `the certificate begins at ${isoOf(from)}: look at the clock of this machine`)
  if (to <= now) return failed(name, `the certificate ended at ${isoOf(to)}`, mend)
  const detail = `the certificate ends at ${isoOf(to)}`
  return to - now < WARN_DAYS * DAY_MS ? warning(name, detail, mend) : ok(name, detail)
}

/** Of a JSON web token, its end is looked at. Another token tells nothing. */
const checkToken = (token: string, now: number): Finding => {
  const exp = endOf(token)
  if (exp === undefined) return ok(TOKEN_SETTING, 'the token does not tell when it ends')
  if (exp > now) return ok(TOKEN_SETTING, `the token ends at ${isoOf(exp)}`)
  const mend = 'look at the program that writes the next token into the file'
  return failed(TOKEN_SETTING, `the token ended at ${isoOf(exp)}`, mend)
}

/** Returns milliseconds since 1970. */
export const endOf = (token: string): number | undefined => {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const exp = typeof claims === 'object' && claims !== null && 'exp' in claims ? claims.exp : undefined
    return typeof exp === 'number' ? exp * 1_000 : undefined
  } catch {
    return undefined
  }
}

const isoOf = (time: number): string => new Date(time).toISOString()
