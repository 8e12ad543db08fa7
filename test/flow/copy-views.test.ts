/** The views of `current.sql` over a small copy that grew by parts, and over copies that lost a part. */
import { cpSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { installDuckdb, queryDuckdb } from '../support/duckdb.ts'
import { emptyCopy, grownCopy } from '../support/growing-copies.ts'
import { pythonProgram } from '../support/programs.ts'
import { fileScope } from '../support/scope.ts'

const file = fileScope()
const views = readFileSync(join(import.meta.dirname, '../../docs/examples/current.sql'), 'utf8')

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
