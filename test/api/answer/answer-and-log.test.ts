/** The step that answers, counts and logs each request. */
import { expect, test } from 'vitest'
import { answerAndLog, createAdmitLine } from '../../../api/answer/answer-and-log.ts'
import type { KnownSoFar } from '../../../api/http/request.ts'
import { REFUSALS_LOGGED, REFUSALS_LOGGED_SECONDS } from '../../../api/limits.ts'
import { Refusal, unavailable } from '../../../core/runtime/refusals.ts'

const KEY = { org: 'org_1', orgHash: 'aa', id: 'key_1', permissions: new Set<never>() }

const created = () => {
  let time = 0
  let counted = 0
  const lines: { readonly status: number; readonly address?: string | undefined; readonly unlogged?: number }[] = []
  const step = answerAndLog({
    log: {
      answer: (_state, _method, status, _milliseconds, _reason, from) => void lines.push({ status, ...from }),
      failure: () => undefined,
      unhandledError: () => undefined,
      refusedBytes: () => undefined,
      say: () => undefined,
    },
    observe: () => counted++,
    elapsed: () => time,
    random: () => 0,
    addressOf: () => '192.0.2.1',
    admitLine: createAdmitLine(() => time),
  })
  /** Answers a request. @param outcome the error of the following steps, or the status of their answer */
  const run = async (outcome: Refusal | number, key?: KnownSoFar['key']): Promise<void> => {
    const state = { requestId: 'request_1', spent: { waited: 0 }, ...(key && { key }) }
    const ctx = { method: 'GET', status: 404, state, req: {}, response: { get: () => '' }, set: () => undefined }
    Object.assign(ctx, { remove: () => undefined })
    await step(ctx as unknown as Parameters<typeof step>[0], async () => {
      if (typeof outcome !== 'number') throw outcome
      ctx.status = outcome
    })
  }
  const elapse = (seconds: number): void => {
    time += seconds * 1_000
  }
  return { run, elapse, lines, counted: () => counted }
}

test.each([
  ['200', 200],
  ['304', 304],
  ['400', new Refusal('invalid_request')],
  ['401', new Refusal('unauthorized')],
  ['404', new Refusal('not_found')],
  ['405', new Refusal('method_not_allowed')],
  ['413', new Refusal('request_too_large')],
  ['414', new Refusal('uri_too_long')],
  ['417', new Refusal('expectation_failed')],
  ['429', new Refusal('rate_limited')],
  ['431', new Refusal('headers_too_large')],
  ['500', new Refusal('internal')],
  ['503', unavailable('elasticsearch_timeout')],
] as const)(
  'a flood of requests without a key that get %s has few lines, and the next line counts the others',
  async (status, outcome) => {
    const { run, elapse, lines, counted } = created()
    for (let time = 0; time < 1_000; time++) await run(outcome)
    const line = { status: Number(status), address: '192.0.2.1' }
    expect(lines).toEqual(Array(REFUSALS_LOGGED).fill({ ...line, unlogged: 0 }))
    expect(counted()).toBe(1_000)
    elapse(REFUSALS_LOGGED_SECONDS)
    await run(outcome)
    expect(lines.at(-1)).toEqual({ ...line, unlogged: 1_000 - REFUSALS_LOGGED })
  },
)

test.each([
  ['200', 200],
  ['404', new Refusal('not_found')],
  ['403', new Refusal('forbidden')],
  ['503', unavailable('elasticsearch_timeout')],
] as const)('each request with a valid key that gets %s has a line, without an address', async (status, outcome) => {
  const { run, lines } = created()
  for (let time = 0; time < 100; time++) await run(outcome, KEY)
  expect(lines).toEqual(Array(100).fill({ status: Number(status) }))
})

test.each(['rate_limited', 'unauthorized'] as const)('a flood of a key that gets %s has few lines', async code => {
  const { run, lines } = created()
  for (let time = 0; time < 100; time++) await run(new Refusal(code), KEY)
  expect(lines).toHaveLength(REFUSALS_LOGGED)
})
