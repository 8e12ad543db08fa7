import { expect, onTestFinished, test, vi } from 'vitest'
import { type Change, type Client, RefusedError } from '../../../../client/src/index.ts'
import { CHANGES_KEPT, createFeed, type LiveState, PAUSE_MS, ROUND_MS } from '../../../../explorer/src/state/feed.ts'

type Named = { readonly id: string; readonly name: string }

/** A service with one live generation, which another one may replace, and a page that follows its changes. */
const started = (first: readonly Named[] = []) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let served = first
  let refused: RefusedError | undefined
  const waiting = new Set<() => void>()
  const refusal = (status: number, code: string) =>
    new RefusedError(new Response(null, { status }), { code, message: 'no' })
  const after = (cursor: string | null): Change[] => {
    if (refused !== undefined) throw refused
    const at = served.findIndex(({ id }) => id === cursor)
    if (cursor !== null && at < 0) throw refusal(400, 'invalid_cursor')
    return served.slice(at + 1).map(({ id, name }) => ({ id, kind: 'reps', record: { name } }) as unknown as Change)
  }
  let answers = 0
  const clientUntil = (signal: AbortSignal, onTime = (_: string): void => undefined): Client =>
    ({
      noting: (onTime: (time: string) => void) => clientUntil(signal, onTime),
      totals: async () => {
        onTime(`answer ${++answers}`)
        return { last_change_id: served.at(-1)?.id ?? null }
      },
      changes: async function* ({ startingAfter = null }: { startingAfter?: string | null }) {
        onTime(`answer ${++answers}`)
        yield* after(startingAfter)
      },
      follow: async function* ({ startingAfter = null }: { startingAfter?: string | null }) {
        for (let cursor = startingAfter; ; ) {
          const page = after(cursor)
          onTime(`answer ${++answers}`)
          yield* page
          cursor = page.at(-1)?.id ?? cursor
          const { promise, resolve, reject } = Promise.withResolvers<void>()
          waiting.add(resolve)
          signal.addEventListener('abort', () => reject(signal.reason))
          await promise
        }
      },
    }) as unknown as Client

  const seen = { live: [] as LiveState['state'][], latest: [] as readonly string[], rounds: 0 }
  const times: (string | undefined)[] = []
  const feed = createFeed(clientUntil, {
    onLive: ({ state }) => void seen.live.push(state),
    onLatest: (changes, upTo) => {
      times.push(upTo)
      seen.latest = changes.map(change => `${change.id} ${change.kind === 'reps' && change.record.name}`)
    },
    onRound: () => void seen.rounds++,
  })
  const serve = async (changes: readonly Named[]): Promise<void> => {
    served = changes
    for (const wake of waiting) wake()
    waiting.clear()
    await vi.advanceTimersByTimeAsync(0)
  }
  const follow = async (): Promise<AbortController> => {
    const stopping = new AbortController()
    onTestFinished(() => stopping.abort())
    void feed.follow(stopping.signal)
    await vi.advanceTimersByTimeAsync(0)
    return stopping
  }
  const publish = (change: Named): Promise<void> => serve([...served, change])
  const refuse = (status?: number, code = 'unknown'): void => {
    refused = status === undefined ? undefined : refusal(status, code)
  }
  return { seen, times, serve, publish, follow, refuse, pass: (time: number) => vi.advanceTimersByTimeAsync(time) }
}

const ada = (at: number): Named => ({ id: `rep_${at}.1`, name: 'Ada' })
const [one, two, three] = [ada(1), ada(2), ada(3)] as const

test('the texts of another generation take the place of the former ones, though no change came', async () => {
  const { seen, serve, publish, follow, pass } = started([one])
  await follow()
  await publish(two)
  expect(seen).toEqual({ live: ['on'], latest: ['rep_2.1 Ada'], rounds: 1 })
  await serve([one, two].map(({ id }) => ({ id, name: 'redacted' })))
  await pass(ROUND_MS)
  expect(seen).toEqual({ live: ['on', 'on'], latest: ['rep_2.1 redacted'], rounds: 2 })
})

