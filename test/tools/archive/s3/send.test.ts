/** Failures of a store that a real server does not give: a double answers what each test says. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { s3Target } from '../../../../tools/archive/s3/s3-target.ts'
import { createSendS3, type S3Steps } from '../../../../tools/archive/s3/send.ts'
import { S3_RETRY_TOTAL_MS } from '../../../../tools/limits.ts'
import type { Scope } from '../../../support/scope.ts'

type Answer = (response: ServerResponse, request: { method: string; path: string; body: Buffer }) => void

/** Answers each request with the next function, and the last one from then on. Time passes only in waits. */
const setUp = (t: Scope, ...answers: readonly Answer[]) => setUpAt('127.0.0.1', t, ...answers)
const setUpAt = async (host: '127.0.0.1' | '::1', t: Scope, ...answers: readonly Answer[]) => {
  const requests: { method: string; path: string; key: string | undefined }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const [method = '', path = ''] = [request.method, request.url]
    const [, key] = /Credential=([^/]+)/.exec(request.headers.authorization ?? '') ?? []
    const answer = answers[Math.min(requests.length, answers.length - 1)]
    requests.push({ method, path, key })
    answer?.(response, { method, path, body: Buffer.concat(chunks) })
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const said: string[] = []
  const waits: number[] = []
  const stopping = new AbortController()
  const secrets = { id: 'one', secret: 'the-secret' }
  const steps: S3Steps = {
    say: line => void said.push(line),
    sleep: async milliseconds => void waits.push(milliseconds),
    now: Date.now,
    elapsed: () => waits.reduce((sum, wait) => sum + wait, 0),
    random: () => 1,
    signal: stopping.signal,
  }
  const endpoint = `http://${host === '::1' ? '[::1]' : host}:${typeof address === 'object' && address ? address.port : 0}`
  const credentials = () => ({ accessKeyId: secrets.id, secretAccessKey: secrets.secret })
  const bucket = { bucket: 'b', endpoint, region: 'us-east-1', ca: undefined, credentials }
  const target = s3Target('s3://b/p', { bucket: 'b', prefix: 'p' }, createSendS3(bucket, steps))
  return { target, requests, said, waits, stopping, secrets }
}

const refuse =
  (status: number, code: string, headers = {}): Answer =>
  response =>
    void response.writeHead(status, headers).end(`<Error><Code>${code}</Code><Message>the-secret</Message></Error>`)
const give =
  (text: string): Answer =>
  response =>
    void response.writeHead(200, { etag: '"1"' }).end(text)
const cut: Answer = response => {
  response.writeHead(200, { etag: '"1"', 'content-length': '10' }).write('12345')
  response.socket?.end()
}
const drop: Answer = response => void response.socket?.destroy()

test.for<[name: string, failure: Answer]>([
  ['503', refuse(503, 'SlowDown')],
  ['429', refuse(429, 'TooManyRequests')],
  ['500', refuse(500, 'InternalError')],
  ['a conflict with another write', refuse(409, 'ConditionalRequestConflict')],
  ['a lost connection', drop],
  ['an answer that is cut', cut],
])('after %s the request is sent again, with longer waits', async ([, failure], t) => {
  const { target, requests, waits } = await setUp(t, failure, failure, failure, give('1234567890'))
  expect(await target.read('a')).toEqual(Buffer.from('1234567890'))
  expect(requests).toHaveLength(4)
  expect(waits).toEqual([200, 400, 800])
})

test('an endpoint can be an IPv6 address', async t => {
  const { target } = await setUpAt('::1', t, give('x'))
  expect(await target.read('a')).toEqual(Buffer.from('x'))
})

