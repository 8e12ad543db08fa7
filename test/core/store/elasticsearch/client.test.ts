import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Client, errors } from '@elastic/elasticsearch'
import { describe, expect, onTestFinished, test } from 'vitest'
import { StopError } from '../../../../core/runtime/failures.ts'
import { keepTrying, Unanswered } from '../../../../core/runtime/keep-trying.ts'
import { RETRY_FIRST_MS, RETRY_LAST_MS } from '../../../../core/runtime/limits.ts'
import {
  AnswerTooLong,
  createElasticsearch,
  errorType,
  type Request,
} from '../../../../core/store/elasticsearch/client.ts'
import { createCredentials } from '../../../../core/store/elasticsearch-credentials.ts'

type Transport = Client['transport']['request']
type Meta = ConstructorParameters<typeof errors.ResponseError>[0]

const OF_ELASTICSEARCH = { 'x-elastic-product': 'Elasticsearch' }
const metaOf = (statusCode: number, body: unknown): Meta =>
  ({ statusCode, body, headers: OF_ELASTICSEARCH, warnings: null, meta: {} }) as unknown as Meta

/** The client with a transport that returns the given outcome and records its calls. */
const setUp = (outcome: { statusCode: number; body: unknown } | Error) => {
  const asked: unknown[][] = []
  const request = async (...call: unknown[]) => {
    asked.push(call)
    if (outcome instanceof Error) throw outcome
    return outcome
  }
  const client = { transport: { request: request as unknown as Transport } } as Client
  return { asked, send: createElasticsearch(client).send }
}
const refused = (status: number, type?: string) =>
  setUp(new errors.ResponseError(metaOf(status, { error: { type, reason: 'quotes a document' }, status })))

const request = { method: 'POST', path: '/test-control/_refresh' } as const

describe('a request', () => {
  test('is sent once: retries are not the job of the client', async () => {
    const { send, asked } = setUp({ statusCode: 200, body: { ok: true } })
    const { signal } = new AbortController()
    expect(await send({ ...request, query: { a: 1 }, body: { b: 2 } }, signal)).toEqual({
      status: 200,
      body: { ok: true },
    })
    expect(asked).toEqual([
      [
        { method: 'POST', path: request.path, querystring: { a: 1 }, body: { b: 2 } },
        { headers: {}, meta: true, maxRetries: 0, requestTimeout: 20_000, signal },
      ],
    ])
  })

  test('whose API key is refused may work later if there is another key by now', async () => {
    let key = 'first'
    const wrong = new errors.ResponseError(metaOf(401, {}))
    const asked: unknown[] = []
    const transport = {
      request: async (_: unknown, { headers }: { headers: Record<string, string> }) => {
        asked.push(headers.authorization)
        if (headers.authorization === 'ApiKey first') throw wrong
        return { statusCode: 200, body: {} }
      },
    }
    const { send } = createElasticsearch(
      { transport } as unknown as Client,
      createCredentials(() => ({ apiKey: key })),
    )
    await expect(send(request)).rejects.toThrow(StopError)
    key = 'second'
    await expect(send(request)).rejects.toThrow(new Unanswered('elasticsearch', 401))
    expect(await send(request)).toMatchObject({ status: 200 })
    expect(asked).toEqual(['ApiKey first', 'ApiKey first', 'ApiKey second'])
  })

  test('limits the size of its response, and a response over the limit differs from a missing one', async () => {
    const aborted = setUp(new errors.RequestAbortedError('The content length (9) is bigger than the maximum'))
    await expect(aborted.send({ ...request, answerBytesMax: 8 })).rejects.toThrow(AnswerTooLong)
    expect(aborted.asked[0]?.[1]).toMatchObject({ maxResponseSize: 8 })
    const stopped = AbortSignal.abort()
    await expect(aborted.send({ ...request, answerBytesMax: 8 }, stopped)).rejects.toThrow(Unanswered)
    await expect(aborted.send(request)).rejects.toThrow(Unanswered)
  })

  test('with many documents is sent as lines', async () => {
    const { send, asked } = setUp({ statusCode: 200, body: {} })
    const bulk = Buffer.from('{}\n{}\n')
    await send({ method: 'POST', path: '/_bulk', bulk })
    expect(asked[0]?.[0]).toEqual({ method: 'POST', path: '/_bulk', bulkBody: bulk })
  })

  test.each([400, 404, 409, 413])('with status %i has an answer', async status => {
    expect(await refused(status, 'some_exception').send(request)).toMatchObject({ status })
  })

  test.each([408, 429, 502, 503, 504])('with status %i may work later', async status => {
    await expect(refused(status).send(request)).rejects.toThrow(new Unanswered('elasticsearch', status))
  })

  test.each([403, 400, 404])('that meets a cluster block may work later, whatever the status: %i', async status => {
    await expect(refused(status, 'cluster_block_exception').send(request)).rejects.toThrow(Unanswered)
  })

  test('that meets a closed index may work later, and names the index', async () => {
    const error = { type: 'index_closed_exception', reason: 'closed', index: 'c-control' }
    const { send } = setUp(new errors.ResponseError(metaOf(400, { error })))
    const named = new Unanswered('elasticsearch', 400, 'index_closed_exception', 'c-control')
    await expect(send(request)).rejects.toThrow(named)
  })

  test.each([
    ['index [c-g1-reps] blocked by: [FORBIDDEN/8/index write (api)];', ', index c-g1-reps'],
    ['blocked by: [FORBIDDEN/6/cluster read-only (api)];', ''],
    ['Ada has index [c] blocked by: [', ''],
    ['index [Ada Lovelace] blocked by: [FORBIDDEN/8/index write (api)];', ''],
  ])('names the index of a block, and nothing else of the reason: %s', async (reason, index) => {
    const error = { type: 'cluster_block_exception', reason }
    const { send } = setUp(new errors.ResponseError(metaOf(403, { error })))
    await expect(send(request)).rejects.toThrow(new Unanswered('elasticsearch', 403, `cluster_block_exception${index}`))
  })

  test.each([
    ['pipeline with id [trim] does not exist', 'test-control: the ingest pipeline trim does not exist; remove'],
    ['pipeline with id [Ada Lovelace] does not exist', undefined],
    ['Ada: pipeline with id [trim] does not exist', undefined],
  ])('to an index with a missing pipeline names it, and nothing else of the reason: %s', async (reason, message) => {
    const error = { type: 'illegal_argument_exception', reason }
    const { send } = setUp(new errors.ResponseError(metaOf(400, { error })))
    const sent = send({ method: 'PUT', path: '/test-control/_doc/live' })
    if (message === undefined) expect(await sent).toMatchObject({ status: 400 })
    else
      await expect(sent).rejects.toMatchObject({ code: 'index_unsuitable', message: expect.stringContaining(message) })
  })

  test.each([
    new errors.ConnectionError('connect ECONNREFUSED 10.0.0.1:9200'),
    new errors.TimeoutError('Request timed out'),
    new errors.NoLivingConnectionsError('There are no living connections', metaOf(0, undefined)),
    new errors.RequestAbortedError('Request aborted'),
  ])('without an answer may work later, and its message says nothing of the error: %s', async error => {
    const thrown = await setUp(error)
      .send(request)
      .catch((reason: unknown) => reason)
    expect(thrown).toBeInstanceOf(Unanswered)
    expect(String(thrown)).toBe('Unanswered: Elasticsearch does not answer')
  })

  test.each([401, 403])('with status %i stops the projector: the credentials are refused', async status => {
    await expect(refused(status, 'security_exception').send(request)).rejects.toThrow(
      expect.objectContaining({ code: 'access_refused' }),
    )
  })

  test.each([405, 406, 500, 501])('with status %i stops the projector, without quoting the response', async status => {
    const thrown = await refused(status)
      .send(request)
      .catch((reason: unknown) => reason)
    expect(thrown).toBeInstanceOf(StopError)
    expect(`${thrown}`).toContain(`Elasticsearch answers ${status} to POST _refresh`)
    expect(`${thrown}`).not.toContain('quotes')
  })

  test('that fails by a defect of ours is not retried', async () => {
    const defect = new TypeError('x is not a function')
    await expect(setUp(defect).send(request)).rejects.toBe(defect)
  })
})

