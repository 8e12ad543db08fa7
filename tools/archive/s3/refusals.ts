/**
 * Refusals of S3, in words that say what to do. Only the code of the store is shown: its text can quote credentials.
 */
import type { IncomingHttpHeaders } from 'node:http'

export type S3Answer = {
  readonly status: number
  /** `Code` of an error. */
  readonly code: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Codes that say that the credentials are wrong, or were replaced. */
const credentialCodes: ReadonlyMap<string, string> = new Map([
  ['InvalidAccessKeyId', 'it does not know ARCHIVE_S3_ACCESS_KEY_ID'],
  ['SignatureDoesNotMatch', 'ARCHIVE_S3_SECRET_ACCESS_KEY does not fit ARCHIVE_S3_ACCESS_KEY_ID'],
  ['ExpiredToken', 'ARCHIVE_S3_SESSION_TOKEN has ended: get new credentials'],
  ['InvalidToken', 'ARCHIVE_S3_SESSION_TOKEN does not fit the other credentials'],
])

export const namesCredentials = ({ code }: S3Answer): boolean => credentialCodes.has(code ?? '')

export const refusalOf = (
  where: string,
  method: 'GET' | 'PUT',
  { status, code, headers, body }: S3Answer,
  { bucket, region, endpoint }: { bucket: string; region: string; endpoint: string | undefined },
  now: number,
): string => {
  const got = `${status}${code === undefined ? '' : ` ${code}`}`
  const at = endpoint === undefined ? `in region ${region} of AWS` : `at ${new URL(endpoint).host}`
  const credentials = credentialCodes.get(code ?? '')
  if (credentials !== undefined) return `${where}: the store refuses the credentials (${got}): ${credentials}`
  if (code === 'RequestTimeTooSkewed') {
    const here = new Date(now).toISOString()
    const there = headers.date === undefined ? 'another time' : new Date(headers.date).toISOString()
    return `${where}: the clocks differ (${got}): it is ${here} here, and ${there} there. Set the clock of this machine`
  }
  if (code === 'NoSuchBucket' || (status === 404 && code === undefined)) {
    return `${where}: there is no bucket ${bucket} ${at} (${got}): create it, or correct the address or ARCHIVE_S3_ENDPOINT`
  }
  const named = headers['x-amz-bucket-region'] ?? /<Region>([a-z0-9-]{1,63})<\/Region>/.exec(body.toString('utf8'))?.[1]
  const isElsewhere = status === 301 || status === 307 || code === 'AuthorizationHeaderMalformed'
  if (isElsewhere || code === 'IllegalLocationConstraintException') {
    const wanted = typeof named === 'string' && named !== region ? named : 'the region of the bucket'
    return `${where}: the bucket is not in region ${region} (${got}): set ARCHIVE_S3_REGION to ${wanted}`
  }
  if (code === 'InvalidObjectState') {
    return `${where}: the object is in an archive tier of the store (${got}): let the store restore all objects of the archive first (docs/archive.md#s3)`
  }
  if (status === 403) {
    const right = method === 'PUT' ? 's3:PutObject' : 's3:GetObject, and s3:ListBucket of the bucket'
    return `${where}: the store refuses access (${got}): this key needs ${right} (docs/archive.md#s3)`
  }
  if (status === 501) return `${where}: ${noConditions} (${got})`
  return `${where}: the store answers ${got} to ${method}`
}

/** Two runs could write at the same time. */
export const noConditions =
  'the store does not know If-None-Match and If-Match of a PUT, so nothing would keep two runs apart. Use another store, or mount it as a directory'

export const isRefusedCertificate = (code: string): boolean =>
  /^ERR_TLS_|CERT|SELF_SIGNED|^UNABLE_TO_(?:GET|VERIFY)/.test(code)

export const certificateRefused = (host: string, code: string): string =>
  `the certificate of ${host} is not accepted (${code}): set ARCHIVE_S3_CA_FILE to the certificates of its authority`