test('a store that stays away ends the command with an error, and the operator reads about it before', async t => {
  const { target, said, waits } = await setUp(t, refuse(503, 'SlowDown'))
  await expect(target.read('a')).rejects.toThrow(/s3:\/\/b\/p\/a: .* does not answer: 503 SlowDown \(\d+ attempts in/)
  const waited = waits.reduce((sum, wait) => sum + wait, 0)
  expect(waited).toBeGreaterThan(S3_RETRY_TOTAL_MS)
  expect(waited).toBeLessThan(S3_RETRY_TOTAL_MS * 1.2)
  expect(said.length).toBeGreaterThan(5)
  expect(said[0]).toMatch(/does not answer: 503 SlowDown: trying again for up to 120 s/)
})

test('after a signal nothing is sent again', async t => {
  const { target, requests, stopping } = await setUp(t, response => {
    stopping.abort()
    refuse(503, 'SlowDown')(response, { method: '', path: '', body: Buffer.alloc(0) })
  })
  await expect(target.read('a')).rejects.toThrow('1 attempt in 0 s')
  expect(requests).toHaveLength(1)
})

test('a PUT whose answer was lost is ours if the object has our bytes, and else of another run', async t => {
  const lost = await setUp(t, drop, refuse(412, 'PreconditionFailed'), give('ours'))
  await lost.target.create('a', Buffer.from('ours'))
  expect(lost.requests.map(({ method }) => method)).toEqual(['PUT', 'PUT', 'GET'])
  const other = await setUp(t, drop, refuse(412, 'PreconditionFailed'), give('other'))
  await expect(other.target.create('a', Buffer.from('ours'))).rejects.toThrow(
    's3://b/p/a: another run has written it meanwhile',
  )
})

test('a store that ignores conditions is refused before anything is written into the archive', async t => {
  const none = refuse(404, 'NoSuchKey')
  const { target, requests } = await setUp(t, none, none, give(''))
  const processes = { self: async () => ({ host: 'h', place: 'p', pid: 1, started: '1' }), startOf: async () => '1' }
  const steps = { say: () => undefined, sleep: async () => undefined, now: Date.now, processes }
  await expect(target.lock(steps)).rejects.toThrow('does not know If-None-Match and If-Match')
  expect(new Set(requests.map(({ path }) => path))).toEqual(new Set(['/b/p/archive.lock']))
})

test('credentials that were renewed meanwhile are taken at once; others are refused by name, without them', async t => {
  const { target, requests, secrets } = await setUp(
    t,
    response => {
      secrets.id = 'two'
      refuse(403, 'SignatureDoesNotMatch')(response, { method: '', path: '', body: Buffer.alloc(0) })
    },
    give('x'),
    refuse(403, 'ExpiredToken'),
  )
  expect(await target.read('a')).toEqual(Buffer.from('x'))
  expect(requests.map(({ key }) => key)).toEqual(['one', 'two'])
  await expect(target.read('a')).rejects.toThrow('(403 ExpiredToken): ARCHIVE_S3_SESSION_TOKEN has ended')
})

test.for<[answer: Answer, said: string]>([
  [refuse(403, 'AccessDenied'), 's3://b/p/a: the store refuses access (403 AccessDenied): this key needs s3:GetObject'],
  [
    refuse(403, 'InvalidObjectState'),
    's3://b/p/a: the object is in an archive tier of the store (403 InvalidObjectState): let the store restore',
  ],
  [refuse(301, 'PermanentRedirect', { 'x-amz-bucket-region': 'eu-x-1' }), 'set ARCHIVE_S3_REGION to eu-x-1'],
  [refuse(403, 'InvalidAccessKeyId'), '(403 InvalidAccessKeyId): it does not know ARCHIVE_S3_ACCESS_KEY_ID'],
  [refuse(404, 'NoSuchBucket'), 'there is no bucket b at 127.0.0.1'],
  [refuse(501, 'NotImplemented'), 'does not know If-None-Match and If-Match'],
  [refuse(418, 'Teapot'), 'the store answers 418 Teapot to GET'],
])('a refusal is named with what to do, without the words of the store: %#', async ([answer, said], t) => {
  const { target, requests } = await setUp(t, answer)
  const error = await target.read('a').catch((thrown: Error) => thrown.message)
  expect(error).toContain(said)
  expect(error).not.toContain('the-secret')
  expect(requests).toHaveLength(1)
})

test('a list that ends in the middle, or repeats its token, is refused', async t => {
  const page = (token: string) =>
    give(`<ListBucketResult><IsTruncated>true</IsTruncated>${token}<Key>p/f/a</Key></ListBucketResult>`)
  const repeated = page('<NextContinuationToken>t&amp;1</NextContinuationToken>')
  for (const answers of [[page('')], [repeated, repeated], [give('<ListBucketResult><Key>p/f/a</Key>')]]) {
    const { target } = await setUp(t, ...answers)
    await expect(target.list('f')).rejects.toThrow('the store does not list its keys')
  }
})

test('a list may name keys of other programs in any way: only those of the archive are taken', async t => {
  const keys = ['p/f/a&amp;b', 'p/f/&#x7A;&#9999999;', 'p/f/%E9%', 'other']
  const { target } = await setUp(
    t,
    give(`<ListBucketResult>${keys.map(key => `<Key>${key}</Key>`).join('')}</ListBucketResult>`),
  )
  expect(await target.list('f')).toEqual(['a&b', 'z\ufffd', '%E9%'])
})