describe('a write of one document', () => {
  const path = '/test-control/_doc/live'

  test.each([path, '/test-control/_create/live'])('does not run the default pipeline of the index: %s', async path => {
    const { send, asked } = setUp({ statusCode: 200, body: { result: 'updated' } })
    await send({ method: 'PUT', path, query: { if_seq_no: 1 }, body: {} })
    expect(asked[0]?.[0]).toMatchObject({ querystring: { pipeline: '_none', if_seq_no: 1 } })
  })

  test('that an ingest pipeline dropped is answered 200, and stops', async () => {
    const { send } = setUp({ statusCode: 200, body: { result: 'noop', _seq_no: -2 } })
    await expect(send({ method: 'PUT', path, body: {} })).rejects.toMatchObject({
      code: 'index_unsuitable',
      message: expect.stringContaining('test-control: an ingest pipeline dropped a document'),
    })
  })
})

describe('the answer of a server', () => {
  const answering = async (
    status: number,
    headers: Readonly<Record<string, string | number>>,
    body: string | Buffer,
    asked: Request = request,
  ) => {
    const server = createServer((_, answer) => answer.writeHead(status, headers).end(body))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const client = new Client({ node: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, maxRetries: 0 })
    onTestFinished(async () => {
      await client.close()
      server.close()
    })
    return createElasticsearch(client).send(asked)
  }
  const html = { 'content-type': 'text/html' }
  const json = { 'content-type': 'application/json', ...OF_ELASTICSEARCH }

  test.each([400, 404, 409])('with status %i is of Elasticsearch only if its header says so', async status => {
    expect(await answering(status, json, '{"found":false}')).toEqual({ status, body: { found: false } })
    await expect(answering(status, html, '<html>')).rejects.toThrow(
      new Unanswered('elasticsearch', status, 'without the header x-elastic-product'),
    )
  })

  test.each([400, 404])('with status %i may be of a proxy if the question is optional', async status => {
    const asked = { ...request, isOptional: true }
    expect(await answering(status, html, '<html>', asked)).toMatchObject({ status })
    await expect(answering(502, html, '<html>', asked)).rejects.toThrow(new Unanswered('elasticsearch', 502))
  })

  test.each([301, 302, 307])(
    'with status %i is a redirect of a proxy, also if the question is optional',
    async status => {
      const redirect = { ...html, location: '/maintenance' }
      for (const isOptional of [false, true])
        await expect(answering(status, redirect, '<html>', { ...request, isOptional })).rejects.toThrow(
          new Unanswered('elasticsearch', status, 'a redirect of a proxy'),
        )
    },
  )

  test('with status 413 counts also if a proxy refuses the request', async () => {
    expect(await answering(413, html, '<html>')).toMatchObject({ status: 413 })
  })

  test('that is compressed and cut off may come whole later', async () => {
    const whole = gzipSync('{"acknowledged":true}')
    const zipped = { ...json, 'content-encoding': 'gzip' }
    expect(await answering(200, zipped, whole)).toMatchObject({ body: { acknowledged: true } })
    await expect(answering(200, zipped, whole.subarray(0, -9))).rejects.toThrow(new Unanswered('elasticsearch'))
    await expect(answering(200, zipped, '{}')).rejects.toThrow(new Unanswered('elasticsearch'))
  })
})