test('the changes come with the time of the answer that brought them', async () => {
  const { times, publish, follow, pass } = started([one])
  await follow()
  await publish(two)
  await publish(three)
  expect(times).toEqual(['answer 1', 'answer 3', 'answer 4'])
  await pass(ROUND_MS)
  expect(times.slice(3)).toEqual(['answer 5'])
})

test('a page without a change reads again in each round', async () => {
  const { seen, follow, pass } = started()
  await follow()
  await pass(3 * ROUND_MS)
  expect(seen.rounds).toBe(4)
})

test('when other rules leave out the last change, the page begins anew, and shows those after it', async () => {
  const { seen, serve, publish, follow, pass } = started([one])
  await follow()
  await publish(two)
  await serve([one])
  expect(seen).toEqual({ live: ['on', 'again'], latest: [], rounds: 1 })
  await pass(PAUSE_MS)
  await publish(three)
  expect(seen).toEqual({ live: ['on', 'again', 'on'], latest: ['rep_3.1 Ada'], rounds: 2 })
})

test('when other rules leave out the change before the first one, too', async () => {
  const { seen, serve, publish, follow, pass } = started([one, two])
  await follow()
  await publish(three)
  await serve([one, three])
  await pass(ROUND_MS)
  expect(seen.latest).toEqual([])
  await pass(PAUSE_MS)
  await publish({ id: 'rep_4.1', name: 'Eve' })
  expect(seen.latest).toEqual(['rep_4.1 Eve'])
})

test('a page that showed a moment meanwhile leaves no change out', async () => {
  const { seen, publish, follow } = started([one])
  const stopping = await follow()
  await publish(two)
  stopping.abort()
  await publish(three)
  expect(seen.latest).toEqual(['rep_2.1 Ada'])
  await follow()
  expect(seen.latest).toEqual(['rep_3.1 Ada', 'rep_2.1 Ada'])
})

test('of many changes the newest are kept, in a later round too', async () => {
  const { seen, serve, follow, pass } = started()
  await follow()
  const many = Array.from({ length: CHANGES_KEPT + 5 }, (_, at) => ada(at))
  const newest = many.map(({ id, name }) => `${id} ${name}`).toReversed()
  await serve(many)
  expect(seen.latest).toEqual(newest.slice(0, CHANGES_KEPT))
  await pass(ROUND_MS)
  expect(seen).toMatchObject({ latest: newest.slice(0, CHANGES_KEPT), rounds: 2 })
})

test('a key that may no longer follow is said to be refused: it reads again in each round, and asks for no change', async () => {
  const { seen, refuse, publish, follow, pass } = started([one])
  await follow()
  refuse(403, 'forbidden')
  await publish(two)
  refuse()
  await pass(3 * ROUND_MS)
  expect(seen).toEqual({ live: ['on', 'refused'], latest: [], rounds: 4 })
})

test('a page that is left, or shows a moment, begins no round', async () => {
  const { seen, refuse, follow, pass } = started([one])
  refuse(403, 'forbidden')
  const stopping = await follow()
  await pass(ROUND_MS)
  stopping.abort()
  await pass(2 * ROUND_MS)
  expect(seen).toEqual({ live: ['on', 'refused'], latest: [], rounds: 2 })
})

test.for([401, 403, 400])(
  'a %i of a proxy ends nothing: the page asks again, and leaves no change out',
  async status => {
    const { seen, refuse, publish, follow, pass } = started([one])
    await follow()
    await publish(two)
    refuse(status)
    await publish(three)
    expect(seen.live).toEqual(['on', 'again'])
    refuse()
    await pass(PAUSE_MS)
    expect(seen).toEqual({ live: ['on', 'again', 'on'], latest: ['rep_3.1 Ada', 'rep_2.1 Ada'], rounds: 2 })
  },
)
