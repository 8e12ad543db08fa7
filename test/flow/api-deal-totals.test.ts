/** The totals of a deal: the sums of its lines in current payouts. */
import { describe, expect, test } from 'vitest'
import { RATE_UNIT_BYTES } from '../../schemas/limits.ts'
import { serveApi, useStore } from '../support/api.ts'
import type { Item } from '../support/model.ts'
import { createRandom } from '../support/random.ts'
import { fileScope } from '../support/scope.ts'
import { lineTotalsOf } from '../support/totals.ts'

const org = 'org_deals'
const other = 'org_deals_other'
const DEALS = ['deal_1', 'deal_11', 'deal_2']
const REPS = ['rep_1', 'rep_2', 'rep_3']
const PERIODS = ['period_1', 'period_2']
const TURNS = 5

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  const random = createRandom(7)
  const pairs = REPS.flatMap(rep => PERIODS.map(period => ({ rep, period })))
  const amount = () =>
    `${random.chance(0.3) ? '-' : ''}${1 + random.below(9_000)}.${random.pick(['10', '075', '5000'])}`
  const ids: string[] = []
  for (let seq = 0; seq < TURNS * pairs.length; seq++) {
    const pair = pairs[seq % pairs.length]
    const lines = Array.from({ length: random.below(5) }, (_, at) => ({
      id: `line_${at}`,
      amount: amount(),
      category: random.pick(['earned', 'recovered', 'adjusted'] as const),
      // A text that looks like the end of a line of a deal.
      description: random.pick(['', '","deal_id":"deal_1"}', '{"id":"line_9"', '},{"id":"line_']),
      ...(random.chance(0.8) && { deal: random.pick(DEALS) }),
    }))
    const next = seq + pairs.length
    const payout = { id: `payout_${seq}`, ...pair, currency: random.pick(['EUR', 'USD']), lines }
    // Of each rep and period, the last payout is current. Its currency and its deals may be others.
    store.payout(org, seq, payout, next < TURNS * pairs.length ? { until: next, by: `payout_${next}` } : undefined)
    ids.push(payout.id)
  }
  await store.publish(org, ids.length)
  const line = { amount: '1000000', deal: 'deal_1' }
  store.payout(other, 0, { id: 'payout_other', lines: [{ id: 'line_1', ...line }] })
  store.payout(other, 1, { id: 'payout_own', period: 'period_2', lines: [{ id: 'line_1', ...line, deal: 'deal_9' }] })
  const texts = Array.from({ length: 2_000 }, (_, at) => ({
    id: `line_${at}`,
    amount: '0.01',
    description: 'x'.repeat(900),
    deal: at % 2 === 0 ? 'deal_large' : 'deal_other',
  }))
  for (let seq = 2; seq < 5; seq++)
    store.payout(other, seq, { id: `payout_${seq}`, period: `period_${seq}`, lines: texts })
  await store.publish(other, 5)
  const keys: Record<string, string> = { [org]: await store.key(org), [other]: await store.key(other) }
  const { port } = await serveApi(scope, store.prefix)
  const ask = async (path: string, of = org, headers: Record<string, string> = {}) => {
    const authorization = `Bearer ${keys[of]}`
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, { headers: { authorization, ...headers } })
    const text = await answer.text()
    const left = Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1])
    return { status: answer.status, headers: answer.headers, left, json: text === '' ? undefined : JSON.parse(text) }
  }
  return { ids, ask }
})()

const queries = [
  '',
  ...REPS.map(rep => `&rep_id=${rep}`),
  ...PERIODS.map(period => `&period_id=${period}`),
  '&rep_id=rep_2&period_id=period_1',
]