test('the client reads a document with a key named __proto__: inputs of a trace may have one', () => {
  const text = '{"body":{"__proto__":"x","constructor":{"prototype":"y"}}}'
  const read = new Client({ node: 'http://localhost:9200' }).serializer.deserialize(text)
  expect(JSON.stringify(read)).toBe(text)
})

test.each([
  [{ error: { type: 'a_type', reason: 'x' } }, 'a_type'],
  [{ error: 'text' }, undefined],
  [{ error: { type: 1 } }, undefined],
  [{ error: null }, undefined],
  [{}, undefined],
  ['text', undefined],
  [undefined, undefined],
  [null, undefined],
])('the type of the error in %j is %s', (answer, type) => {
  expect(errorType(answer)).toBe(type)
})

describe('retrying until success', () => {
  const setUpTries = (outcomes: readonly ('works' | Error)[], random = 1) => {
    const stopping = new AbortController()
    const pauses: number[] = []
    const troubles: (string | undefined)[] = []
    let tries = 0
    const trying = keepTrying(
      async () => {
        const outcome = outcomes[tries++] ?? 'works'
        if (outcome instanceof Error) throw outcome
        return tries
      },
      stopping.signal,
      {
        sleep: async milliseconds => {
          pauses.push(milliseconds)
        },
        random: () => random,
        onTrouble: trouble => troubles.push(trouble?.message),
      },
    )
    return { trying, stopping, pauses, troubles }
  }
  const away = new Unanswered('elasticsearch', 503)

  test('continues with pauses that double up to a maximum, and reports each failure and the end', async () => {
    const { trying, pauses, troubles } = setUpTries(Array(10).fill(away))
    expect(await trying).toBe(11)
    expect(pauses).toEqual(Array.from({ length: 10 }, (_, at) => Math.min(RETRY_FIRST_MS * 2 ** at, RETRY_LAST_MS)))
    expect(troubles).toEqual([...Array(10).fill('Elasticsearch answers 503'), undefined])
  })

  test('pauses for a random part of the second half, so that clients do not come back at once', async () => {
    const { trying, pauses } = setUpTries([away, away], 0)
    await trying
    expect(pauses).toEqual([RETRY_FIRST_MS / 2, RETRY_FIRST_MS])
  })

  test('ends on an error that cannot be retried', async () => {
    const stop = new StopError('access_refused', 'x')
    const { trying, pauses } = setUpTries([away, stop])
    await expect(trying).rejects.toBe(stop)
    expect(pauses).toHaveLength(1)
  })

  test('ends on the signal: before an attempt, after one and in a pause', async () => {
    const reason = new Error('stopping')
    const retryOptions = { sleep: async () => undefined, random: () => 0, onTrouble: () => undefined }
    const tries: number[] = []
    const stopped = AbortSignal.abort(reason)
    await expect(keepTrying(async () => tries.push(1), stopped, retryOptions)).rejects.toBe(reason)
    expect(tries).toEqual([])

    // A failure because of the signal is not reported, whatever error the client throws.
    const troubles: unknown[] = []
    for (const error of [away, new TypeError('aborted')]) {
      const during = new AbortController()
      const failing = async (): Promise<never> => {
        during.abort(reason)
        throw error
      }
      const noting = { ...retryOptions, onTrouble: (trouble: unknown) => troubles.push(trouble) }
      await expect(keepTrying(failing, during.signal, noting)).rejects.toBe(reason)
    }
    expect(troubles).toEqual([])

    const pausing = new AbortController()
    const sleep = async () => pausing.abort(reason)
    const unavailable = async (): Promise<never> => {
      throw away
    }
    await expect(keepTrying(unavailable, pausing.signal, { ...retryOptions, sleep })).rejects.toBe(reason)
  })
})
