/** Followers of hundreds of organizations that begin to wait for a change at the same moment, as after a restart. */
import { expect, test } from 'vitest'
import { CONNECTIONS_MAX, WAITS } from '../../api/limits.ts'
import { ANSWERS_HELD_MAX, SMALL_ANSWER_BYTES, SMALL_ANSWERS_RESERVE } from '../../core/store/limits.ts'
import { type Answer, listed, type ServedApi, serveApi, useStore } from '../support/api.ts'
import { patient } from '../support/in-time.ts'
import { eventually, fileScope } from '../support/scope.ts'

const FOLLOWERS = 700
const PARTITIONS = 6
/** Bytes left for answers: enough for the cursor of a wait and for its search. */
const LITTLE = 128 * 1024
const scope = fileScope()

const orgOf = (n: number): string => `org_${n}`
/** Each organization has one payout; the offset of each is below the number of organizations. */
const shared = (async () => {
  const store = await useStore(scope, { partitions: PARTITIONS })
  const keys = Array.from({ length: FOLLOWERS }, (_, n) => {
    store.payout(orgOf(n), n, { id: `payout_${n}` })
    return store.putKey(orgOf(n))
  })
  const publishTo = async (position: number): Promise<void> => {
    await store.flush()
    for (let n = 0; n < PARTITIONS; n++) store.putPosition(store.generation, n, position, 1_700_000_000_000 + position)
    await store.flush()
  }
  await publishTo(FOLLOWERS)
  return { store, keys, publishTo }
})()

const untilWaiting = ({ usage }: ServedApi, count: number) =>
  eventually(() => expect(usage().waits_for_changes.waiting).toBe(count), { every: 10 })

const statusesOf = (answers: readonly Answer[]): Record<number, number> => {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

test('a process has room for a follower of each of 700 organizations', () => {
  expect(FOLLOWERS).toBeLessThan(WAITS.permits)
  expect(FOLLOWERS).toBeLessThan(CONNECTIONS_MAX)
})

test('followers of 700 organizations begin to wait at the same moment: all wait, and each gets the change of its own', async t => {
  const { store, keys, publishTo } = await shared
  const api = await serveApi(t, store.prefix)
  const ask = patient(api)
  /** On a busy machine the minute of a wait may be up before the change: then a follower waits again. */
  const followOne = (key: string, n: number) =>
    eventually(async () => {
      const answer = await ask(`/changes?wait=60&starting_after=payout_${n}`, key)
      expect(answer.text).not.toContain('"data":[]')
      return answer
    })
  const follow = keys.map(followOne)
  await untilWaiting(api, FOLLOWERS)
  // A request that waits holds no bytes of answers, no read and no search.
  expect(api.budget.held()).toBe(0)
  expect(api.usage()).toMatchObject({ requests: { held: FOLLOWERS }, reads: { held: 0, waiting: 0 } })
  for (let n = 0; n < FOLLOWERS; n++)
    store.payout(orgOf(n), FOLLOWERS + n, { id: `payout_next${n}`, period: 'period_2' })
  await publishTo(2 * FOLLOWERS)
  const answers = await Promise.all(follow)
  expect(statusesOf(answers)).toEqual({ 200: FOLLOWERS })
  expect(answers.map(answer => listed(answer).data.map(({ id }) => id))).toEqual(
    keys.map((_, n) => [`payout_next${n}`]),
  )
})

test('a wait begins and ends while the process has little room for answers', async t => {
  const { store, keys, publishTo } = await shared
  const position = 2 * FOLLOWERS + 1
  store.payout(orgOf(0), position - 1, { id: 'payout_last', period: 'period_3' })
  await publishTo(position)
  const api = await serveApi(t, store.prefix)
  // The last bytes are for small answers only.
  const small = SMALL_ANSWERS_RESERVE / SMALL_ANSWER_BYTES
  api.budget.open(undefined).add(ANSWERS_HELD_MAX - SMALL_ANSWERS_RESERVE)
  for (let n = 1; n < small; n++) api.budget.open(undefined).add(SMALL_ANSWER_BYTES)
  api.budget.open(undefined).add(SMALL_ANSWER_BYTES - LITTLE)
  const answer = await api.ask('/changes?wait=1&starting_after=payout_last', keys[0])
  expect([answer.status, answer.text]).toEqual([200, '{"data":[],"has_more":false,"next_cursor":"payout_last"}'])
})
