/** The CSV files of an export: RFC 4180, with each value as the API answers it. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { writeCsv } from '../../../tools/export/csv.ts'

const line = { id: 'line_1', category: 'earned', description: '-', amount: '1.50', deal_id: null }
const step = {
  step: 1,
  name: '',
  strategy: 's',
  strategy_version: '1',
  inputs: { rate: '0.10' },
  output_amount: '-0.0010',
}
const payout = {
  id: 'payout_1',
  rep_id: 'rep_1',
  period_id: 'period_1',
  net_amount: '1234567890123456789012345678901234567890.0123456789',
  earned_amount: '-1.50',
  currency: 'EUR',
  supersedes_id: null,
  calculated_at: '2026-02-01T08:30:00.123456789+01:00',
  recorded_at: null,
}

const files = {
  reps: [
    { id: 'rep_1', name: 'Ines "Nessa" Müller, Köln', email: null, status: 'active', started_on: '2024-02-29' },
    { id: 'rep_2', name: 'two\r\nlines', email: '', status: 'active', started_on: null, departed_on: null },
    { id: 'rep_3', name: '=cmd()', email: '@x', status: 'departed', started_on: null, departed_on: '2025-01-31' },
    { id: 'rep_4', name: '', email: null, status: 'active', started_on: null, departed_on: null, erased: true },
  ],
  periods: [],
  payouts: [{ ...payout, line_items: [line, { ...line, id: 'line_2', description: 'a;b', deal_id: 'deal_1' }] }],
  statements: [{ ...payout, calculation_trace: [step] }],
  payroll_files: [],
}

const written = async (said: string[] = []) => {
  const directory = mkdtempSync(join(tmpdir(), 'csv-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  for (const [name, records] of Object.entries(files)) {
    writeFileSync(join(directory, `${name}.ndjson`), records.map(record => `${JSON.stringify(record)}\n`).join(''))
  }
  await writeCsv(directory, text => void said.push(text), new AbortController().signal)
  return { directory, read: (name: string) => readFileSync(join(directory, `${name}.csv`), 'utf8') }
}

test('a text has quotation marks where it needs them, nothing is empty, an empty text is two quotation marks, and a lost text has a mark', async () => {
  const { read } = await written()
  expect(read('reps')).toBe(
    [
      'id,name,email,status,started_on,departed_on,erased,unreadable\r\n',
      'rep_1,"Ines ""Nessa"" Müller, Köln",,active,2024-02-29,,,\r\n',
      'rep_2,"two\r\nlines","",active,,,,\r\n',
      // A spreadsheet would run it.
      "rep_3,'=cmd(),'@x,departed,,2025-01-31,,\r\n",
      'rep_4,"",,active,,,true,\r\n',
    ].join(''),
  )
})

test('amounts and instants have the characters that were published, and lines and steps are tables of their own with their currency', async () => {
  const said: string[] = []
  const { read } = await written(said)
  expect(read('payouts').split('\r\n')[1]).toBe(
    'payout_1,rep_1,period_1,1234567890123456789012345678901234567890.0123456789,-1.50,EUR,,2026-02-01T08:30:00.123456789+01:00,',
  )
  expect(read('line_items')).toBe(
    [
      'payout_id,rep_id,period_id,currency,id,category,description,amount,deal_id\r\n',
      "payout_1,rep_1,period_1,EUR,line_1,earned,'-,1.50,\r\n",
      'payout_1,rep_1,period_1,EUR,line_2,earned,"a;b",1.50,deal_1\r\n',
    ].join(''),
  )
  expect(read('calculation_steps').split('\r\n')[1]).toBe(
    'payout_1,rep_1,period_1,EUR,1,"",s,1,"{""rate"":""0.10""}",-0.0010,',
  )
  expect(said).toContain('line_items.csv: 2')
})

test('a table without records has its header', async () => {
  const { read } = await written()
  expect(read('periods')).toBe('id,kind,name,timezone,starts_at,ends_at\r\n')
})

test('a link in place of the new file is removed, and not written through', async () => {
  const { directory, read } = await written()
  const elsewhere = join(directory, 'elsewhere')
  writeFileSync(elsewhere, 'kept')
  symlinkSync(elsewhere, join(directory, 'reps.csv.new'))
  await writeCsv(directory, () => undefined, new AbortController().signal)
  expect([readFileSync(elsewhere, 'utf8'), read('reps').length > 100]).toEqual(['kept', true])
})