describe('the totals of a deal', () => {
  test('are the sums of its lines in the payouts that were current, now and as of each change', async () => {
    const { ids, ask } = await shared
    let rows = 0
    for (const moment of ['', ...ids.map(id => `&as_of=${id}`)]) {
      for (const deal of DEALS) {
        for (const query of moment === ''
          ? queries
          : ['', queries[ids.indexOf(moment.slice(7)) % queries.length] ?? '']) {
          const payouts: Item[] = (await ask(`/payouts?deal_id=${deal}&limit=200${query}${moment}`)).json.data
          // The same payouts, from their statements.
          const statements: Item[] = []
          for (const { id } of payouts) statements.push((await ask(`/statements/${id}`)).json.data)
          const line_totals = lineTotalsOf(statements, deal)
          rows += line_totals.length
          const { data } = (await ask(`/totals?deal_id=${deal}${query}${moment}`)).json
          const last_change_id = moment === '' ? ids.at(-1) : moment.slice(7)
          const last_sequence = ids.indexOf(last_change_id ?? '') + 1
          const wanted = { last_change_id, last_sequence, totals: [], line_totals }
          expect([deal, query, data]).toEqual([deal, query, wanted])
          expect(line_totals).toEqual(lineTotalsOf(payouts, deal))
        }
      }
    }
    expect(rows).toBeGreaterThan(200)
  })

  test('are empty for an unknown deal and for another organization’s alike, and never have lines of another one', async () => {
    const { ids, ask } = await shared
    const empty = { last_change_id: ids.at(-1), last_sequence: ids.length, totals: [], line_totals: [] }
    // Another organization has deal_9.
    for (const deal of ['deal_unknown', 'deal_9'])
      expect((await ask(`/totals?deal_id=${deal}`)).json.data).toEqual(empty)
    expect((await ask('/totals?deal_id=deal_1&rep_id=rep_9')).json.data).toEqual(empty)
    const { line_totals } = (await ask('/totals?deal_id=deal_1', other)).json.data
    expect(line_totals).toEqual([
      { period_id: 'period_1', currency: 'EUR', category: 'earned', amount: '1000000', line_count: 1 },
    ])
  })

  test('leave the totals of the organization, a rep and a period as they are', async () => {
    const { ask } = await shared
    for (const path of ['/totals', '/totals?rep_id=rep_1', '/totals?period_id=period_1']) {
      const { data } = (await ask(path)).json
      expect([path, Object.keys(data), data.totals.length > 0]).toEqual([
        path,
        ['last_change_id', 'last_sequence', 'totals'],
        true,
      ])
    }
  })

  test('cost as many units as their payouts have MiB, the first time and later, and nothing as a 304', async () => {
    const { ask } = await shared
    const { json } = await ask('/payouts?deal_id=deal_large&limit=200', other)
    const units = Math.ceil(
      (json.data as Item[]).reduce((sum, item) => sum + JSON.stringify(item).length, 0) / RATE_UNIT_BYTES,
    )
    expect(units).toBeGreaterThan(4)
    let { left } = await ask('/totals', other)
    for (let turn = 0; turn < 2; turn++) {
      const answer = await ask('/totals?deal_id=deal_large', other)
      expect(answer.json.data.line_totals).toMatchObject(
        [2, 3, 4].map(seq => ({ period_id: `period_${seq}`, amount: '10', line_count: 1_000 })),
      )
      expect(left - answer.left).toBe(units)
      left = answer.left
      const known = { 'if-none-match': answer.headers.get('etag') ?? '' }
      const same = await ask('/totals?deal_id=deal_large', other, known)
      expect([same.status, same.left]).toEqual([304, left])
    }
    expect(left - (await ask('/totals?deal_id=deal_9', other)).left).toBe(1)
  })

  test('are refused while an older version has stored the payouts, and other totals are served', async () => {
    for (const layout of [1, 2] as const) {
      const store = await useStore(scope, { layout })
      store.payout(org, 0, { id: 'payout_0', lines: [{ id: 'line_1', amount: '1', deal: 'deal_1' }] })
      await store.publish(org, 1)
      const key = await store.key(org)
      const { ask } = await serveApi(scope, store.prefix)
      expect((await ask('/totals?rep_id=rep_1', key)).status).toBe(200)
      const refused = await ask('/totals?deal_id=deal_1', key)
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('after the next rebuild')])
    }
  })
})
