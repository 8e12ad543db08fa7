/** Clients made from the OpenAPI document by the usual generators read every resource as its JSON says. */
import { expect, test } from 'vitest'
import { createSigningKey } from '../../core/runtime/index.ts'
import { serveApi, useStore } from '../support/api.ts'
import { goProgram, javaProgram, mavenProgram, npmProgram, pythonProgram } from '../support/programs.ts'
import { runCopy } from '../support/run-copy.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()

type Body = { readonly data: readonly Item[]; readonly has_more: boolean; readonly next_cursor: string }
type Item = Readonly<Record<string, unknown>> & {
  readonly id?: string
  readonly line_items?: readonly { readonly amount: string }[]
  readonly calculation_trace?: readonly unknown[]
  readonly difference?: { readonly net_amount: string } | null
  readonly destination?: { readonly type: string }
  readonly record?: Item
  readonly totals?: readonly Item[]
  readonly note?: string
}
type Ask = <Answer>(path: string) => Promise<Answer>

/** The lines that each program prints, from the plain JSON. */
const linesOf = async (ask: Ask): Promise<string[]> => {
  const lines: string[] = []
  const print = (...fields: readonly unknown[]): unknown => lines.push(fields.map(String).join(' '))
  const all = async (path: string) => (await ask<Body>(`${path}?limit=200`)).data
  const one = async (path: string) => (await ask<{ data: Item }>(path)).data
  for (const rep of await all('/reps')) print('reps', rep.id, rep.started_on)
  for (const period of await all('/periods')) print('periods', period.id, period.starts_at)
  for (const { id, net_amount, calculated_at, line_items } of await all('/payouts')) {
    print('payouts', id, net_amount, calculated_at, ...(line_items ?? []).map(({ amount }) => amount))
    print('statements', id, (await one(`/statements/${id}`)).calculation_trace?.length)
    for (const step of await all(`/payouts/${id}/history`))
      print('history', step.id, step.difference?.net_amount ?? 'none')
  }
  for (const { id, amount, destination } of await all('/payroll_files'))
    print('payroll_files', id, amount, destination?.type)
  for (const { id, kind, published_at, record } of await all('/changes')) {
    print('changes', id, kind, published_at, record?.id, record?.net_amount ?? record?.amount ?? '')
  }
  for (const total of (await one('/totals')).totals ?? []) {
    print('totals', total.period_id, total.owed_amount, total.paid_count)
  }
  const [, , , sequence, , digest] = String((await one('/checkpoint')).note).split('\n')
  print('checkpoint', sequence, digest)
  return lines
}

const shared = (async () => {
  const store = await useStore(scope)
  const org = 'org_clients'
  let seq = 0
  for (const id of ['rep_1', 'rep_2', 'rep_3']) store.rep(org, id, [{ seq: ++seq, name: id }])
  for (const id of ['period_1', 'period_2', 'period_3']) store.period(org, id, [{ seq: ++seq, name: id }])
  for (const [index, id] of ['payout_1', 'payout_2', 'payout_3', 'payout_4', 'payout_5'].entries()) {
    store.payout(org, ++seq, { id }, index === 1 ? { until: seq + 1, by: 'payout_3' } : undefined)
  }
  for (const id of ['payroll_1', 'payroll_2', 'payroll_3']) store.payroll(org, ++seq, id, '-1.50')
  await store.publish(org, seq + 1)
  const key = await store.key(org)
  const { port } = await serveApi(scope, store.prefix, { checkpointKey: createSigningKey('example.com') })
  const url = `http://127.0.0.1:${port}/api/v1`
  const ask: Ask = async path =>
    JSON.parse(await (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } })).text())
  return { key, url, openapi: await ask('/openapi.json'), expected: await linesOf(ask) }
})()

const generated = [
  { folder: 'typescript', generator: 'openapi-typescript', programs: [npmProgram] },
  { folder: 'python', generator: 'openapi-python-client', programs: [pythonProgram] },
  { folder: 'go', generator: 'oapi-codegen', programs: [goProgram] },
  { folder: 'java', generator: 'openapi-generator', programs: [javaProgram, mavenProgram] },
] as const

for (const { folder, generator, programs } of generated) {
  test.skipIf(programs.includes(undefined))(
    `the client of ${generator} compiles and reads every resource`,
    async () => {
      const { key, url, openapi, expected } = await shared
      const kinds = new Set(expected.map(line => line.split(' ')[0]))
      expect([...kinds].toSorted()).toEqual([
        'changes',
        'checkpoint',
        'history',
        'payouts',
        'payroll_files',
        'periods',
        'reps',
        'statements',
        'totals',
      ])
      const environment = { API_URL: url, API_KEY: key }
      const lines = await runCopy(`clients/${folder}`, environment, { 'openapi.json': JSON.stringify(openapi) })
      expect(lines.map(line => line.trimEnd())).toEqual(expected.map(line => line.trimEnd()))
    },
  )
}
