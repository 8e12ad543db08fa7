/** Lists of one rep, one period, one deal, or several of them. */
import { describe, expect, test } from 'vitest'
import { serveApi, useStore } from '../support/api.ts'
import { inTime, loggedBy } from '../support/in-time.ts'
import type { Item } from '../support/model.ts'
import { fileScope } from '../support/scope.ts'
import { totalsOf } from '../support/totals.ts'

const org = 'org_filters'
const other = 'org_filters_other'
const REPS = ['rep_1', 'rep_2', 'rep_3']
const PERIODS = ['period_1', 'period_2']

/** Of each payout, by its place: none, the same twice, another one with a line without, or both of them. */
const DEALS = [[], ['deal_1', 'deal_1'], ['deal_2', undefined], ['deal_2', 'deal_1']]
const dealsOf = (seq: number) => DEALS[Math.floor(seq / 6) % DEALS.length] ?? []

type Row = { id: string; rep: string; period: string; seq: number; amount: string; isReplaced: boolean }

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  const rows: Row[] = []
  let seq = 0
  for (let turn = 0; turn < 10; turn++) {
    for (const rep of REPS) {
      for (const period of PERIODS) {
        // Of each rep and period, the last payout is current.
        const row = { id: `payout_${seq}`, rep, period, seq, amount: `${seq}.010`, isReplaced: turn < 9 }
        const next = seq + REPS.length * PERIODS.length
        const lines = dealsOf(seq).map((deal, at) => ({ id: `line_${at}`, amount: '1', ...(deal && { deal }) }))
        store.payout(org, seq, { ...row, lines }, row.isReplaced ? { until: next, by: `payout_${next}` } : undefined)
        rows.push(row)
        seq++
      }
    }
  }
  for (const rep of REPS) store.rep(org, rep, [{ seq: seq++, name: rep }])
  // Payroll records of the store are of rep_1 and period_1.
  const payroll = ['payroll_1', 'payroll_2', 'payroll_3']
  for (const id of payroll) store.payroll(org, seq++, id, '1.00')
  await store.publish(org, seq)
  const lines = [{ id: 'line_1', amount: '1', deal: 'deal_9' }]
  store.payout(other, 0, { id: 'payout_other', rep: 'rep_9', period: 'period_9', lines })
  await store.publish(other, 1)
  const key = await store.key(org)
  const api = await serveApi(scope, store.prefix)
  const headers = { authorization: `Bearer ${key}` }
  const ask = async (path: string) => {
    const answer = await inTime(
      () => fetch(`http://127.0.0.1:${api.port}/api/v1${path}`, { headers }),
      () => loggedBy(api),
    )
    return { status: answer.status, json: JSON.parse(await answer.text()) }
  }
  const walk = async (list: string, query: string, limit: number): Promise<string[]> => {
    const ids: string[] = []
    for (let after = ''; ; ) {
      const { status, json } = await ask(`/${list}?limit=${limit}${query}${after && `&starting_after=${after}`}`)
      expect(status).toBe(200)
      ids.push(...json.data.map(({ id }: { id: string }) => id))
      if (!json.has_more) return ids
      after = json.next_cursor
    }
  }
  return { rows, payroll, ask, walk }
})()

const matching = (rows: readonly Row[], rep?: string, period?: string): string[] =>
  rows.filter(row => (rep ?? row.rep) === row.rep && (period ?? row.period) === row.period).map(({ id }) => id)

