import { expect, test } from 'vitest'
import { RefusedError } from '../../../client/src/index.ts'
import { isDecided, lacksPermission, refusesMoment } from '../../../explorer/src/refusals.ts'

const refusal = (status: number, code: string, message = 'no') =>
  new RefusedError(new Response(null, { status }), { code, message })
const ofProxy = [400, 401, 403, 404, 502].map(status => refusal(status, 'unknown'))

test('a key lacks a permission if the API says so, not a proxy', () => {
  expect(lacksPermission(refusal(403, 'forbidden'))).toBe(true)
  for (const error of [...ofProxy, new TypeError('fetch failed'), undefined]) expect(lacksPermission(error)).toBe(false)
})

test('a moment is refused by a message about it, not by another one about the request', () => {
  expect(refusesMoment(refusal(400, 'invalid_request', '`as_of` must be an instant.'))).toBe(true)
  const others = [refusal(400, 'invalid_request', 'Unknown query parameter `x`.'), refusal(400, 'invalid_cursor')]
  for (const error of [...others, ...ofProxy]) expect(refusesMoment(error)).toBe(false)
})

test('a request is decided by the API, unless it cannot answer now', () => {
  for (const error of [refusal(403, 'forbidden'), refusal(404, 'not_found')]) expect(isDecided(error)).toBe(true)
  const others = [refusal(429, 'rate_limited'), refusal(503, 'unavailable'), new TypeError('fetch failed')]
  for (const error of [...others, ...ofProxy]) expect(isDecided(error)).toBe(false)
})
