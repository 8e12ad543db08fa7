/**
 * Sends requests to a bucket.
 *
 * In: a request. Out: the answer, whole.
 * Promises: the body of a request is part of its signature, so a store refuses one that was changed on its way. An
 *   incomplete answer counts as none. A request without an answer, or with a temporary refusal, is sent again for up to
 *   S3_RETRY_TOTAL_MS. The waits grow, and each message names the cause. After a signal nothing is sent again.
 *   Credentials are read for each request: another program may renew their files.
 * Can go wrong: refusals are errors that say what to do (`refusals.ts`). Only 200, 404 of a key and 412 are returned.
 */
import { createHash } from 'node:crypto'
import { Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import aws4 from 'aws4'
import { CommandError } from '../../failures.ts'
import {
  S3_ANSWER_BYTES,
  S3_RETRY_FIRST_MS,
  S3_RETRY_MAX_MS,
  S3_RETRY_SAID_MS,
  S3_RETRY_TOTAL_MS,
  S3_SILENT_MS,
} from '../../limits.ts'
import { certificateRefused, isRefusedCertificate, namesCredentials, refusalOf, type S3Answer } from './refusals.ts'

export type S3Credentials = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}
export type S3Bucket = {
  readonly bucket: string
  /** Of a store that is not AWS. Its addresses have the bucket in the path. */
  readonly endpoint: string | undefined
  readonly region: string
  /** PEM; undefined for the certificates of the system. */
  readonly ca: string | undefined
  readonly credentials: () => S3Credentials
}
export type S3Steps = {
  readonly say: (line: string) => void
  /** Ends early at the signal. */
  readonly sleep: (milliseconds: number) => Promise<void>
  /** Milliseconds since 1970, and on a monotonic clock. */
  readonly now: () => number
  readonly elapsed: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly signal: AbortSignal
}
export type S3Request = {
  readonly method: 'GET' | 'PUT'
  /** Empty for the bucket itself. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Two attempts at most. The first one may meet a connection that the server has closed. */
  readonly retryOnce?: boolean
}
/** @throws CommandError that says what to do */
export type SendS3 = (request: S3Request) => Promise<S3Answer>

/** A code of Node, or words. */
type NoAnswer = { readonly failed: string }

