/** Ten thousand requests of one organization for records of another: each record seems not to exist. */
import { expect, test } from 'vitest'
import { type Answer, serveApi, useStore } from '../support/api.ts'
import { patient } from '../support/in-time.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const PAYOUTS = 320
const OTHERS = 100
const AT_ONCE = 16

/** Ids of the other organization (`f`) or of ours (`o`). An id with `n` does not exist. */
const idsOf = (letter: 'o' | 'f'): Record<'payout' | 'rep' | 'period' | 'payroll', string[]> => {
  const ids = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, place) => `${prefix}_${letter}${String(place).padStart(4, '0')}`)
  return {
    payout: ids('payout', PAYOUTS),
    rep: ids('rep', OTHERS),
    period: ids('period', OTHERS),
    payroll: ids('payroll', OTHERS),
  }
}
/** The same path with an id that does not exist. */
const ofNobody = (path: string): string => path.replace(/_f\d+/, '_n0000')
const ours = (path: string): string => path.replace(/_f(?=\d)/, '_o')

const shared = (async () => {
  const store = await useStore(scope)
  for (const [org, letter] of [
    ['org_ours', 'o'],
    ['org_foreign', 'f'],
  ] as const) {
    const { payout, rep, period, payroll } = idsOf(letter)
    let seq = 0
    // Every tenth payout is superseded by the next one.
    for (const [place, id] of payout.entries()) {
      const next = payout[place + 1]
      const replaced = place % 10 === 0 && next !== undefined ? { until: seq + 2, by: next } : undefined
      store.payout(org, ++seq, { id }, replaced)
    }
    for (const id of rep) store.rep(org, id, [{ seq: ++seq, name: letter }])
    for (const id of period) store.period(org, id, [{ seq: ++seq, name: letter }])
    for (const id of payroll) store.payroll(org, ++seq, id, '1.00')
    await store.publish(org, seq + 1)
  }
  const key = await store.key('org_ours')
  return { key, ask: patient(await serveApi(scope, store.prefix)) }
})()

/** Every id in every place where an id is allowed. */
const probes = Object.values(idsOf('f'))
  .flat()
  .flatMap(id => [
    ...['payouts', 'statements', 'reps', 'periods', 'payroll_files'].map(path => `/${path}/${id}`),
    `/payouts/${id}/history`,
    `/payouts/payout_o0001/history?starting_after=${id}`,
    `/totals?as_of=${id}`,
    `/payouts/payout_o0001?as_of=${id}.1`,
    ...['payouts', 'reps', 'periods', 'payroll_files', 'changes'].flatMap(path => [
      `/${path}?starting_after=${id}`,
      `/${path}?limit=1&starting_after=${id}`,
      `/${path}?starting_after=${id}&limit=200`,
      `/${path}?as_of=${id}`,
      `/${path}?as_of=${id}.1`,
      `/${path}?starting_after=${id}.1`,
    ]),
  ])

/** An answer without the values that differ between requests: request id, date and remaining rate. */
const comparable = ({ status, headers, text }: Answer) => {
  const others = [...headers].filter(([name]) => !['x-request-id', 'date', 'ratelimit'].includes(name))
  return { status, text, headers: Object.fromEntries(others) }
}

test('a record of another organization gets the same bytes as one that does not exist, at every path and parameter', async () => {
  const { key, ask } = await shared
  expect(probes.length).toBeGreaterThanOrEqual(10_000)
  const counts: Record<number, number> = {}
  const unknown: Record<string, Promise<unknown>> = {}
  for (let from = 0; from < probes.length; from += AT_ONCE) {
    await Promise.all(
      probes.slice(from, from + AT_ONCE).map(async path => {
        const nobodys = ofNobody(path)
        unknown[nobodys] ??= ask(nobodys, key).then(comparable)
        const foreign = await ask(path, key)
        expect(comparable(foreign), path).toEqual(await unknown[nobodys])
        expect([400, 404], path).toContain(foreign.status)
        counts[foreign.status] = (counts[foreign.status] ?? 0) + 1
      }),
    )
  }
  expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(probes.length)
  expect(counts[404]).toBe(6 * (PAYOUTS + 3 * OTHERS))
})

test('our own records are found at the same places; other methods and conditions reveal nothing either', async () => {
  const { key, ask } = await shared
  for (const path of probes.filter((_, place) => place % 97 === 0)) {
    const own = await ask(ours(path), key)
    const kinds = /^\/(payout|rep|period|payroll)[a-z_]*[/?].*?\b(payout|rep|period|payroll)_o/.exec(ours(path))
    // Only changes of reps and periods have an ordinal after the id. Cursors of lists have none.
    if (kinds && kinds[1] === kinds[2] && !path.endsWith('.1') && !/history|as_of/.test(path)) {
      expect(own.status, path).toBe(200)
    }
    for (const more of [
      { method: 'HEAD' },
      { method: 'DELETE' },
      { headers: { 'if-none-match': '*' } },
      { headers: { range: 'bytes=0-10' } },
    ]) {
      const [foreign, unknown] = [await ask(path, key, more), await ask(ofNobody(path), key, more)]
      expect(comparable(foreign), path).toEqual(comparable(unknown))
    }
  }
})
