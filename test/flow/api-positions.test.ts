import { describe, expect, test } from 'vitest'
import { partitionOf } from '../../schemas/partition.ts'
import { listed, recorded, refusedWith, serveApi, useStore } from '../support/api.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope, { partitions: 64 })
  return { store, ...(await serveApi(scope, store.prefix)) }
})()

/** payout_1 at 10, superseded by payout_2 at 20; a rep renamed at 20; a payment at 10, its void at 20. */
const setUp = async (from = shared) => {
  const { store, ask } = await from
  const org = store.newOrg()
  store.payout(org, 10, { id: 'payout_1', amount: '1.00' }, { until: 20, by: 'payout_2' })
  store.payout(org, 20, { id: 'payout_2', amount: '2.00', supersedes: 'payout_1' })
  store.rep(org, 'rep_1', [
    { seq: 10, name: 'Before' },
    { seq: 20, name: 'After' },
  ])
  store.payroll(org, 10, 'payroll_1', '1.00')
  store.payroll(org, 20, 'payroll_2', '-1.00', 'payroll_1')
  const key = await store.key(org)
  const idsOf = async (path: string) => listed(await ask(path, key)).data.map(({ id }) => id)
  const publish = (position: number, time?: number) => store.publish(org, position, time)
  return { store, org, key, ask, idsOf, publish }
}

describe('at the published position', () => {
  test('records at the position or beyond are invisible everywhere', async () => {
    const { key, ask, idsOf, publish } = await setUp()
    await publish(10)
    for (const path of ['/reps', '/payouts', '/payroll_files']) expect(await idsOf(path), path).toEqual([])
    for (const path of ['/reps/rep_1', '/payouts/payout_1', '/statements/payout_1', '/payroll_files/payroll_1']) {
      expect((await ask(path, key)).status, path).toBe(404)
    }
    expect((await ask('/payouts?starting_after=payout_1', key)).status).toBe(400)
    expect((await ask('/reps?starting_after=rep_1', key)).status).toBe(400)
  })

  test('a record superseded beyond the position is current, and shown as current', async () => {
    const { key, ask, idsOf, publish } = await setUp()
    await publish(20)
    expect(await idsOf('/payouts')).toEqual(['payout_1'])
    expect(await idsOf('/payroll_files')).toEqual(['payroll_1'])
    expect(recorded(await ask('/payouts/payout_1', key)).superseded_by_id).toBeNull()
    expect(recorded(await ask('/statements/payout_1', key)).superseded_by_id).toBeNull()
    expect((await ask('/payouts/payout_2', key)).status).toBe(404)
    expect(recorded(await ask('/reps/rep_1', key)).name).toBe('Before')
    expect(listed(await ask('/reps', key)).data.map(({ name }) => name)).toEqual(['Before'])
  })

  test('a superseded record and its replacement change places in one step', async () => {
    const { key, ask, idsOf, publish } = await setUp()
    await publish(21)
    expect(await idsOf('/payouts')).toEqual(['payout_2'])
    expect(recorded(await ask('/payouts/payout_1', key)).superseded_by_id).toBe('payout_2')
    expect(recorded(await ask('/payouts/payout_2', key))).toMatchObject({
      superseded_by_id: null,
      supersedes_id: 'payout_1',
    })
    expect(recorded(await ask('/statements/payout_1', key)).superseded_by_id).toBe('payout_2')
    expect(listed(await ask('/reps', key)).data.map(({ name }) => name)).toEqual(['After'])
    expect(recorded(await ask('/reps/rep_1', key)).name).toBe('After')
    expect(await idsOf('/payroll_files')).toEqual(['payroll_1', 'payroll_2'])
  })

  test('a page that starts after a superseded record continues behind it', async () => {
    const { store, idsOf, org, publish } = await setUp()
    store.payout(org, 15, { id: 'payout_3', period: 'period_2' })
    await publish(20)
    expect(await idsOf('/payouts?limit=1')).toEqual(['payout_1'])
    await publish(21)
    expect(await idsOf('/payouts?starting_after=payout_1')).toEqual(['payout_3', 'payout_2'])
  })

  test('a position that goes back gives a 503 until it has recovered', async () => {
    const { key, ask, publish } = await setUp()
    await publish(21)
    expect((await ask('/payouts', key)).status).toBe(200)
    await publish(20)
    expect((await ask('/payouts', key)).status).toBe(503)
    expect((await ask('/payouts/payout_1', key)).status).toBe(503)
    await publish(21)
    expect((await ask('/payouts', key)).status).toBe(200)
  })
})

