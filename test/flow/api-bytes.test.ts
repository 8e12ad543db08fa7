import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { refusals } from '../../schemas/errors.ts'
import { openapi } from '../../schemas/reference/openapi.ts'
import { sendBytes, serveApi, useStore } from '../support/api.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  store.payout('org_bytes', 1, { id: 'payout_1' })
  await store.publish('org_bytes', 2)
  return { key: await store.key('org_bytes'), ...(await serveApi(scope, store.prefix)) }
})()

type Raw = { status: number; headers: Record<string, string>; body: string }

/** Splits the bytes of a connection into its answers. */
const readAnswers = (text: string): Raw[] => {
  const answers: Raw[] = []
  for (let rest = text; rest !== ''; ) {
    const [head = '', ...others] = rest.split('\r\n\r\n')
    const [first = '', ...lines] = head.split('\r\n')
    const headers = Object.fromEntries(
      lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const after = others.join('\r\n\r\n')
    const length = Number(headers['content-length'] ?? 0)
    answers.push({ status: Number(first.split(' ')[1]), headers, body: after.slice(0, length) })
    rest = after.slice(length)
  }
  return answers
}

/** Expects the standard form of a refusal, with a request id, and a closed connection. */
const expectRefusal = (answer: Raw | undefined, expected: string): void => {
  const { error } = JSON.parse(answer?.body || '{"error":{}}')
  expect(`${answer?.status} ${error.code}`).toBe(expected)
  expect(refusals[error.code as keyof typeof refusals]).toBe(answer?.status)
  expect(JSON.parse(answer?.body ?? '')).toEqual({ error: { code: error.code, message: expect.any(String) } })
  expect(answer?.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(answer?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
  expect(answer?.headers.connection).toBe('close')
}

const get = (more = '', target = '/api/v1/payouts', version = 'HTTP/1.1') =>
  `GET ${target} ${version}\r\nHost: a\r\nAuthorization: Bearer KEY\r\nConnection: close\r\n${more}\r\n`

describe('bytes that are not a valid request get a refusal in the standard form, and the connection is closed:', () => {
  const rows: [string, string, string][] = [
    ['nonsense', 'nonsense\r\n\r\n', '400 invalid_request'],
    ['binary', '\u0000\u0001\u0002\u0003', '400 invalid_request'],
    ['the first bytes of TLS', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000', '400 invalid_request'],
    ['an empty first line and nothing', '\r\n\r\nx\r\n\r\n', '400 invalid_request'],
    ['an unknown method', get().replace('GET', 'FOO'), '400 invalid_request'],
    ['a method in lower case', get().replace('GET', 'get'), '400 invalid_request'],
    ['HTTP/0.9', 'GET /api/v1/payouts\r\n\r\n', '400 invalid_request'],
    ['HTTP/2.0 written as text', get('', '/api/v1/payouts', 'HTTP/2.0'), '400 invalid_request'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '400 invalid_request'],
    ['HTTP/1.2', get('', '/api/v1/payouts', 'HTTP/1.2'), '400 invalid_request'],
    ['HTTP/3.0', get('', '/api/v1/payouts', 'HTTP/3.0'), '400 invalid_request'],
    ['an invalid version', get('', '/api/v1/payouts', 'HTTP/x'), '400 invalid_request'],
    ['another protocol', get('', '/api/v1/payouts', 'ICE/1.0'), '400 invalid_request'],
    ['no Host', 'GET /api/v1/payouts HTTP/1.1\r\nConnection: close\r\n\r\n', '400 invalid_request'],
    ['two Hosts', get('Host: b\r\n'), '400 invalid_request'],
    ['two equal Hosts', get('Host: a\r\n'), '400 invalid_request'],
    ['a space in the target', get('', '/api/v1/pay outs'), '400 invalid_request'],
    ['bytes above ASCII in the target', get('', '/api/v1/payouts/\u00e9'), '400 invalid_request'],
    ['a header without a colon', get('nonsense\r\n'), '400 invalid_request'],
    ['a header without a name', get(': x\r\n'), '400 invalid_request'],
    ['a space before the colon', get('X-A : b\r\n'), '400 invalid_request'],
    ['a folded header', get('X-A: b\r\n c\r\n'), '400 invalid_request'],
    ['a zero in a header', get('X-A: b\u0000c\r\n'), '400 invalid_request'],
    ['a lone line feed', get('X-A: b\n'), '400 invalid_request'],
    ['a lone carriage return', get('X-A: b\rX-C: d\r\n'), '400 invalid_request'],
    ['an invalid Content-Length', get('Content-Length: x\r\n'), '400 invalid_request'],
    ['a negative Content-Length', get('Content-Length: -1\r\n'), '400 invalid_request'],
    ['two Content-Lengths', get('Content-Length: 1\r\nContent-Length: 2\r\n'), '400 invalid_request'],
    ['a Content-Length and chunks', get('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'), '400 invalid_request'],
    ['an unknown transfer encoding', get('Transfer-Encoding: gzip\r\n'), '400 invalid_request'],
    ['CONNECT', 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n', '400 invalid_request'],
    ['an unknown expectation', get('Expect: foo\r\n'), '417 expectation_failed'],
    ['two expectations', get('Expect: 100-continue, foo\r\n'), '417 expectation_failed'],
    ['a target of 8 KiB', get('', `/api/v1/payouts?${'x'.repeat(7_700)}`), '414 uri_too_long'],
    ['a target of 20 KiB', get('', `/api/v1/payouts?${'x'.repeat(20_000)}`), '414 uri_too_long'],
    ['a target of 200 KiB', get('', `/api/v1/payouts?${'x'.repeat(200_000)}`), '414 uri_too_long'],
    ['a header of 9 KiB', get(`X-A: ${'x'.repeat(9_000)}\r\n`), '431 headers_too_large'],
    ['a header of 20 KiB', get(`X-A: ${'x'.repeat(20_000)}\r\n`), '431 headers_too_large'],
    ['a header of 200 KiB', get(`X-A: ${'x'.repeat(200_000)}\r\n`), '431 headers_too_large'],
    ['a hundred headers', get('X-A: b\r\n'.repeat(100)), '431 headers_too_large'],
    ['a large body', get('Content-Length: 100000\r\n'), '413 request_too_large'],
    [
      'a large body of another method',
      get('Content-Length: 100000\r\n').replace('GET', 'POST'),
      '413 request_too_large',
    ],
  ]
  test.each(rows)('%s', async (_, bytes, expected) => {
    const { send, key } = await shared
    const answers = readAnswers(await send(Buffer.from(bytes.replace('KEY', key), 'latin1')))
    expectRefusal(answers.at(-1), expected)
    expect(answers.length).toBe(1)
  })
})

describe('an unusual but valid request is answered:', () => {
  const rows: [string, string, number][] = [
    ['HTTP/1.0 without a Host', 'GET /api/v1/payouts HTTP/1.0\r\nAuthorization: Bearer KEY\r\n\r\n', 200],
    ['the absolute form', get('', 'http://a/api/v1/payouts'), 200],
    ['the absolute form of https in capitals', get('', 'HTTPS://a:443/api/v1/payouts?limit=1'), 200],
    ['the absolute form without a path', get('', 'http://a'), 404],
    ['the asterisk form', get('', '*').replace('GET', 'OPTIONS'), 404],
    ['an empty line before it', `\r\n${get()}`, 200],
    ['Expect: 100-continue', get('Expect: 100-continue\r\nContent-Length: 5\r\n'), 200],
    ['a small body', `${get('Content-Length: 5\r\n')}hello`, 200],
    ['a body in chunks', `${get('Transfer-Encoding: chunked\r\n')}5\r\nhello\r\n0\r\n\r\n`, 200],
    ['an upgrade that is not offered', get('Upgrade: websocket\r\n'), 200],
    ['an empty Host', get().replace('Host: a', 'Host:'), 200],
    ['a question mark and nothing after it', get('', '/api/v1/payouts?'), 200],
    ['an empty parameter between others', get('', '/api/v1/payouts?&limit=1&'), 200],
    ['bytes above ASCII in a header', get('X-A: \u00e9\u00ff\r\n'), 200],
    ['two keys', get('Authorization: Bearer KEY\r\n'), 401],
    [
      'two keys in one line',
      get('Authorization: Bearer KEY\r\n').replace('\r\nAuthorization', ',\r\nAuthorization'),
      401,
    ],
    ['a header name in mixed case', get().replace('Authorization', 'aUTHORIZATION'), 200],
    ['a key with space around', get().replace('Bearer KEY', ' Bearer KEY \t'), 200],
    ['sixty headers', get('X-A: b\r\n'.repeat(60)), 200],
  ]
  test.each(rows)('%s', async (_, bytes, status) => {
    const { send, key } = await shared
    const answers = readAnswers(await send(Buffer.from(bytes.replaceAll('KEY', key), 'latin1')))
    expect(answers.map(answer => answer.status)).toEqual([status])
    expect(answers[0]?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
    expect(answers[0]?.headers.connection).toBe('close')
  })
})

describe('a connection', () => {
  const keepAlive = (target: string) => `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\n\r\n`

  test('answers pipelined requests in order', async () => {
    const { send, key } = await shared
    const bytes = ['/api/v1/payouts', '/api/v1/nowhere', '/api/v1/openapi.json'].map(keepAlive).join('') + get()
    const answers = readAnswers(await send(bytes.replaceAll('KEY', key)))
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 200])
  })

  test('with a request and then nonsense answers the request, refuses the nonsense, and closes', async () => {
    const { send, key } = await shared
    const answers = readAnswers(await send(`${keepAlive('/api/v1/payouts').replace('KEY', key)}nonsense\r\n\r\n`))
    expect(answers.map(({ status }) => status)).toEqual([200, 400])
    expectRefusal(answers[1], '400 invalid_request')
  })

  test('does not read an unread body as the next request', async () => {
    const { send, key } = await shared
    const smuggled = get('', '/api/v1/openapi.json')
    const first = `POST /api/v1/payouts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n`
    const answers = readAnswers(await send(`${first}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`))
    expect(answers.map(({ status }) => status)).toEqual([405])
  })

  test.concurrent.each([
    ['sends nothing', ''],
    ['stops in the first line', 'GET /api/v1/pay'],
    ['stops in the headers', 'GET /api/v1/payouts HTTP/1.1\r\nHost: a\r\nX-A: '],
  ])('that %s gets a 408 within 10 s', async (_, bytes) => {
    const { port } = await shared
    const begun = performance.now()
    const text = await sendBytes(port, bytes)
    expectRefusal(readAnswers(text)[0], '408 request_timeout')
    expect(performance.now() - begun).toBeGreaterThan(8_000)
    // A busy machine may be late. If the server looked for such connections every 30 s, the answer would be later.
    expect(performance.now() - begun).toBeLessThan(25_000)
  })

  test.concurrent('that sends its headers slowly also gets a 408', async () => {
    const { port } = await shared
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write('GET /api/v1/payouts HTTP/1.1\r\n'))
      const drip = setInterval(() => socket.writable && socket.write('X-A: b\r\n'), 500)
      let received = ''
      // A byte that arrives after the answer resets the connection.
      socket.on('data', data => (received += data)).on('error', error => (received === '' ? reject(error) : undefined))
      socket.on('close', () => {
        clearInterval(drip)
        resolve(received)
      })
    })
    expectRefusal(readAnswers(text)[0], '408 request_timeout')
  })
})

test('every refusal for wrong bytes is in the OpenAPI document', () => {
  for (const status of [400, 408, 413, 414, 417, 431]) {
    for (const [path, { get: operation }] of Object.entries(openapi.paths)) {
      expect(Object.keys(operation.responses as object), path).toContain(String(status))
    }
  }
})
