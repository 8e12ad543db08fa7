/** Reads every resource with openapi-fetch and the types of openapi-typescript. */
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

const { API_URL = '', API_KEY = '' } = process.env
const client = createClient<paths>({ baseUrl: API_URL, headers: { authorization: `Bearer ${API_KEY}` } })

type Page<Item> = { data: Item[]; has_more: boolean; next_cursor: string }
type Answered<Item> = { data?: Page<Item>; error?: components['schemas']['Refusal'] }

/** Follows the cursor to the end of a list. */
async function* walk<Item>(read: (query: { limit: number; starting_after?: string }) => Promise<Answered<Item>>) {
  for (let after: string | undefined; ; ) {
    const { data: page, error } = await read({ limit: 2, ...(after !== undefined && { starting_after: after }) })
    if (page === undefined) throw new Error(error?.error.code)
    yield* page.data
    if (!page.has_more) return
    after = page.next_cursor
  }
}

const print = (...fields: unknown[]): void => console.log(fields.map(String).join(' '))

for await (const rep of walk(query => client.GET('/reps', { params: { query } }))) print('reps', rep.id, rep.started_on)
for await (const period of walk(query => client.GET('/periods', { params: { query } }))) {
  print('periods', period.id, period.starts_at)
}
for await (const payout of walk(query => client.GET('/payouts', { params: { query } }))) {
  const path = { id: payout.id }
  print('payouts', payout.id, payout.net_amount, payout.calculated_at, ...payout.line_items.map(({ amount }) => amount))
  const statement = (await client.GET('/statements/{id}', { params: { path } })).data?.data
  print('statements', statement?.id, statement?.calculation_trace.length)
  const steps = (query: { limit: number }) => client.GET('/payouts/{id}/history', { params: { path, query } })
  for await (const step of walk(steps)) print('history', step.id, step.difference?.net_amount ?? 'none')
}
for await (const record of walk(query => client.GET('/payroll_files', { params: { query } }))) {
  print('payroll_files', record.id, record.amount, record.destination.type)
}
for await (const change of walk(query => client.GET('/changes', { params: { query } }))) {
  const amount =
    change.kind === 'payouts' ? change.record.net_amount : change.kind === 'payroll_files' ? change.record.amount : ''
  print('changes', change.id, change.kind, change.published_at, change.record.id, amount)
}
const totals = (await client.GET('/totals')).data?.data
for (const total of totals?.totals ?? []) print('totals', total.period_id, total.owed_amount, total.paid_count)
const lines = (await client.GET('/checkpoint')).data?.data.note.split('\n') ?? []
print('checkpoint', lines[3], lines[5])
