/** The rate limit of several API processes, counted in a real Redis. */
import { describe, expect, test } from 'vitest'
import { createRedisCounter, type Rate } from '../../api/access/limit-rate.ts'
import { type Answer, serveApi, useStore } from '../support/api.ts'
import { startApi } from '../support/processes.ts'
import { redisProgram } from '../support/programs.ts'
import { createRedis } from '../support/redis.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  await store.publish('org_shared', 2)
  return store
})()

const statuses = (answers: readonly Answer[]): Record<number, number> => {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
const left = ({ headers }: Answer): number => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])

/** An API that counts in a Redis, and its reports on that Redis. */
const serve = async (test: Scope, url: string, rate: Rate) => {
  const { prefix } = await shared
  const told: boolean[] = []
  const refusals: string[] = []
  let alone = 0
  const counter = await createRedisCounter(url, `${prefix}-rate`, rate, () => performance.now(), {
    onSharedChange: (counts, refusal) => {
      told.push(counts)
      if (refusal !== undefined) refusals.push(refusal)
    },
    onLocalCount: () => void alone++,
  })
  test.onTestFinished(async () => counter.stop())
  const api = await serveApi(test, prefix, { rate, counter })
  return { ...api, told, refusals, alone: () => alone }
}

/** Asks again if Redis was too slow for a request, as on a busy machine. @param alone counts such requests */
const unlessAlone = <Result>(alone: () => unknown, ask: () => Promise<Result>): Promise<Result> =>
  eventually(async () => {
    const before = alone()
    const result = await ask()
    expect(alone()).toEqual(before)
    return result
  })

