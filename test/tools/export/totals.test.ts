/** The table of totals, over totals in memory. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { GenerationBody } from '../../../core/log/index.ts'
import { showTotals } from '../../../tools/export/totals.ts'

/** The output of the command for these rows of totals. */
const position = { generation: { id: 'g1' }, takenBack: 0 }
const shown = async (
  rows: readonly object[],
  options: Partial<Parameters<typeof showTotals>[0]> = {},
  identity?: GenerationBody,
  said: string[] = [],
  at = 1,
): Promise<string> => {
  const out: string[] = []
  const steps = {
    readTotals: async () => ({
      position,
      totals: { last_change_id: 'payout_1', totals: rows },
      last: { id: 'payout_1', seq: 5, at },
    }),
    readList: async () => ({ position, hits: [], hasMore: false }),
    out: (text: string) => void out.push(text),
    say: (line: string) => void said.push(line),
    identity,
  } as unknown as Parameters<typeof showTotals>[1]
  await showTotals({ org: 'org_a', asOf: undefined, kind: undefined, svg: undefined, json: false, ...options }, steps)
  return out.join('')
}

test('the table takes as many rows as there are', async () => {
  const row = { period_id: 'period_1', currency: 'EUR', owed_count: 1, paid_count: 0, paid_amount: '0.00' }
  const rows = Array.from({ length: 150_000 }, (_, at) => {
    const owed_amount = at === 7 ? '1.125' : '2.50'
    return { ...row, owed_amount, open_amount: owed_amount }
  })
  const lines = (await shown(rows)).trimEnd().split('\n')
  expect(lines).toHaveLength(rows.length + 1)
  expect(lines[1]).toMatch(/ 2\.500 /)
  expect(lines[8]).toMatch(/ 1\.125 /)
})

test('CSV has a row for each period and currency, with the amounts as the API answers them', async () => {
  const row = { period_id: 'period_1', currency: 'EUR', owed_amount: '12345678901234567890.10', owed_count: 2 }
  const rows = [
    { ...row, paid_amount: '-0.50', paid_count: 1, open_amount: '12345678901234567890.60' },
    { ...row, currency: 'JPY', owed_amount: '7', paid_amount: '0', paid_count: 0, open_amount: '7' },
  ]
  expect(await shown(rows, { csv: true })).toBe(
    [
      'period_id,period,currency,owed_amount,owed_count,paid_amount,paid_count,open_amount\r\n',
      'period_1,period_1,EUR,12345678901234567890.10,2,-0.50,1,12345678901234567890.60\r\n',
      'period_1,period_1,JPY,7,2,0,0,7\r\n',
    ].join(''),
  )
})

test('the picture has the end of the year 9999 for a record with a later time, such as one in nanoseconds', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'totals-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const svg = join(folder, 'totals.svg')
  await shown([], { svg }, undefined, [], Number.MAX_SAFE_INTEGER)
  expect(readFileSync(svg, 'utf8')).toContain('As of payout_1, 9999-12-31T23:59:59.999Z')
})

test('totals of a sandbox say on the first line, in JSON and in the picture which rules decided them, and up to where', async () => {
  const row = {
    period_id: 'period_1',
    currency: 'EUR',
    owed_amount: '1',
    owed_count: 1,
    paid_amount: '0',
    open_amount: '1',
  }
  const sandbox = { org: 'org_a', until: null, bounds: [0, 7], rules: { name: 'capped.ts', sha256: 'ab12' } }
  const source = { topic: 'events', cluster_id: 'c', partitions: 2, rules_version: 4 }
  const identity = { generation: 's', ...source, sandbox }
  const made =
    'sandbox:s: rules version 4 with capped.ts (SHA-256 ab12); only org_a; up to the end of the topic then: 0, 7'
  const generation = 'sandbox:s'
  expect((await shown([row], { generation }, identity)).split('\n')[0]).toBe(made)
  expect(JSON.parse(await shown([row], { generation, json: true }, identity))).toMatchObject({
    ...{ organization: 'org_a', generation, rules_version: 4, sandbox },
  })
  expect(Object.keys(JSON.parse(await shown([row], { json: true })))).toEqual(['organization', 'as_of', 'totals'])
  const said: string[] = []
  expect(await shown([row], { generation, csv: true }, identity, said)).toMatch(/^period_id,/)
  expect(said).toEqual([made])
  const folder = mkdtempSync(join(tmpdir(), 'totals-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const svg = join(folder, 'totals.svg')
  await shown([row], { generation, svg }, identity)
  expect(readFileSync(svg, 'utf8')).toContain(`>${made}</text>`)
})
