/** Several clients request answers so large that few of them fit in the share of one key. */
import { expect, test } from 'vitest'
import { LARGE_ANSWERS_OF_ORGANIZATION } from '../../api/limits.ts'
import { serveApi, useStore } from '../support/api.ts'
import { loggedBy, wasLate } from '../support/in-time.ts'
import { eventually, fileScope } from '../support/scope.ts'

const org = 'org_large'
const LINES = 10_000
const lines = (character: string, length = 600) =>
  Array.from({ length: LINES }, (_, n) => ({ id: `line_${n}`, amount: '0', description: character.repeat(length) }))

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  store.payout(org, 0, { id: 'payout_0', lines: lines('x') }, { until: 1, by: 'payout_1' })
  await store.flush()
  store.payout(org, 1, { id: 'payout_1', lines: lines('y') })
  await store.publish(org, 2)
  return store
})()

/** Clients without a pause between requests. @returns the statuses in the order of the answers */
const askWithoutPause = async (clients: number, requests: number, ask: () => Promise<number>) => {
  const statuses: number[] = []
  let asked = 0
  const client = async (): Promise<void> => {
    while (asked++ < requests) statuses.push(await ask())
  }
  await Promise.all(Array.from({ length: clients }, client))
  return statuses
}

/** The largest number of consecutive refusals. */
const longestRefusal = (statuses: readonly number[]): number =>
  Math.max(
    ...statuses
      .join(' ')
      .split('200')
      .map(refused => (refused.match(/503/g) ?? []).length),
  )

test.each([
  ['histories of one key', '/payouts/payout_0/history?starting_after=payout_0', 1],
  ['histories of several keys of one organization', '/payouts/payout_0/history?starting_after=payout_0', 4],
  ['pages of changes of one key', '/changes', 1],
  ['lists of one key', '/payouts', 1],
  ['statements of one key', '/statements/payout_1', 1],
])(
  'with several clients that request large %s without a pause, at least one of each four requests is answered',
  async (_, path, keysUsed) => {
    const store = await shared
    const api = await serveApi(scope, store.prefix)
    const { port, usage } = api
    const keys = await Promise.all(Array.from({ length: keysUsed }, () => store.key(org)))
    let [turn, slowest] = [0, 0]
    const ask = async () => {
      const headers = { authorization: `Bearer ${keys[turn++ % keys.length]}` }
      const began = performance.now()
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, { headers })
      const bytes = (await answer.arrayBuffer()).byteLength
      if (answer.status === 200) expect(bytes).toBeGreaterThan(LINES * 600)
      // The others wait for this one.
      if (answer.status === 200 || wasLate(api, answer.headers.get('x-request-id')))
        slowest = Math.max(slowest, performance.now() - began)
      return answer.status
    }
    // The first answer of a process takes several times as long: nothing is compiled yet.
    await eventually(async () => expect(await ask()).toBe(200))
    // Its bytes count until the API knows that it is delivered, which may be after the client has read it.
    await eventually(() => expect(usage().requests.held).toBe(0))
    slowest = 0
    const statuses = await askWithoutPause(4, 24, ask)
    expect(new Set(statuses)).toContain(200)
    // A request waits for its turn only so long: while a slow machine makes one answer, the others are refused again.
    const waits = Math.max(1, Math.ceil(slowest / LARGE_ANSWERS_OF_ORGANIZATION.waitMax))
    const reasons = loggedBy(api).flatMap(({ because }) => because ?? [])
    expect(longestRefusal(statuses), `${statuses}, the slowest ${slowest} ms, ${reasons}`).toBeLessThan(4 * waits)
    expect(usage()).toMatchObject({ reads: { held: 0, waiting: 0 }, large_answers: { held: 0, waiting: 0 } })
  },
)

test('a page of large records is answered after a page of small ones, also with filters', async () => {
  const store = await shared
  const mixed = 'org_mixed'
  for (let n = 0; n < 200; n++) store.payout(mixed, n, { id: `payout_${n}`, rep: 'rep_small' })
  // Together these take more than one key may hold, and less than the longest answer that was once collected.
  for (let n = 200; n < 207; n++) {
    store.payout(mixed, n, { id: `payout_${n}`, rep: 'rep_big', lines: lines('z', 680) })
    await store.flush()
  }
  await store.publish(mixed, 207)
  const key = await store.key(mixed)
  const { port } = await serveApi(scope, store.prefix)
  const ask = async (query: string) => {
    const headers = { authorization: `Bearer ${key}` }
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/payouts?limit=200&${query}`, { headers })
    const { data = [] }: { data?: { id: string }[] } = JSON.parse(await answer.text())
    return [answer.status, data.at(0)?.id, data.length]
  }
  expect(await ask('rep_id=rep_small')).toEqual([200, 'payout_0', 200])
  expect(await ask('rep_id=rep_big')).toEqual([200, 'payout_200', 2])
  expect(await ask('')).toEqual([200, 'payout_0', 200])
  expect(await ask('starting_after=payout_199')).toEqual([200, 'payout_200', 2])
})