describe('Projection-Time', () => {
  test('is the time of the organization’s partition, and never goes back', async () => {
    const { key, ask, publish } = await setUp()
    await publish(21, Date.parse('2026-02-02T07:15:05.120Z'))
    const timeOf = async (path: string) => (await ask(path, key)).headers.get('projection-time')
    for (const path of ['/payouts', '/payouts/payout_1', '/payouts?starting_after=payout_2', '/periods']) {
      expect(await timeOf(path), path).toBe('2026-02-02T07:15:05.120Z')
    }
    await publish(21, Date.parse('2026-02-02T07:15:06.000Z'))
    expect(await timeOf('/payouts')).toBe('2026-02-02T07:15:06.000Z')
    await publish(22, Date.parse('2026-02-02T07:15:01.000Z'))
    expect(await timeOf('/payouts')).toBe('2026-02-02T07:15:06.000Z')
  })

  test('is the oldest of all partitions for an organization without events', async scope => {
    const store = await useStore(scope, { partitions: 3 })
    const { ask } = await serveApi(scope, store.prefix)
    const org = store.newOrg()
    const key = await store.key(org)
    const own = partitionOf(org, 3)
    const times = ['2026-02-02T07:15:01.000Z', '2026-02-02T07:15:02.000Z', '2026-02-02T07:15:03.000Z']
    for (const [partition, time] of times.entries()) store.putPosition('g1', partition, 5, Date.parse(time))
    store.putPosition('g1', own, 5, Date.parse('2026-02-02T07:15:09.000Z'))
    await store.flush()
    const timeOf = async () => (await ask('/payouts', key)).headers.get('projection-time')
    expect(await timeOf()).toBe(times[own === 0 ? 1 : 0])
    store.rep(org, 'rep_1', [{ seq: 4, name: 'First' }])
    await store.flush()
    expect(await timeOf()).toBe('2026-02-02T07:15:09.000Z')
  })

  test('is only on answers and on a 304', async () => {
    const { key, ask, publish } = await setUp()
    await publish(21)
    expect((await ask('/payouts', key, { headers: { 'if-none-match': '*' } })).headers.has('projection-time')).toBe(
      true,
    )
    for (const path of ['/payouts/payout_9', '/payouts?limit=0', '/payouts?starting_after=payout_9', '/nowhere']) {
      const { headers } = await ask(path, key)
      expect([headers.has('projection-time'), headers.has('etag')], path).toEqual([false, false])
    }
  })
})

describe('the control index', () => {
  test('with a missing document gives a 503 for every read, and never an empty organization', async scope => {
    const store = await useStore(scope, { partitions: 2 })
    const { org, key, publish } = await setUp(serveApi(scope, store.prefix).then(api => ({ store, ...api })))
    await publish(21)
    for (const id of [`position:g1:${partitionOf(org, 2)}`, 'generation:g1', 'live']) {
      await store.call('DELETE', `/${store.prefix}-control/_doc/${id}`)
      const { ask } = await serveApi(scope, store.prefix)
      for (const path of ['/payouts', '/payouts/payout_1', '/payouts?starting_after=payout_1', '/reps/rep_1']) {
        const answer = await ask(path, key)
        expect([answer.status, refusedWith(answer).code], `${id} ${path}`).toEqual([503, 'unavailable'])
        expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
      }
    }
  })

  test('moves every request after a swap to the new generation, including cursors', async scope => {
    const store = await useStore(scope, { partitions: 2 })
    const { org, key, ask, idsOf, publish } = await setUp(
      serveApi(scope, store.prefix).then(api => ({ store, ...api })),
    )
    await publish(21)
    expect(await idsOf('/payouts')).toEqual(['payout_2'])
    const next = await useStore(scope, { prefix: store.prefix, generation: 'g2', partitions: 2 })
    next.payout(org, 10, { id: 'payout_1', amount: '1.00' })
    await next.publish(org, 21)
    await next.makeLive()
    expect(await idsOf('/payouts')).toEqual(['payout_1'])
    expect((await ask('/payouts?starting_after=payout_2', key)).status).toBe(400)
  })
})
