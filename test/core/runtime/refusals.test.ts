import { describe, expect, test } from 'vitest'
import {
  failures,
  isRetryable,
  Refusal,
  refusalAnswer,
  retryAfter,
  unavailable,
} from '../../../core/runtime/refusals.ts'
import { type RefusalCode, refusals } from '../../../schemas/errors.ts'

const codes = Object.keys(refusals) as RefusalCode[]

describe('a refusal', () => {
  test.each(codes)('%s has the shape and the status of the contract', code => {
    const { status, body } = refusalAnswer(new Refusal(code))
    expect(status).toBe(refusals[code])
    const answered = JSON.parse(body.toString())
    expect(answered).toEqual({ error: { code, message: expect.stringMatching(/^.{10,}$/) } })
  })

  // That of a cursor names `after` if this was sent: an id has one message (read-list.test.ts).
  const namesTheCause: readonly RefusalCode[] = ['invalid_request', 'invalid_cursor', 'forbidden']
  test.each(codes.filter(code => !namesTheCause.includes(code)))('%s has the same message for every cause', code => {
    const given = new Refusal(code, { message: 'secret', reason: 'also secret' })
    expect(refusalAnswer(given).body).toEqual(refusalAnswer(new Refusal(code)).body)
  })

  test('of a parameter names the parameter', () => {
    expect(new Refusal('invalid_request', { message: '`limit` …' }).message).toBe('`limit` …')
  })

  test('of a right names the permission that the key lacks', () => {
    const message = 'This API key lacks the permission payouts:read.'
    expect(new Refusal('forbidden', { message }).message).toBe(message)
  })

  test('has the headers that the client needs to continue', () => {
    expect(failures.unauthorized.headers).toEqual({ 'WWW-Authenticate': 'Bearer' })
    expect(failures.method_not_allowed.headers).toEqual({ Allow: 'GET, HEAD' })
  })

  test('that is temporary tells clients to retry after 1 to 3 seconds, at random', () => {
    expect(codes.filter(isRetryable)).toEqual(['rate_limited', 'unavailable'])
    const said = [0, 0.2, 0.34, 0.5, 0.67, 0.999999].map(chance => retryAfter(() => chance))
    expect(said).toEqual(['1', '1', '2', '2', '3', '3'])
  })

  test('says when the same read may be tried again; after an unknown reason later', () => {
    expect(unavailable('elasticsearch_overloaded').retry).toBe('later')
    expect(unavailable('elasticsearch_too_large').retry).toBe('in parts')
    expect(unavailable('indices_replaced').retry).toBe('no')
    expect(new Refusal('unavailable', { reason: 'elasticsearch_status_502' }).retry).toBe('later')
  })

  test('of bytes that cannot be trusted closes the connection', () => {
    const closing = codes.filter(code => failures[code].closes)
    expect(closing).toEqual([
      'request_timeout',
      'request_too_large',
      'uri_too_long',
      'expectation_failed',
      'headers_too_large',
    ])
  })
})