describe.skipIf(redisProgram === undefined)('with a Redis', () => {
  test('all processes together admit exactly the limit of requests per key', async t => {
    const redis = await createRedis(t)
    await redis.start()
    const rate = { requests: 30, windowSeconds: 3_600 }
    const apis = await Promise.all([1, 2, 3].map(() => serve(t, redis.url, rate)))
    for (const { told } of apis) await eventually(() => expect(told.at(-1)).toBe(true))
    const askTogether = async (): Promise<readonly Answer[]> => {
      const key = await (await shared).key('org_shared')
      return Promise.all(Array.from({ length: 20 }, () => apis.map(({ ask }) => ask('/payouts', key))).flat())
    }
    const countedAlone = () => apis.map(({ alone }) => alone())
    for (let round = 0; round < 2; round++) {
      const answers = await unlessAlone(countedAlone, askTogether)
      expect(statuses(answers)).toEqual({ 200: 30, 429: 30 })
      for (const { status, headers } of answers) {
        const wait = headers.get('retry-after')
        if (status === 429) expect(wait).toMatch(/^[1-9]\d*$/)
        else expect(wait).toBeNull()
      }
    }
  })

  test('a large answer is charged to all processes', async t => {
    const redis = await createRedis(t)
    await redis.start()
    const { publish, payout, key: keyOf } = await shared
    const lines = Array.from({ length: 4_000 }, (_, n) => ({
      id: `line_${n}`,
      amount: '1',
      description: 'x'.repeat(900),
    }))
    payout('org_large', 0, { id: 'payout_large', lines })
    await publish('org_large', 1)
    const [first, second] = await Promise.all(
      [1, 2].map(() => serve(t, redis.url, { requests: 20, windowSeconds: 3_600 })),
    )
    await eventually(() => expect([first?.told.at(-1), second?.told.at(-1)]).toEqual([true, true]))
    const [key, large] = await unlessAlone(
      () => first?.alone(),
      async () => {
        const key = await keyOf('org_large')
        return [key, await first?.ask('/payouts/payout_large', key)]
      },
    )
    const cost = Math.ceil((large?.text.length ?? 0) / 2 ** 20)
    expect([large?.status, cost > 3, large && left(large)]).toEqual([200, true, 20 - cost])
    await eventually(async () => {
      const answer = await second?.ask('/nowhere', key)
      expect(answer && left(answer)).toBeLessThan(20 - cost)
    })
  })

  test('a 304 is given back to all processes', async t => {
    const redis = await createRedis(t)
    await redis.start()
    const [first, second] = await Promise.all(
      [1, 2].map(() => serve(t, redis.url, { requests: 5, windowSeconds: 3_600 })),
    )
    await eventually(() => expect([first?.told.at(-1), second?.told.at(-1)]).toEqual([true, true]))
    const countedAlone = () => [first?.alone(), second?.alone()]
    const answers = await unlessAlone(countedAlone, async () => {
      const key = await (await shared).key('org_shared')
      const page = await first?.ask('/payouts', key)
      const same = { headers: { 'if-none-match': page?.headers.get('etag') ?? '' } }
      const others: (Answer | undefined)[] = []
      for (let time = 0; time < 10; time++)
        others.push(await (time % 2 === 0 ? first : second)?.ask('/payouts', key, same))
      const any = await second?.ask('/payouts', key, { headers: { 'if-none-match': '*' } })
      return [page, ...others, any].map(answer => [answer?.status, answer && left(answer)])
    })
    expect(answers).toEqual([[200, 4], ...Array.from({ length: 10 }, () => [304, 4]), [304, 3]])
  })

  test.each(['killed', 'frozen'] as const)(
    'that is %s each process counts alone and logs that once, nobody is refused, and later they share again',
    async sickness => {
      const redis = await createRedis(scope)
      await redis.start()
      const rate = { requests: 1_000, windowSeconds: 3_600 }
      const { ask, told, alone } = await serve(scope, redis.url, rate)
      const { key: keyOf } = await shared
      await eventually(() => expect(told.at(-1)).toBe(true))
      const key = await unlessAlone(alone, async () => {
        const key = await keyOf('org_shared')
        expect(left(await ask('/payouts', key))).toBe(999)
        return key
      })
      const before = { alone: alone(), told: told.length }
      if (sickness === 'killed') await redis.kill()
      else redis.freeze()
      const answers: Answer[] = []
      for (let time = 0; time < 40; time++) answers.push(await ask('/payouts', key))
      expect(statuses(answers)).toEqual({ 200: 40 })
      expect(told.slice(before.told - 1)).toEqual([true, false])
      expect(alone() - before.alone).toBe(40)
      expect(answers.map(left)).toEqual(Array.from({ length: 40 }, (_, time) => 999 - time))
      if (sickness === 'killed') await redis.start()
      else redis.thaw()
      await eventually(async () => {
        const counted = alone()
        expect((await ask('/payouts', key)).status).toBe(200)
        expect(alone()).toBe(counted)
      })
      // On a busy machine an answer may be too late once more.
      expect(told.slice(before.told - 1, before.told + 2)).toEqual([true, false, true])
      expect(told).toEqual(told.map((_, place) => place % 2 === 0))
      expect(told.at(-1)).toBe(true)
    },
  )

  test('that became a replica each process counts alone, and shares again once there is a master', async t => {
    const redis = await createRedis(t)
    await redis.start()
    const { ask, told, refusals, alone } = await serve(t, redis.url, { requests: 1_000, windowSeconds: 3_600 })
    const { key: keyOf } = await shared
    await eventually(() => expect(told.at(-1)).toBe(true))
    const key = await keyOf('org_shared')
    await redis.becomeReplica()
    for (let time = 0; time < 40; time++) expect((await ask('/payouts', key)).status).toBe(200)
    expect([told.at(-1), [...new Set(refusals)]]).toEqual([false, ['READONLY']])
    await redis.becomeMaster()
    await eventually(async () => {
      const counted = alone()
      expect((await ask('/payouts', key)).status).toBe(200)
      expect(alone()).toBe(counted)
    })
    expect(told.at(-1)).toBe(true)
  })

  test('that starts later is used; until then the API logs that it is missing, without its address', async t => {
    const redis = await createRedis(t)
    const { prefix } = await shared
    const url = redis.url.replace('redis://', 'redis://CANARY:CANARY@')
    const api = await startApi(t, prefix, { settings: { REDIS_URL: url } })
    const metric = async () =>
      /^api_rate_shared (\d)$/m.exec(await (await fetch(`${api.adminUrl}/metrics`)).text())?.[1]
    const warned = () => api.lines().filter(({ level, msg }) => level === 40 && String(msg).includes('Redis'))
    await eventually(() => expect(warned()).toHaveLength(1))
    expect(await metric()).toBe('0')
    expect(api.log()).not.toContain('CANARY')
    expect(await api.stop()).toEqual({ code: 0, signal: null })
  })
})
