import { describe, expect, test } from 'vitest'
import { answerReceipt, type ReceiptSteps } from '../../../projector/admin/answer-receipt.ts'
import type { ParkedLocation } from '../../../projector/admin/explain-parked.ts'
import type { ReceiptOutcome, RecordLocation } from '../../../projector/admin/receipts.ts'
import type { Run, RunOutcome } from '../../../projector/admin/run-receipts.ts'
import { parkCodes } from '../../../schemas/errors.ts'

const sources = [
  { stream: 'api-keys', topic: 'commission.api-keys', partitions: 1 },
  { stream: 'events', topic: 'commission.events', partitions: 6 },
  // A second generation of the same topic.
  { stream: 'events', topic: 'commission.events', partitions: 6 },
] as const

const ask = async (
  url: string,
  {
    method = 'GET',
    outcome = { state: 'published' } as ReceiptOutcome,
    runOutcome = { state: 'unavailable' } as RunOutcome,
    detail = 'why',
    known = sources as ReturnType<ReceiptSteps['sources']>,
  } = {},
) => {
  const explained: ParkedLocation[] = []
  const asked: [RecordLocation | Run, number][] = []
  const answer = await answerReceipt(method, url, new AbortController().signal, {
    sources: () => known,
    ask: async (place, milliseconds) => {
      asked.push([place, milliseconds])
      return outcome
    },
    askRun: async (run, milliseconds) => {
      asked.push([run, milliseconds])
      return runOutcome
    },
    explain: async place => {
      explained.push(place)
      return detail
    },
  })
  return { answer, body: answer && JSON.parse(answer.body), asked, explained }
}

test('a receipt is requested for the place and the wait of the request; the default wait is zero', async () => {
  const place = { stream: 'events', topic: 'commission.events', partition: 3, offset: 17 }
  expect((await ask('/receipts/commission.events/3/17?wait=10')).asked).toEqual([[place, 10_000]])
  expect((await ask('/receipts/commission.events/3/17')).asked).toEqual([[place, 0]])
  expect((await ask('/receipts/commission.events/3/17?wait=60', { method: 'HEAD' })).asked).toEqual([[place, 60_000]])
  expect((await ask('/receipts/commission.api-keys/0/0?wait=0')).asked).toEqual([
    [{ stream: 'api-keys', topic: 'commission.api-keys', partition: 0, offset: 0 }, 0],
  ])
})

test.each([{ state: 'published' }, { state: 'parked', code: 'rep_unknown' }, { state: 'not_yet' }] as const)(
  'a receipt names its record: $state',
  async outcome => {
    const { answer, body } = await ask('/receipts/commission.events/3/17', { outcome })
    const detail = outcome.state === 'parked' ? { detail: 'why' } : {}
    expect(body).toEqual({ ...outcome, ...detail, topic: 'commission.events', partition: 3, offset: 17 })
    expect(answer).toMatchObject({ code: 200, headers: { 'cache-control': 'no-store' } })
  },
)

test('the receipt of a parked record has its detail, whatever its code', async () => {
  for (const code of parkCodes) {
    const outcome = { state: 'parked', code } as const
    const place = { topic: 'commission.events', partition: 3, offset: 17 }
    const { body, explained } = await ask('/receipts/commission.events/3/17', { outcome, detail: '/name: expected' })
    expect(body).toEqual({ ...outcome, detail: '/name: expected', ...place })
    expect(explained).toEqual([{ stream: 'events', partitions: 6, code, ...place }])
  }
})

test('a run is requested with its first and last offset and its wait, and its receipt names them', async () => {
  const receipt = {
    published: 9_999,
    applied: 9_990,
    without_effect: 9,
    parked: 1,
    not_yet: 0,
    parked_records: [{ offset: 8, code: 'rep_unknown' }],
    has_more: false,
  } as const
  const { answer, body, asked } = await ask('/receipts/commission.events/3?from=6&to=10005&wait=10', {
    runOutcome: { state: 'read', receipt },
  })
  const run = { topic: 'commission.events', partition: 3, from: 6, to: 10_005 }
  expect(asked).toEqual([[{ stream: 'events', partitions: 6, ...run }, 10_000]])
  expect(body).toEqual({ ...run, ...receipt })
  expect(answer).toMatchObject({ code: 200, headers: { 'cache-control': 'no-store' } })
  const [[, wait] = []] = (await ask('/receipts/commission.events/3?to=7&from=7')).asked
  expect(wait).toBe(0)
})

test('too many requests for runs are a 503 that names the limit', async () => {
  const { answer, body } = await ask('/receipts/commission.events/3?from=0&to=5', {
    runOutcome: { state: 'too_many_runs' },
  })
  expect(answer).toMatchObject({ code: 503, headers: { 'retry-after': '1' } })
  expect(body).toEqual({ error: 'at most 100 requests for runs may be open at once' })
})

