/** Parquet tables of an export: exact amounts, instants and dates. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { Exact } from '../../../schemas/money.ts'
import { instantToNanoseconds } from '../../../schemas/values.ts'
import { plainTable, tables, writeTables } from '../../../tools/export/tables.ts'
import { readTable } from '../../support/parquet.ts'
import { seedOfRun } from '../../support/random.ts'

type Records = readonly Readonly<Record<string, unknown>>[]

/** Writes files as an export does, and returns its tables and what was said. */
const tablesOf = async (files: Readonly<Record<string, Records>>) => {
  const directory = mkdtempSync(join(tmpdir(), 'tables-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  for (const name of ['reps', 'periods', 'payouts', 'statements', 'payroll_files']) {
    const lines = (files[name] ?? []).map(record => `${JSON.stringify(record)}\n`)
    writeFileSync(join(directory, `${name}.ndjson`), lines.join(''))
  }
  const said: string[] = []
  await writeTables(directory, line => said.push(line), new AbortController().signal)
  return { said, table: (name: string) => readTable(join(directory, `${name}.parquet`)) }
}
const paid = async (amounts: readonly string[]) => {
  const { said, table } = await tablesOf({ payroll_files: amounts.map(amount => ({ id: 'payroll_1', amount })) })
  const { types, rows } = await table('payroll_files')
  return { said: said.at(-1), type: types.amount, amounts: rows.map(({ amount }) => String(amount)) }
}

const zeros = (count: number): string => '0'.repeat(count)

test.for([
  ['two decimal places', ['1.50', '-2.25', '0.00'], 10, [`1.50${zeros(8)}`, `-2.25${zeros(8)}`, `0.${zeros(10)}`]],
  ['more than ten decimal places', ['1', `-0.${zeros(11)}1`], 12, [`1.${zeros(12)}`, `-0.${zeros(11)}1`]],
  ['28 digits', [`-${'9'.repeat(28)}`], 10, [`-${'9'.repeat(28)}.${zeros(10)}`]],
  ['38 decimal places', [`0.${'9'.repeat(38)}`], 38, [`0.${'9'.repeat(38)}`]],
  ['an amount that no float holds', ['9007199254740993.01'], 10, [`9007199254740993.01${zeros(8)}`]],
] as const)('amounts are decimals: %s', async ([, amounts, scale, expected]) => {
  const said = `payroll_files.parquet: ${amounts.length}`
  expect(await paid(amounts)).toEqual({ said, type: `DECIMAL(38,${scale})`, amounts: expected })
})

test('a column of a later part has the type of the first part, or is text', async () => {
  const partOf = async (amounts: readonly string[], former?: string) => {
    const directory = mkdtempSync(join(tmpdir(), 'tables-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    writeFileSync(
      join(directory, 'payroll_files.ndjson'),
      amounts.map(amount => `${JSON.stringify({ amount })}\n`).join(''),
    )
    const said: string[] = []
    const written = tables.filter(({ name }) => name === 'payroll_files')
    await writeTables(directory, line => said.push(line), new AbortController().signal, written, former)
    const { types, rows } = await readTable(join(directory, 'payroll_files.parquet'))
    return { directory, said: said.at(-1), type: types.amount, amounts: rows.map(({ amount }) => amount) }
  }
  const [usual, fine, text] = [
    await partOf(['1.50']),
    await partOf([`0.${'1'.repeat(12)}`]),
    await partOf(['9'.repeat(29)]),
  ]
  const why = (type: string) => `payroll_files.parquet: 1; amount is text, because an amount does not fit ${type}`
  expect(await partOf(['2'], usual.directory)).toMatchObject({ type: 'DECIMAL(38,10)' })
  expect(await partOf(['2'], fine.directory)).toMatchObject({ type: 'DECIMAL(38,12)', amounts: [`2.${zeros(12)}`] })
  for (const [former, amount, type] of [
    [usual, `0.${'1'.repeat(12)}`, 'DECIMAL(38, 10)'],
    [fine, `0.${'1'.repeat(13)}`, 'DECIMAL(38, 12)'],
    [fine, '9'.repeat(27), 'DECIMAL(38, 12)'],
  ] as const) {
    expect(await partOf([amount], former.directory)).toMatchObject({ type: 'text', amounts: [amount], said: why(type) })
  }
  expect(await partOf(['2'], text.directory)).toMatchObject({ type: 'text', amounts: ['2'] })
})

test.for([
  ['29 digits', ['9'.repeat(29), '1.50'], 10],
  ['40 digits before and after the point', [`-${'9'.repeat(40)}.${'9'.repeat(40)}`], 40],
  ['two amounts that fit alone, and not together', ['9'.repeat(20), `0.${'1'.repeat(19)}`], 19],
] as const)(
  'a column of amounts that no decimal holds stays text, and the command says so: %s',
  async ([, amounts, scale]) => {
    expect(await paid(amounts)).toEqual({
      said: `payroll_files.parquet: ${amounts.length}; amount is text, because an amount does not fit DECIMAL(38, ${scale})`,
      type: 'text',
      amounts,
    })
  },
)

test('every amount of any column equals the published text', async () => {
  const seed = seedOfRun()
  console.log(`seed ${seed}`)
  const integer = fc.bigInt({ min: 0n, max: 10n ** 40n - 1n }).map(String)
  const short = fc.bigInt({ min: 0n, max: 10n ** 12n }).map(String)
  const digits = (max: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: max })
  const amount = fc
    .tuple(fc.boolean(), fc.oneof(short, short, short, integer), fc.oneof(digits(4), digits(4), digits(40)))
    .map(([negative, whole, fraction]) =>
      `${whole}${fraction === '' ? '' : `.${fraction}`}`.replace(/^/, negative ? '-' : ''),
    )
    .filter(text => !/^-0(\.0+)?$/.test(text))
  let decimals = 0
  await fc.assert(
    fc.asyncProperty(fc.array(amount, { maxLength: 20 }), async amounts => {
      const read = await paid(amounts)
      if (read.type !== 'text') decimals++
      expect(read.amounts.map(text => new Exact(text).toFixed())).toEqual(
        amounts.map(text => new Exact(text).toFixed()),
      )
    }),
    { seed, numRuns: 60 },
  )
  expect(decimals).toBeGreaterThan(5)
})

test('instants are microseconds of UTC, and dates are days; a finer instant keeps its column text', async () => {
  const periods = ['0000-01-01T00:00:00Z', '2026-02-01T00:30:00.123456+01:00', '9999-12-31T23:59:59.999999Z'].map(
    starts_at => ({ id: 'period_1', starts_at, ends_at: '2026-02-01T00:00:00.1234567Z' }),
  )
  const reps = ['0000-02-29', '1969-12-31', '9999-12-31'].map(started_on => ({
    id: 'rep_1',
    started_on,
    departed_on: null,
  }))
  const { said, table } = await tablesOf({ periods, reps })
  const starts = await table('periods')
  expect(starts.types).toMatchObject({ starts_at: 'TIMESTAMP', ends_at: 'text' })
  expect(said[1]).toBe('periods.parquet: 3; ends_at is text, because an instant is finer than a microsecond')
  for (const [index, { starts_at, ends_at }] of periods.entries()) {
    expect(starts.rows[index]).toMatchObject({ starts_at: (instantToNanoseconds(starts_at) ?? 0n) / 1_000n, ends_at })
  }
  const dates = await table('reps')
  expect(dates.types).toMatchObject({ started_on: 'DATE', departed_on: 'DATE' })
  expect(dates.rows.map(({ started_on, departed_on }) => [started_on, departed_on])).toEqual(
    [-719_469, -1, 2_932_896].map(days => [days, null]),
  )
})

test('a column of counts has 32 bits, and 64 if a count needs them', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tables-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const most = [
    { few: 2 ** 31 - 1, many: 2 ** 31 },
    { few: 1, many: Number.MAX_SAFE_INTEGER },
    { few: 0, many: null },
  ]
  writeFileSync(join(directory, 'reads.ndjson'), most.map(row => `${JSON.stringify(row)}\n`).join(''))
  const counts = plainTable('reads', { few: 'number', many: 'number' })
  await writeTables(directory, () => undefined, new AbortController().signal, [counts])
  expect(await readTable(join(directory, 'reads.parquet'))).toEqual({
    types: { few: 'INT32', many: 'INT64' },
    rows: most.map(({ few, many }) => ({ few, many: many === null ? null : BigInt(many) })),
  })
})

test('an organization without records gives tables without rows; lists are tables of their own', async () => {
  const none = await (await tablesOf({})).table('payouts')
  expect(none.rows).toEqual([])
  expect(none.types).toMatchObject({ net_amount: 'DECIMAL(38,10)', calculated_at: 'TIMESTAMP' })
  const steps = [1, 10, 2].map(step => ({ step, name: 'a', inputs: { b: '1' }, output_amount: '-0.5', deal_id: null }))
  const statements = [{ id: 'payout_1', calculation_trace: steps }]
  const { rows } = await (await tablesOf({ statements })).table('calculation_steps')
  expect(rows.map(({ payout_id, step, inputs, output_amount }) => [payout_id, step, inputs, output_amount])).toEqual(
    steps.map(({ step }) => ['payout_1', step, '{"b":"1"}', '-0.5000000000']),
  )
})