describe('a filtered list', () => {
  for (const rep of [undefined, ...REPS]) {
    for (const period of [undefined, ...PERIODS]) {
      const query = `${rep ? `&rep_id=${rep}` : ''}${period ? `&period_id=${period}` : ''}`
      test(`has exactly the records of ${rep ?? 'every rep'} and ${period ?? 'every period'}, in order`, async () => {
        const { rows, payroll, walk } = await shared
        for (const limit of [1, 2, 200]) {
          const current = rows.filter(({ isReplaced }) => !isReplaced)
          expect(await walk('payouts', query, limit)).toEqual(matching(current, rep, period))
          const paid = (rep ?? 'rep_1') === 'rep_1' && (period ?? 'period_1') === 'period_1' ? payroll : []
          expect(await walk('payroll_files', query, limit)).toEqual(paid)
          if (query === '') continue
          expect(await walk('changes', query, limit)).toEqual([...matching(rows, rep, period), ...paid])
        }
      })
    }
  }

  test('of a moment has the payouts that were current then', async () => {
    const { rows, walk } = await shared
    const last = rows[REPS.length * PERIODS.length * 3 - 1]
    const then = rows.filter(({ seq }) => seq <= (last?.seq ?? 0)).slice(-REPS.length * PERIODS.length)
    expect(await walk('payouts', `&rep_id=rep_2&as_of=${last?.id}`, 1)).toEqual(matching(then, 'rep_2'))
  })

  test('continues after any id that the list ever returned, also one of another rep or a replaced one', async () => {
    const { rows, ask } = await shared
    for (const { id, seq } of [rows[7], rows[52], rows[55]].flatMap(row => row ?? [])) {
      const { json } = await ask(`/payouts?rep_id=rep_3&starting_after=${id}`)
      const after = rows.filter(row => row.seq > seq && !row.isReplaced)
      expect(json.data.map((item: { id: string }) => item.id)).toEqual(matching(after, 'rep_3'))
    }
  })

  test('is empty for an unknown rep and for another organization’s, with the same words', async () => {
    const { ask } = await shared
    const empty = { status: 200, json: { data: [], has_more: false, next_cursor: '' } }
    for (const list of ['payouts', 'payroll_files', 'changes']) {
      for (const query of [
        'rep_id=rep_unknown',
        'rep_id=rep_9',
        'period_id=period_9',
        'rep_id=rep_9&period_id=period_9',
      ]) {
        expect(await ask(`/${list}?${query}`)).toEqual(empty)
      }
      if (list === 'payroll_files') continue
      expect(await ask(`/${list}?deal_id=deal_unknown`)).toEqual(empty)
      // Another organization has it.
      expect(await ask(`/${list}?deal_id=deal_9`)).toEqual(empty)
    }
  })

  for (const deal of ['deal_1', 'deal_2']) {
    test(`has exactly the payouts with a line of ${deal}, once each, in order`, async () => {
      const { rows, walk } = await shared
      const ofDeal = rows.filter(({ seq }) => dealsOf(seq).includes(deal))
      expect(ofDeal.length).toBeGreaterThan(20)
      for (const rep of [undefined, ...REPS]) {
        for (const period of [undefined, ...PERIODS]) {
          const query = `&deal_id=${deal}${rep ? `&rep_id=${rep}` : ''}${period ? `&period_id=${period}` : ''}`
          for (const limit of [1, 3, 200]) {
            const current = ofDeal.filter(({ isReplaced }) => !isReplaced)
            expect(await walk('payouts', query, limit)).toEqual(matching(current, rep, period))
            expect(await walk('changes', query, limit)).toEqual(matching(ofDeal, rep, period))
          }
        }
      }
    })
  }

  test('of a deal begins after any payout of the list, also after one without the deal', async () => {
    const { rows, ask } = await shared
    for (const after of [rows[2], rows[9], rows[58]].flatMap(row => row ?? [])) {
      const { json } = await ask(`/changes?deal_id=deal_1&limit=200&starting_after=${after.id}`)
      const wanted = rows.filter(({ seq }) => seq > after.seq && dealsOf(seq).includes('deal_1'))
      expect(json.data.map(({ id }: Item) => id)).toEqual(wanted.map(({ id }) => id))
    }
  })

  test('of a deal has the payouts that were current at a moment', async () => {
    const { rows, walk } = await shared
    for (const at of [rows[20], rows[40]].flatMap(row => row ?? [])) {
      const current = rows.filter(({ seq }) => seq <= at.seq && seq > at.seq - REPS.length * PERIODS.length)
      const wanted = current.filter(({ seq }) => dealsOf(seq).includes('deal_2'))
      expect(await walk('payouts', `&deal_id=deal_2&as_of=${at.id}`, 2)).toEqual(wanted.map(({ id }) => id))
    }
  })

  test('of a deal is refused while an older version has stored the payouts, and other filters are served', async () => {
    for (const layout of [1, 2] as const) {
      const store = await useStore(scope, { layout })
      store.payout(org, 0, { id: 'payout_0', lines: [{ id: 'line_1', amount: '1', deal: 'deal_1' }] })
      await store.publish(org, 1)
      const headers = { authorization: `Bearer ${await store.key(org)}` }
      const { port } = await serveApi(scope, store.prefix)
      const ask = (path: string) => fetch(`http://127.0.0.1:${port}/api/v1${path}`, { headers })
      expect(await (await ask('/payouts?rep_id=rep_1')).json()).toMatchObject({ data: [{ id: 'payout_0' }] })
      for (const path of ['/payouts?deal_id=deal_1', '/changes?deal_id=deal_1', '/changes?deal_id=deal_1&wait=1']) {
        const refused = await ask(path)
        const { error } = (await refused.json()) as { error: { code: string; message: string } }
        expect([path, refused.status, error.code]).toEqual([path, 400, 'invalid_request'])
        expect(error.message).toContain('after the next rebuild')
      }
    }
  })

  test('has the totals of one period, as the totals of all periods have them', async () => {
    const { rows, ask } = await shared
    for (const moment of ['', `&as_of=${rows[20]?.id}`]) {
      const ofPeriod = async (period: string) => (await ask(`/totals?period_id=${period}${moment}`)).json.data
      // First while nothing is cached, then out of the totals of all.
      const before = [await ofPeriod('period_1'), await ofPeriod('period_2'), await ofPeriod('period_9')]
      const { last_change_id, last_sequence, totals } = (await ask(`/totals?${moment}`)).json.data
      expect(totals.map(({ period_id }: { period_id: string }) => period_id)).toEqual(['period_1', 'period_2'])
      const of = (period: string) => totals.filter(({ period_id }: { period_id: string }) => period_id === period)
      expect(before).toEqual(
        ['period_1', 'period_2', 'period_9'].map(period => ({ last_change_id, last_sequence, totals: of(period) })),
      )
      expect(await ofPeriod('period_2')).toEqual(before[1])
    }
  })

  test('has the totals of each rep, which are the sums of the lists of the rep and add up to all totals', async () => {
    const { rows, ask } = await shared
    for (const moment of ['', `&as_of=${rows[20]?.id}`]) {
      const { last_change_id, last_sequence, totals } = (await ask(`/totals?${moment}`)).json.data
      for (const period of [undefined, ...PERIODS, 'period_9']) {
        const ofPeriod = period === undefined ? moment : `&period_id=${period}${moment}`
        const ofAll: Item[][] = [[], []]
        for (const rep of [...REPS, 'rep_9', 'rep_unknown']) {
          const query = `?limit=200&rep_id=${rep}${ofPeriod}`
          const lists: Item[][] = []
          for (const list of ['payouts', 'payroll_files']) lists.push((await ask(`/${list}${query}`)).json.data)
          for (const [list, items] of lists.entries()) ofAll[list]?.push(...items)
          const found = (await ask(`/totals?rep_id=${rep}${ofPeriod}`)).json.data
          expect([rep, found]).toEqual([
            rep,
            { last_change_id, last_sequence, totals: totalsOf(lists[0] ?? [], lists[1] ?? []) },
          ])
        }
        const wanted = totals.filter(({ period_id }: { period_id: string }) => (period ?? period_id) === period_id)
        expect(totalsOf(ofAll[0] ?? [], ofAll[1] ?? [])).toEqual(wanted)
      }
    }
    const { totals } = (await ask('/totals?rep_id=rep_1&period_id=period_1')).json.data
    // The last payout of the rep for the period less three payments.
    expect(totals).toMatchObject([{ owed_amount: '54.01', paid_amount: '3', open_amount: '51.01' }])
  })

  test('refuses a malformed id, and a filter where records have no rep or period', async () => {
    const { ask } = await shared
    for (const path of [
      '/payouts?rep_id=',
      '/payouts?rep_id=period_1',
      '/changes?period_id=x',
      '/payroll_files?rep_id=rep_1&rep_id=rep_2',
      '/reps?rep_id=rep_1',
      '/periods?period_id=period_1',
      '/payouts/payout_0/history?rep_id=rep_1',
      '/payouts/payout_0?rep_id=rep_1',
      '/totals?rep_id=',
      '/totals?rep_id=period_1',
      '/totals?rep_id=rep_1&rep_id=rep_1',
      '/totals?deal_id=',
      '/totals?deal_id=rep_1',
      '/totals?deal_id=deal_1&deal_id=deal_1',
      '/payroll_files?deal_id=deal_1',
      '/reps?deal_id=deal_1',
      '/payouts?deal_id=',
      '/payouts?deal_id=rep_1',
      '/changes?deal_id=deal_1&deal_id=deal_2',
      '/payouts?ids=payout_0&deal_id=deal_1',
      '/totals?period_id=rep_1',
      '/totals?period_id=period_1&period_id=period_1',
    ]) {
      expect([path, (await ask(path)).json.error?.code]).toEqual([path, 'invalid_request'])
    }
  })
})
