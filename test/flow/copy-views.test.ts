/** The views of `current.sql` over a small copy that grew by parts, and over copies that lost a part. */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { installDuckdb, queryDuckdb } from '../support/duckdb.ts'
import { emptyCopy, grownCopy, partsOfCopy } from '../support/growing-copies.ts'
import { pythonProgram } from '../support/programs.ts'
import { installPython } from '../support/python.ts'
import { fileScope } from '../support/scope.ts'

const file = fileScope()
const examples = join(import.meta.dirname, '../../docs/examples')
const views = readFileSync(join(examples, 'current.sql'), 'utf8')
const run = promisify(execFile)

test.skipIf(pythonProgram === undefined)(
  'the views show the last version of each rep and current payouts only, and name each part that is lost',
  async () => {
    const duckdb = await installDuckdb(file)
    const copy = await grownCopy()
    const read = (query: string) => queryDuckdb(duckdb, copy, `${views}\n${query}`)
    expect(await read('FROM problems')).toEqual([])
    expect(await read('SELECT id, name FROM reps ORDER BY id')).toEqual([
      { id: 'rep_A', name: 'Ines N.' },
      { id: 'rep_B', name: 'Omar' },
    ])
    expect(await read('SELECT id FROM payouts ORDER BY id')).toEqual([{ id: 'payout_D' }, { id: 'payout_E' }])
    expect(await read('SELECT owed = 16.75 AS owed, payouts, paid = 10 AS paid, records FROM totals')).toEqual([
      { owed: true, payouts: 2, paid: true, records: 2 },
    ])
    expect(await read('SELECT rep_id, currency, sum(amount) = 16.75 AS owed FROM line_items GROUP BY ALL')).toEqual([
      { rep_id: 'rep_A', currency: 'EUR', owed: true },
    ])
    const problemsWithout = async (lost: string): Promise<unknown[]> => {
      const torn = join(emptyCopy(), 'copy')
      cpSync(copy, torn, { recursive: true })
      rmSync(join(torn, lost), { recursive: true })
      return (await queryDuckdb(duckdb, torn, `${views}\nFROM problems`)).map(({ problem }) => problem)
    }
    const continues = (part: string) => expect.stringContaining(`${part}/manifest.json does not continue the part`)
    expect(await problemsWithout('part-000001')).toContainEqual(continues('part-000002'))
    expect(await problemsWithout('part-000002')).toContainEqual(continues('part-000003'))
    // The parts that remain are a whole copy, as of an earlier change.
    expect(await problemsWithout('part-000003')).toEqual(['part-000003 is lost, or is another one'])
    await expect(problemsWithout('last-part.json')).rejects.toThrow('last-part.json')
  },
)

test.skipIf(pythonProgram === undefined)(
  'lines have the currency of their payout, also in a copy that an earlier version began without it',
  async () => {
    const duckdb = await installDuckdb(file)
    const copy = await grownCopy()
    const lines = () => queryDuckdb(duckdb, copy, `${views}\nFROM line_items ORDER BY payout_id`)
    const before = await lines()
    expect(before).toMatchObject([
      { payout_id: 'payout_D', rep_id: 'rep_A', period_id: 'period_A', currency: 'EUR', id: 'line_1' },
      { payout_id: 'payout_E', rep_id: 'rep_A', period_id: 'period_A', currency: 'EUR', id: 'line_1' },
    ])
    for (const part of partsOfCopy(copy)) {
      for (const table of ['line_items', 'calculation_steps']) {
        const [now, then] = [`${part}/${table}.parquet`, `${part}/then.parquet`]
        await queryDuckdb(
          duckdb,
          copy,
          `COPY (SELECT * EXCLUDE (rep_id, period_id, currency) FROM read_parquet('${now}')) TO '${then}'`,
        )
        renameSync(join(copy, then), join(copy, now))
      }
      expect(await lines(), part).toEqual(before)
    }
  },
)

test.skipIf(pythonProgram === undefined)('no recipe adds up a later part of a copy as if it were all', async () => {
  const duckdb = await installDuckdb(file)
  const pandas = await installPython(file, join(examples, 'load/requirements-pandas.txt'))
  const copy = await grownCopy({ csv: true })
  const [first, second] = [join(copy, 'part-000001'), join(copy, 'part-000002')]
  const query = readFileSync(join(examples, 'totals.sql'), 'utf8')
  expect(await queryDuckdb(duckdb, first, query)).toMatchObject([{ rep_id: null }, { rep_id: 'rep_A' }])
  await expect(queryDuckdb(duckdb, second, query)).rejects.toThrow('this is a part of a copy')
  const add = (directory: string) => run(join(pandas, 'python'), [join(examples, 'load/pandas_totals.py'), directory])
  const head = 'period_id,currency,owed,payouts,paid,records\n'
  expect(await add(first)).toEqual({ stdout: `${head}period_A,EUR,13.50,2,0,0\n`, stderr: '' })
  expect(await add(copy)).toEqual({ stdout: `${head}period_A,EUR,16.75,2,10.00,2\n`, stderr: '' })
  await expect(add(second)).rejects.toThrow('this is one part, or a part is lost')
  for (const lost of ['part-000001', 'part-000002', 'part-000003', 'last-part.json']) {
    const torn = join(emptyCopy(), 'copy')
    cpSync(copy, torn, { recursive: true })
    rmSync(join(torn, lost), { recursive: true })
    await expect(add(torn), lost).rejects.toThrow(lost === 'last-part.json' ? lost : 'a part is lost')
  }
})
