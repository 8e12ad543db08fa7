import { expect, onTestFinished, test, vi } from 'vitest'
import type { Client } from '../../../../client/src/index.ts'
import {
  NOTHING_OBSERVED,
  type Observed,
  openSession,
  readDated,
  upToOf,
} from '../../../../explorer/src/state/session.ts'

const TOTALS = { data: [], last_change_id: null, last_sequence: 0 }
const refused = (status: number, code: string, message = 'no') =>
  Response.json({ error: { code, message } }, { status })

/** A session whose requests `answer` answers, and what it observed last. */
const opened = (answer: (request: Request) => Response | Promise<Response>) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  vi.stubGlobal('fetch', async (request: Request) => answer(request))
  const seen = { last: NOTHING_OBSERVED as Observed }
  const session = openSession('https://example.com/api/v1', 'key', observed => {
    seen.last = observed
  })
  const leaving = new AbortController()
  onTestFinished(() => {
    leaving.abort()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })
  const client = session.clientUntil(leaving.signal)
  /** Sends one request, and waits for its first outcome. */
  const read = async (asOf?: string): Promise<Observed> => {
    void (asOf === undefined ? client : client.asOf(asOf)).totals().catch(() => undefined)
    await vi.advanceTimersByTimeAsync(0)
    return seen.last
  }
  return { seen, read, leave: () => leaving.abort(), session }
}

const rejectOnAbort = ({ signal }: Request) =>
  new Promise<Response>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('a connection that fails is observed at once, and until the service answers', async () => {
  let isBroken = true
  const { seen, read } = opened(() =>
    isBroken ? Promise.reject(new TypeError('fetch failed')) : Response.json(TOTALS),
  )
  expect((await read()).busy).toMatchObject({ status: undefined })
  isBroken = false
  await vi.advanceTimersByTimeAsync(1_000)
  expect(seen.last.busy).toBeUndefined()
})

test('a request that the page has left is no broken connection', async () => {
  const { seen, read, leave } = opened(rejectOnAbort)
  await read()
  leave()
  await vi.advanceTimersByTimeAsync(0)
  expect(seen.last.busy).toBeUndefined()
})

test('a connection that the client gives up after its time is observed, too', async () => {
  const time = new AbortController()
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(time.signal)
  onTestFinished(() => void vi.restoreAllMocks())
  const { seen, read } = opened(rejectOnAbort)
  await read()
  time.abort(new DOMException('too long', 'TimeoutError'))
  await vi.advanceTimersByTimeAsync(0)
  expect(seen.last.busy).toMatchObject({ status: undefined })
})

test('a key is unknown if the API says so, not a proxy', async () => {
  expect((await opened(() => refused(401, 'unauthorized')).read()).isUnknownKey).toBe(true)
  expect((await opened(() => new Response('<html>', { status: 401 })).read()).isUnknownKey).toBe(false)
})

test('a moment is refused if the API says so of it, not of the request', async () => {
  const momentsAfter = async (answer: Response) => [...(await opened(() => answer).read('payout_1')).moments]
  expect(await momentsAfter(refused(400, 'invalid_request', '`as_of` must be an instant.'))).toEqual([
    ['payout_1', false],
  ])
  expect(await momentsAfter(refused(400, 'invalid_request', 'Unknown query parameter.'))).toEqual([])
  expect(await momentsAfter(new Response('<html>', { status: 400 }))).toEqual([])
  expect(await momentsAfter(Response.json(TOTALS))).toEqual([['payout_1', true]])
})

test('a page is as old as the oldest of the answers that it shows, whatever was answered since', async () => {
  let time = '08:30'
  const page = (id: string, has_more: boolean) => ({ data: [{ id }], has_more, next_cursor: id })
  const { seen, session } = opened(({ url }) => {
    const isFirst = url.includes('/reps') && !url.includes('starting_after')
    const body = url.includes('/totals') ? { data: TOTALS } : page(isFirst ? 'rep_1' : 'rep_2', isFirst)
    const answer = Response.json(body, { headers: { 'Projection-Time': `2026-02-01T${time}:00.000Z` } })
    // Each answer is a minute younger than the one before.
    time = `08:${Number(time.slice(3)) + 1}`
    return answer
  })
  /** Reads a value, and draws it. */
  const drawn = async (read: (client: Client) => Promise<unknown>): Promise<() => void> => {
    const { upTo } = await readDated(session.client, read)
    return session.draw(upTo ?? '')
  }
  await session.client.totals()
  expect(seen.last.upTo).toBeUndefined()
  const endTotals = await drawn(client => client.totals())
  const endReps = await drawn(client => Array.fromAsync(client.reps()))
  expect(seen.last.upTo).toBe('2026-02-01T08:31:00.000Z')
  endReps()
  // Another filter: only this list is read again.
  const endPayouts = await drawn(client => Array.fromAsync(client.payouts({ repId: 'rep_1' })))
  expect(seen.last.upTo).toBe('2026-02-01T08:31:00.000Z')
  endTotals()
  expect(seen.last.upTo).toBe('2026-02-01T08:34:00.000Z')
  endPayouts()
  // A list of two pages is as old as its first one.
  await drawn(client => Array.fromAsync(client.asOf('rep_2.1').reps()))
  expect(seen.last.upTo).toBe('2026-02-01T08:35:00.000Z')
  expect((await readDated(session.client, async () => 'known')).upTo).toBeUndefined()
})

test('a value that was read with no request is as old as it was, or as the changes that it was made of', () => {
  const [first, second, third] = ['2026-02-01T08:30:00.000Z', '2026-02-01T08:31:00.000Z', '2026-02-01T08:32:00.000Z']
  expect(upToOf({ upTo: undefined }, first, second)).toBe(second)
  expect(upToOf({ upTo: undefined }, second, first)).toBe(second)
  expect(upToOf({ upTo: undefined }, first, undefined)).toBe(first)
  expect(upToOf({ upTo: undefined }, undefined, first)).toBeUndefined()
  expect(upToOf({ upTo: second }, first, third)).toBe(second)
})