describe('a wrong request is refused with the expected and the received value, and no receipt is looked up:', () => {
  const topic = '/receipts/commission.events'
  test.each([
    [`${topic}/x/0`, 400, 'partition: expected a whole number from 0 to 2147483647, got "x"'],
    [`${topic}/2147483648/0`, 400, 'partition: expected a whole number from 0 to 2147483647, got "2147483648"'],
    [`${topic}/01/0`, 400, 'partition: expected a whole number from 0 to 2147483647, got "01"'],
    // The offset that a producer gets with acks=0.
    [`${topic}/0/-1`, 400, 'offset: expected a whole number from 0 to 9007199254740991, got "-1"'],
    [`${topic}/0/1e3`, 400, 'offset: expected a whole number from 0 to 9007199254740991, got "1e3"'],
    [`${topic}/0/9007199254740992`, 400, expect.stringContaining('got "9007199254740992"')],
    [`${topic}/0/${'9'.repeat(5_000)}`, 400, expect.stringMatching(/got "9{100}"$/)],
    [`${topic}/0/0?wait=61`, 400, 'wait: expected whole seconds from 0 to 60, got "61"'],
    [`${topic}/0/0?wait=1.5`, 400, 'wait: expected whole seconds from 0 to 60, got "1.5"'],
    [`${topic}/0/0?wait=`, 400, 'wait: expected whole seconds from 0 to 60, got ""'],
    [`${topic}/0/0?wait`, 400, 'wait: expected whole seconds from 0 to 60, got ""'],
    [`${topic}/0/0?wait=+1`, 400, 'wait: expected whole seconds from 0 to 60, got " 1"'],
    [`${topic}/0/0?wait=1&wait=1`, 400, 'wait: expected once, got 2 times'],
    [`${topic}/0/0?wiat=10`, 400, 'query: expected no parameter but wait, got "wiat"'],
    [`${topic}/6/0`, 404, 'partition: expected 0 to 5 of commission.events, got 6'],
    ['/receipts/commission.api-keys/1/0', 404, 'partition: expected 0 to 0 of commission.api-keys, got 1'],
    ['/receipts/other/0/0', 404, 'topic: expected commission.api-keys or commission.events, got "other"'],
    ['/receipts/__proto__/0/0', 404, 'topic: expected commission.api-keys or commission.events, got "__proto__"'],
    ['/receipts/other/x/0', 400, expect.stringMatching(/^partition/)],
    [`${topic}/0`, 400, 'from: expected a whole number from 0 to 9007199254740991, got nothing'],
    [`${topic}/0?from=5`, 400, 'to: expected a whole number from 0 to 9007199254740991, got nothing'],
    [`${topic}/0?from=-1&to=5`, 400, 'from: expected a whole number from 0 to 9007199254740991, got "-1"'],
    [`${topic}/0?from=0&to=1e3`, 400, 'to: expected a whole number from 0 to 9007199254740991, got "1e3"'],
    [`${topic}/0?from=6&to=5`, 400, 'to: expected at least 6 (the value of from), got 5'],
    [
      `${topic}/0?from=6&to=10006`,
      400,
      'to: expected at most 10005, because a request has at most 10000 offsets, got 10006',
    ],
    [`${topic}/0?from=0&from=1&to=5`, 400, 'from: expected once, got 2 times'],
    [`${topic}/0?from=0&to=5&wait=61`, 400, 'wait: expected whole seconds from 0 to 60, got "61"'],
    [`${topic}/0?from=0&to=5&limit=1`, 400, 'query: expected from, to and wait, got "limit"'],
    [`${topic}/0/0?from=1`, 400, 'query: expected no parameter but wait, got "from"'],
    [`${topic}/6?from=0&to=5`, 404, 'partition: expected 0 to 5 of commission.events, got 6'],
    ['/receipts/other/0?from=0&to=5', 404, 'topic: expected commission.api-keys or commission.events, got "other"'],
  ])('%s', async (url, code, error) => {
    const { answer, body, asked } = await ask(url)
    expect([answer?.code, body, asked]).toEqual([code, { error }, []])
  })

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('%s', async method => {
    const { answer, body, asked } = await ask(`${topic}/x/0`, { method })
    expect(answer).toMatchObject({ code: 405, headers: { allow: 'GET, HEAD' } })
    expect([body, asked]).toEqual([{ error: `method: expected GET or HEAD, got ${method}` }, []])
  })
})

test.each([
  ['unavailable', 'Elasticsearch is unavailable: the published position is unknown'],
  ['too_many', 'at most 1000 requests may wait for a receipt at once'],
  ['stopping', 'the projector is stopping'],
] as const)('a receipt that is unknown now is a 503 with Retry-After: %s', async (state, error) => {
  const { answer, body } = await ask('/receipts/commission.events/0/0', { outcome: { state } })
  expect(answer).toMatchObject({ code: 503, headers: { 'retry-after': '1' } })
  expect(body).toEqual({ error })
})

test('without a receipt, because the live generation is of another topic, the answer is a 404 that names it', async () => {
  const outcome = { state: 'other_topic', live: 'commission.events-9' } as const
  const error = 'topic: expected commission.events-9 (the topic of the live generation), got "commission.events"'
  const record = await ask('/receipts/commission.events/3/17?wait=10', { outcome })
  const run = await ask('/receipts/commission.events/3?from=0&to=5&wait=10', { runOutcome: outcome })
  for (const { answer, body, explained } of [record, run])
    expect([answer?.code, body, explained]).toEqual([404, { error }, []])
})

test('while readers are refused the answer is a 503, for a record and for a run', async () => {
  const outcome = { state: 'not_served' } as const
  const record = await ask('/receipts/commission.events/3/17', { outcome })
  const run = await ask('/receipts/commission.events/3?from=0&to=5', { runOutcome: outcome })
  for (const { answer, body } of [record, run]) {
    expect([answer?.code, answer?.headers]).toEqual([503, expect.objectContaining({ 'retry-after': '1' })])
    expect(body).toEqual({ error: expect.stringContaining('readers are refused, too') })
  }
})

test('until the topics are known the answer is a 503, and never a 404', async () => {
  const { answer, body } = await ask('/receipts/commission.events/0/0', { known: [] })
  expect([answer?.code, body]).toEqual([503, { error: 'the projector is starting' }])
})

test.each([
  '/receipts',
  '/receipts/',
  '/receipts/t',
  '/receipts/t/0/',
  '/receipts/t/0/?from=0&to=1',
  '/receipts/t/0/0/',
  '/receipts//0/0',
  '/x/t/0/0',
])('%s is not a path of receipts', async url => {
  expect((await ask(url)).answer).toBeUndefined()
})
