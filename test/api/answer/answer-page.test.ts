import { describe, expect, test } from 'vitest'
import type { Answering } from '../../../api/answer/answer-page.ts'
import { answerByIds, answerList, isNotModified } from '../../../api/answer/answer-page.ts'
import type { Context } from '../../../api/http/request.ts'
import { sliceHits, sliceSearch } from '../../../core/store/read/slice-documents.ts'
import { answering } from '../../support/answering-request.ts'
import { addressIn, generationOf } from '../../support/layout.ts'
import { multiGetAnswer, recordText, searchAnswer } from '../answers.ts'

const generation = generationOf()
const position = { generation, publishedTo: 1_000, time: 0, takenBack: 0 }

/** The bytes of a list answer, for records that came in the given number of Elasticsearch responses. */
const answered = (bodies: readonly string[], answers: number): string => {
  const records = bodies.map((body, place) => ({ id: `org_a:payout_${place}`, text: recordText(place, body), place }))
  const size = Math.ceil(records.length / answers) || 1
  const pieces = Array.from({ length: answers }, (_, piece) => records.slice(piece * size, (piece + 1) * size))
  const hits = pieces.flatMap(piece => sliceSearch(searchAnswer('i', piece), [{ name: 'i', kind: 'payouts' }], 'org_a'))
  const ctx = { set: () => undefined, get: () => '', state: answering(), body: Buffer.alloc(0) }
  answerList(ctx as unknown as Context<Answering>, 'payouts', { position, hits, hasMore: false }, undefined)
  return ctx.body.toString()
}

describe('the bytes of a page', () => {
  const bodies = ['{"a":1}', `{"é":"${'😀'.repeat(300)}"}`, '{"x":"}],"}', `{"y":"${'y'.repeat(70_000)}"}`, '{"z":{}}']
  test.each([
    [0, 1],
    [1, 1],
    [5, 1],
    [5, 2],
    [5, 5],
    [200, 1],
    [200, 3],
  ])('of %i records from %i responses are the stored bodies, complete and in order', (count, answers) => {
    const page = Array.from({ length: count }, (_, n) => bodies[n % bodies.length] ?? '')
    const data = page.map(body => `${body.slice(0, -1)},"superseded_by_id":null}`).join()
    const cursor = count === 0 ? '' : `payout_${count - 1}`
    expect(answered(page, answers)).toBe(`{"data":[${data}],"has_more":false,"next_cursor":"${cursor}"}`)
  })
})

test('an answer by ids says of each payout what replaced it, and has no cursor', () => {
  const fields = { until_seq: 500, superseded_by_id: 'payout_9' }
  const stored = {
    'org_a:payout_2': recordText(2, '{"b":2}', { until_seq: 1_000, superseded_by_id: 'payout_3' }),
    'org_a:payout_1': recordText(1, '{"a":1}', fields),
  }
  const names = Object.keys(stored).map(id => ({ ...addressIn('i', id), form: 'record' }) as const)
  const hits = sliceHits(multiGetAnswer(names, stored), names, 'payouts', 'org_a').filter(hit => hit !== undefined)
  const headers = new Map<string, string>()
  const state = { ...answering(), path: '/api/v1/payouts', query: 'ids=payout_2,payout_1,payout_7,payout_8' }
  const set = (name: string, value: string) => void headers.set(name, value)
  const answer = (left: readonly string[]): string => {
    const ctx = { set, get: () => '', state, body: Buffer.alloc(0) }
    const page = { position, hits, hasMore: left.length > 0, left }
    answerByIds(ctx as unknown as Context<Answering>, 'payouts', page)
    return ctx.body.toString()
  }
  // Published up to offset 1,000: nobody may know yet what replaced the first one.
  const data = '[{"b":2,"superseded_by_id":null},{"a":1,"superseded_by_id":"payout_9"}]'
  expect(answer([])).toBe(`{"data":${data},"has_more":false,"next_cursor":""}`)
  expect(headers.has('Link')).toBe(false)
  expect(answer(['payout_7', 'payout_8'])).toBe(`{"data":${data},"has_more":true,"next_cursor":""}`)
  expect(headers.get('Link')).toBe('</api/v1/payouts?ids=payout_7%2Cpayout_8>; rel="next"')
})

describe('If-None-Match', () => {
  test.each(['"a"', '*', ' * ', 'W/"a"', '"b", "a"', '"b","a"', '"b" , W/"a"', '"x, y", "a"'])(
    '%s matches "a"',
    header => {
      expect(isNotModified(header, '"a"')).toBe(true)
    },
  )

  test.each(['', '"b"', 'a', '"A"', '"a', '"*"', '"aa"', '*, "b"', 'W/"b"', '"b", "c"'])(
    '%s does not match "a"',
    header => {
      expect(isNotModified(header, '"a"')).toBe(false)
    },
  )
})
