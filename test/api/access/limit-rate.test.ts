/** The step that counts requests: what a request costs whose client leaves, and a clock that steps back. */
import { afterEach, expect, test, vi } from 'vitest'
import { createLocalCounter, limitRate, unitsOf } from '../../../api/access/limit-rate.ts'
import type { Spent } from '../../../api/http/request.ts'
import { Refusal, unavailable } from '../../../core/runtime/refusals.ts'
import { abortReason, waitOrAbort } from '../../../core/runtime/time-limits.ts'
import { createAnswerBudget, type Reservation } from '../../../core/store/read/answer-budget.ts'
import { RATE_UNIT_BYTES } from '../../../schemas/limits.ts'

const KEY = { org: 'org_1', orgHash: 'aa', id: 'key_1', permissions: new Set(['read'] as const) }
const RATE = { requests: 100, windowSeconds: 60 }

afterEach(() => void vi.useRealTimers())

type State = { readonly reservation: Reservation; readonly signal: AbortSignal; readonly spent: Spent }
/** The status of the answer, if it is not 200. */
type Given = { readonly status: number }
const NO_TURN = { wait: async () => undefined, tryNow: () => true, isMine: () => false, end: () => undefined }

const created = (rate = RATE) => {
  const counter = createLocalCounter(rate)
  const budget = createAnswerBudget({ onRefused: () => undefined })
  const step = limitRate({ rate, inFlightMax: 100, counter, elapsed: () => 0, onLimited: () => undefined })
  /** Runs a request. Returns the headers of its answer. */
  const run = async (next: (state: State) => Promise<void>, end = new AbortController(), given?: Given) => {
    const headers = new Map<string, string>()
    const reservation = budget.open(KEY)
    const held = { reservation, reads: [], turn: NO_TURN }
    const spent: Spent = { waited: 0, bytesRead: 0, added: { bytes: 0, isFirst: false }, held }
    const state = { key: KEY, route: '/api/v1/payouts', signal: end.signal, reservation, spent }
    const set = (name: string, value: string) => void headers.set(name, value)
    const ctx = { state, response: { length: 0 }, status: given?.status ?? 200, set }
    await step(ctx as unknown as Parameters<typeof step>[0], () => next(state)).catch(() => undefined)
    return headers
  }
  const used = async () => (await counter.penalty(`${KEY.org}:${KEY.id}`, 0)).consumedPoints
  return { run, used }
}

/** A read that holds bytes, and gives them back when its request ends. */
const reading =
  (bytes: number, end: () => void) =>
  async ({ reservation, signal }: State): Promise<void> => {
    reservation.add(bytes)
    const read = waitOrAbort(new Promise<void>(() => undefined), signal)
    end()
    await read.finally(() => reservation.add(-bytes))
  }

test.each([
  ['client_gone', 16 * RATE_UNIT_BYTES, 16],
  ['client_gone', 16 * RATE_UNIT_BYTES + 1, 17],
  ['client_gone', 1_000, 1],
  ['client_gone', 0, 1],
  // The client did not choose this.
  ['time_is_up', 16 * RATE_UNIT_BYTES, 1],
] as const)(
  'a request that ends early (%s) with %i bytes reserved for its reads costs %i units',
  async (word, bytes, units) => {
    const { run, used } = created()
    const client = new AbortController()
    await run(
      reading(bytes, () => client.abort(abortReason(word))),
      client,
    )
    expect(await used()).toBe(units)
  },
)

test.each([
  // The client asked for much, and can ask for less.
  ['answer_bytes_of_process', 5],
  ['answer_bytes_of_organization', 5],
  ['answer_bytes_of_key', 5],
  ['large_answers', 5],
  ['elasticsearch_timeout', 1],
] as const)(
  'a request that is refused (%s) after 5 units of bytes have arrived costs %i units',
  async (reason, units) => {
    const { run, used } = created()
    const headers = await run(async state => {
      state.reservation.add(RATE_UNIT_BYTES)
      state.spent.bytesRead = 5 * RATE_UNIT_BYTES
      throw unavailable(reason)
    })
    expect([await used(), unitsOf(5 * RATE_UNIT_BYTES)]).toEqual([units, 5])
    expect(headers.get('RateLimit')).toBe(`"default";r=${RATE.requests - units};t=60`)
  },
)

test('an answer in which payouts are added up costs as many units as they have MiB', async () => {
  const { run, used } = created()
  await run(async ({ spent }) => {
    spent.added = { bytes: 3 * RATE_UNIT_BYTES + 1, isFirst: false }
  })
  expect(await used()).toBe(4)
})

test('an answer 304 costs the payouts that were added up for it, and nothing further if the sum was known', async () => {
  const { run, used } = created()
  const notChanged = (isFirst: boolean) =>
    run(
      async ({ spent }) => {
        spent.added = { bytes: 3 * RATE_UNIT_BYTES, isFirst }
      },
      new AbortController(),
      { status: 304 },
    )
  await notChanged(false)
  // The unit of the request itself: the handler refunds it.
  expect(await used()).toBe(1)
  await notChanged(true)
  expect(await used()).toBe(4)
})

test('a sum that is refused because it is too large, or whose client leaves, costs the payouts read so far', async () => {
  const { run, used } = created()
  const refused = await run(async ({ spent }) => {
    spent.added = { bytes: 5 * RATE_UNIT_BYTES, isFirst: true }
    throw new Refusal('invalid_request', { reason: 'deal_bytes' })
  })
  expect([await used(), refused.get('RateLimit')]).toEqual([5, '"default";r=95;t=60'])
  const client = new AbortController()
  await run(async ({ spent, signal }) => {
    const read = waitOrAbort(new Promise<void>(() => undefined), signal)
    client.abort(abortReason('client_gone'))
    await read.finally(() => {
      spent.added = { bytes: 4 * RATE_UNIT_BYTES, isFirst: false }
    })
  }, client)
  expect(await used()).toBe(9)
  await run(async ({ spent }) => {
    spent.added = { bytes: 4 * RATE_UNIT_BYTES, isFirst: true }
    throw unavailable('elasticsearch_timeout')
  })
  expect(await used()).toBe(10)
})

test('a clock that steps back does not make the window longer', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 2, 5, 8) })
  const { run } = created({ requests: 2, windowSeconds: 60 })
  await run(async () => undefined)
  vi.setSystemTime(Date.UTC(2026, 2, 5, 7))
  const counted = await run(async () => undefined)
  expect(counted.get('RateLimit')).toBe('"default";r=0;t=60')
  const refused = await run(async () => undefined)
  expect([refused.get('RateLimit'), refused.get('Retry-After')]).toEqual(['"default";r=0;t=60', '60'])
})