export const createSendS3 = (to: S3Bucket, steps: S3Steps): SendS3 => {
  const { base, isPathStyle } = addressOf(to)
  const isTls = base.protocol === 'https:'
  const agent = isTls
    ? new TlsAgent({ keepAlive: true, ...(to.ca !== undefined && { ca: to.ca }) })
    : new PlainAgent({ keepAlive: true })
  // Node takes an IPv6 address without brackets.
  const hostname = base.hostname.replace(/^\[|\]$/g, '')
  const folder = base.pathname.replace(/\/+$/, '') + (isPathStyle ? `/${to.bucket}` : '')

  const sendOnce = (request: S3Request, credentials: S3Credentials): Promise<S3Answer | NoAnswer> => {
    const { method, key, query, body } = request
    const words = Object.entries(query ?? {}).map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    const path = `${folder}/${key.split('/').map(encoded).join('/')}${words.length > 0 ? `?${words.join('&')}` : ''}`
    const unsigned = {
      ...request.headers,
      Host: base.host,
      'X-Amz-Date': new Date(steps.now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
      ...(body && {
        'Content-Type': 'application/octet-stream',
        'Content-Length': String(body.length),
        // A bucket with Object Lock demands it.
        'Content-MD5': createHash('md5').update(body).digest('base64'),
      }),
    }
    const toSign = { service: 's3', region: to.region, method, path, headers: unsigned, host: base.host }
    // aws4 hashes bytes as they are; its types know texts only.
    const signed = aws4.sign({ ...toSign, body: body as unknown as string }, withoutAbsent(credentials))
    return new Promise(resolve => {
      const asked = (isTls ? tlsRequest : plainRequest)({
        ...{ agent, method, path, timeout: S3_SILENT_MS, hostname, port: base.port || undefined },
        headers: Object.fromEntries(Object.entries(signed.headers ?? {}).map(([name, value]) => [name, String(value)])),
      })
      asked.on('timeout', () => asked.destroy(new Error('silent')))
      asked.on('error', (error: { code?: unknown }) => resolve({ failed: String(error.code ?? 'no answer in time') }))
      asked.on('response', answer => {
        const chunks: Buffer[] = []
        let bytes = 0
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > S3_ANSWER_BYTES) answer.destroy()
          else chunks.push(chunk)
        })
        answer.on('error', () => resolve({ failed: 'the answer was cut' }))
        answer.on('close', () => {
          if (!answer.complete) return resolve({ failed: 'the answer was cut' })
          const [content, status = 0] = [Buffer.concat(chunks), answer.statusCode]
          resolve({ status, headers: answer.headers, body: content, code: status < 300 ? undefined : codeIn(content) })
        })
      })
      asked.end(body)
    })
  }

  return async request => {
    const where = `s3://${to.bucket}/${request.key}`
    let first: number | undefined
    let saidAt = Number.NEGATIVE_INFINITY
    for (let attempt = 0; ; attempt++) {
      const credentials = to.credentials()
      const answer = await sendOnce(request, credentials)
      if ('status' in answer && !isLater(answer)) {
        if (isReturned(answer)) return answer
        // Another program may have written one of the files meanwhile, and the other one after it.
        const wasRenewed = namesCredentials(answer) && !isSame(credentials, to.credentials())
        if (!wasRenewed) throw new CommandError(refusalOf(where, request.method, answer, to, steps.now()))
      }
      const reason = 'status' in answer ? `${answer.status} ${answer.code ?? ''}`.trim() : answer.failed
      if (isRefusedCertificate(reason)) throw new CommandError(certificateRefused(base.host, reason))
      first ??= steps.elapsed()
      const waited = steps.elapsed() - first
      if ((request.retryOnce && attempt > 0) || steps.signal.aborted || waited > S3_RETRY_TOTAL_MS) {
        const tried = `${attempt + 1} ${attempt === 0 ? 'attempt' : 'attempts'} in ${Math.ceil(waited / 1_000)} s`
        throw new CommandError(`${where}: ${base.host} does not answer: ${reason} (${tried})`)
      }
      if (attempt > 0 && steps.elapsed() - saidAt >= S3_RETRY_SAID_MS) {
        saidAt = steps.elapsed()
        const limit = S3_RETRY_TOTAL_MS / 1_000
        steps.say(`${base.host} does not answer: ${reason}: trying again for up to ${limit} s`)
      }
      const delay = Math.min(S3_RETRY_MAX_MS, S3_RETRY_FIRST_MS * 2 ** attempt)
      await steps.sleep(delay * (0.5 + steps.random() / 2))
    }
  }
}

/** AWS has a name for each bucket. Its certificates fit no bucket with a dot. */
const addressOf = ({ bucket, endpoint, region }: S3Bucket): { readonly base: URL; readonly isPathStyle: boolean } => {
  if (endpoint !== undefined) return { base: new URL(endpoint), isPathStyle: true }
  const isPathStyle = bucket.includes('.')
  return { base: new URL(`https://${isPathStyle ? '' : `${bucket}.`}s3.${region}.amazonaws.com`), isPathStyle }
}

const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, one => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

const codeIn = (body: Buffer): string | undefined => /<Code>(\w{1,64})<\/Code>/.exec(body.toString('utf8'))?.[1]

/** 409: another conditional write of the same key is under way. */
const isLater = ({ status, code }: S3Answer): boolean =>
  status === 429 ||
  [500, 502, 503, 504].includes(status) ||
  (status === 409 && (code === 'ConditionalRequestConflict' || code === 'OperationAborted')) ||
  (status === 400 && code === 'RequestTimeout')

const isReturned = ({ status, code }: S3Answer): boolean =>
  status === 200 || status === 412 || (status === 404 && code === 'NoSuchKey')

const isSame = (one: S3Credentials, other: S3Credentials): boolean =>
  one.accessKeyId === other.accessKeyId &&
  one.secretAccessKey === other.secretAccessKey &&
  one.sessionToken === other.sessionToken

const withoutAbsent = ({ accessKeyId, secretAccessKey, sessionToken }: S3Credentials) => ({
  accessKeyId,
  secretAccessKey,
  ...(sessionToken !== undefined && { sessionToken }),
})
