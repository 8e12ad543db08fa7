/** The step that writes the line of a request: before the answer, once, and for every answer with records. */
import { expect, test } from 'vitest'
import { type AuditLine, type AuditWriter, auditReads } from '../../../api/audit/audit-reads.ts'
import type { Audited, Context } from '../../../api/http/request.ts'
import { noteRecordsForAudit } from '../../../api/http/request.ts'
import { Refusal, unavailable } from '../../../core/runtime/refusals.ts'

const KEY = { org: 'org_1', orgHash: 'aa', id: 'key_1', permissions: new Set<never>() }

type Asked = { readonly method?: string; readonly status?: number; readonly route?: string; readonly key?: typeof KEY }
type Outcome = Awaited<ReturnType<AuditWriter['write']>>

const created = (isStrict: boolean, outcome: Outcome | Promise<Outcome> = 'written', admits = true) => {
  const lines: AuditLine[] = []
  const step = auditReads({
    isStrict,
    writer: {
      write: async line => {
        lines.push(line)
        return outcome
      },
      end: async () => undefined,
    },
    now: () => Date.UTC(2026, 2, 5, 8, 30),
    addressOf: () => '10.0.0.7',
    admitLine: () => (admits ? { unlogged: 3 } : undefined),
  })
  const run = async (asked: Asked, next: (ctx: Context<Audited>) => void): Promise<void> => {
    const { method = 'GET', status = 200, route = '/api/v1/payouts', key } = asked
    const ctx = { method, status, req: {}, state: { requestId: 'request_1', route, key } } as unknown as Parameters<
      typeof step
    >[0]
    await step(ctx, async audited => next({ state: audited } as Context<Audited>))
  }
  return { run, lines, parsed: () => lines.map(({ text }) => JSON.parse(text)) }
}
const showing =
  (...ids: string[]) =>
  (ctx: Context<Audited>) =>
    noteRecordsForAudit(ctx, () => ids)
const refusing = (refusal: Refusal) => () => {
  throw refusal
}

test('the answer waits for its line', async () => {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const { run, lines } = created(false, promise)
  let isAnswered = false
  const running = run({ key: KEY }, showing('payout_1')).then(() => {
    isAnswered = true
  })
  await new Promise(setImmediate)
  expect([lines.length, isAnswered]).toEqual([1, false])
  resolve('written')
  await running
})

test('a line has ids, times and numbers, in one form', async () => {
  const { run, lines, parsed } = created(true)
  await run({ key: KEY }, ctx => {
    showing('payout_1', 'payout_2')(ctx)
    Object.assign(ctx.state.audited ?? {}, {
      asOf: { kind: 'instant', milliseconds: 0 },
      rep: 'rep_1',
      period: 'period_1',
    })
  })
  expect(lines[0]?.org).toBe('org_1')
  expect(lines[0]?.text).toMatch(/^\{"audit":true,.*\}\n$/)
  expect(parsed()).toEqual([
    {
      audit: true,
      time: '2026-03-05T08:30:00.000Z',
      request_id: 'request_1',
      method: 'GET',
      route: '/api/v1/payouts',
      status: 200,
      org_id: 'org_1',
      key_id: 'key_1',
      address: '10.0.0.7',
      as_of: '1970-01-01T00:00:00.000Z',
      rep_id: 'rep_1',
      period_id: 'period_1',
      count: 2,
      ids: ['payout_1', 'payout_2'],
    },
  ])
})

test.each([
  ['HEAD', 200],
  ['GET', 304],
])('%s with %i shows no record, and has their ids', async (method, status) => {
  const { run, parsed } = created(true)
  await run({ method, status, key: KEY }, showing('payout_1'))
  expect(parsed()).toMatchObject([{ method, status, count: 0, ids: ['payout_1'] }])
})

test('a method that a client invents is not written', async () => {
  const { run, parsed } = created(true)
  await expect(run({ method: 'CANARY', key: KEY }, refusing(new Refusal('not_found')))).rejects.toThrow()
  expect(parsed()).toMatchObject([{ method: 'other', status: 404 }])
})

test.each([200, 304])(
  'an answer %i whose route told no records is a defect: it is not sent, and has a line',
  async status => {
    const { run, parsed } = created(false)
    await expect(run({ status, key: KEY }, () => undefined)).rejects.toThrow('without a list of its records')
    expect(parsed()).toMatchObject([{ status: 500, count: 0, ids: [] }])
  },
)

test('a refusal has one line and stays the same refusal', async () => {
  const { run, parsed } = created(true)
  const refusal = new Refusal('forbidden')
  await expect(run({ key: KEY }, refusing(refusal))).rejects.toBe(refusal)
  expect(parsed()).toMatchObject([{ status: 403, key_id: 'key_1' }])
})

test('a key that was refused for the address of its client is named, with the reason', async () => {
  const { run, lines, parsed } = created(true)
  const refused = run({}, ctx => {
    Object.assign(ctx.state.audited ?? {}, { refusedKey: KEY })
    throw new Refusal('unauthorized')
  })
  await expect(refused).rejects.toThrow()
  expect(parsed()).toMatchObject([
    { status: 401, org_id: 'org_1', key_id: 'key_1', refused_for: 'address', address: '10.0.0.7', unlogged: 3 },
  ])
  expect(lines[0]?.org).toBe('org_1')
})

test('only refusals without a key, and those of a limit, are limited', async () => {
  const { run, parsed } = created(true, 'written', false)
  const limited = new Refusal('rate_limited')
  await expect(run({}, refusing(new Refusal('unauthorized')))).rejects.toThrow()
  await expect(run({ key: KEY }, refusing(limited))).rejects.toBe(limited)
  expect(parsed()).toEqual([])
  await run({ key: KEY }, showing('payout_1'))
  await expect(run({ key: KEY }, refusing(unavailable('time_is_up')))).rejects.toThrow()
  expect(parsed()).toMatchObject([{ status: 200 }, { status: 503 }])
  const admitted = created(true)
  await expect(admitted.run({}, refusing(new Refusal('unauthorized')))).rejects.toThrow()
  expect(admitted.parsed()).toMatchObject([{ status: 401, unlogged: 3 }])
})

test.each(['lost', 'late'] as const)('a line that is %s: strict refuses, not strict answers', async outcome => {
  const answered = created(false, outcome)
  await answered.run({ key: KEY }, showing('payout_1'))
  const refused = created(true, outcome)
  await expect(refused.run({ key: KEY }, showing('payout_1'))).rejects.toMatchObject({
    code: 'unavailable',
    reason: 'audit_not_written',
  })
  await expect(refused.run({ key: KEY }, refusing(new Refusal('not_found')))).rejects.toMatchObject({
    code: 'unavailable',
  })
  expect([answered.lines.length, refused.lines.length]).toEqual([1, 2])
})

test('the description of the API has no line', async () => {
  const { run, lines } = created(true, 'lost')
  await run({ route: '/api/v1/openapi.json' }, () => undefined)
  await expect(run({ route: '/api/v1/openapi.json' }, refusing(new Refusal('method_not_allowed')))).rejects.toThrow()
  expect(lines).toEqual([])
})
