import { expect, test } from 'vitest'
import { curlInTime, inTime, receiptInTime } from './in-time.ts'

/** An API that answers with these statuses, one after the other, each 503 for its reason. */
const apiWith = (answers: readonly (readonly [status: number, because?: string])[]) => {
  const lines: { request_id: string; because: string | undefined }[] = []
  const left = [...answers]
  const ask = async () => {
    const [status = 500, because] = left.shift() ?? []
    const request_id = String(lines.length)
    lines.push({ request_id, because })
    return { status, headers: new Headers({ 'x-request-id': request_id }) }
  }
  return { ask, lines: () => lines, left }
}

test('a request whose time is up is sent again, until it is answered', async () => {
  const api = apiWith([
    [503, 'time_is_up'],
    [503, 'elasticsearch_timed_out'],
    [503, 'elasticsearch_overloaded'],
    [404],
    [200],
  ])
  expect(await inTime(api.ask, api.lines)).toMatchObject({ status: 404 })
  expect(api.left).toEqual([[200]])
})

test('a request that is refused for another reason is not sent again', async () => {
  const api = apiWith([[503, 'time_is_up'], [503, 'index_closed'], [200]])
  expect(await inTime(api.ask, api.lines)).toMatchObject({ status: 503 })
  expect(api.left).toEqual([[200]])
})

test('a receipt is asked for again while it is a 503, and every other answer is returned', async () => {
  const api = apiWith([[503], [503], [404], [200]])
  expect(await receiptInTime(api.ask)).toMatchObject({ status: 404 })
  expect(api.left).toEqual([[200]])
})

test('each curl of a page asks again, with -s and with -sf', () => {
  expect(curlInTime('curl -s "$A"\ncurl -sf "$B"')).toMatch(
    /^curl -sf --retry \d.* "\$A"\ncurl -sf --retry \d.* "\$B"$/,
  )
})
