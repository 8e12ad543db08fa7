/**
 * Writes the files of an export as Parquet tables. Lines and calculation steps get tables of their own. Amounts stay
 * strings: cast them to a decimal of the scale you need.
 */
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileWriter, parquetWriteRows } from 'hyparquet-writer'
import { TABLE_GROUP_ROWS } from '../limits.ts'
import { linesOf } from './lines.ts'

type Row = Readonly<Record<string, string | null>>
type Value = string | number | boolean | null | object
type Item = Readonly<Record<string, Value>>
type List = 'line_items' | 'calculation_trace'
/** A line of a file. Only one of the files has each list. */
type Line = Item & Readonly<Record<List, readonly Item[]>>
type Table = {
  readonly name: string
  readonly from: string
  readonly columns: readonly string[]
  readonly rows: (record: Line) => Row[]
}

const pick = (item: Item, columns: readonly string[]): Row =>
  Object.fromEntries(
    columns.map(name => [name, item[name] === null || item[name] === undefined ? null : textOf(item[name])]),
  )
const textOf = (value: Value): string => (typeof value === 'object' ? JSON.stringify(value) : String(value))

const plain = (name: string, columns: readonly string[]): Table => ({
  name,
  from: name,
  columns,
  rows: record => [pick(record, columns)],
})
/** A row for each item of a list in a record, with the record's id. */
const inside = (name: string, from: string, list: List, columns: readonly string[]): Table => ({
  name,
  from,
  columns: ['payout_id', ...columns],
  rows: record => record[list].map(item => ({ payout_id: String(record.id), ...pick(item, columns) })),
})

const tables: readonly Table[] = [
  plain('reps', ['id', 'name', 'email', 'status', 'started_on', 'departed_on']),
  plain('periods', ['id', 'kind', 'name', 'timezone', 'starts_at', 'ends_at']),
  plain('payouts', [
    'id',
    'rep_id',
    'period_id',
    'net_amount',
    'earned_amount',
    'currency',
    'supersedes_id',
    'calculated_at',
    'recorded_at',
  ]),
  inside('line_items', 'payouts', 'line_items', ['id', 'category', 'description', 'amount', 'deal_id']),
  inside('calculation_steps', 'statements', 'calculation_trace', [
    'step',
    'name',
    'strategy',
    'strategy_version',
    'inputs',
    'output_amount',
    'deal_id',
  ]),
  plain('payroll_files', [
    'id',
    'rep_id',
    'period_id',
    'payout_id',
    'reverses_id',
    'amount',
    'currency',
    'destination',
    'recorded_at',
  ]),
]

export const writeTables = async (
  directory: string,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<void> => {
  for (const table of tables) {
    const file = join(directory, `${table.name}.parquet`)
    let count = 0
    const rows = async function* (): AsyncGenerator<Row> {
      for await (const line of linesOf(join(directory, `${table.from}.ndjson`))) {
        signal.throwIfAborted()
        for (const row of table.rows(JSON.parse(line.toString()))) {
          count++
          yield row
        }
      }
    }
    // A file of a killed process, or a link to another file: removed, never written through.
    await rm(`${file}.new`, { force: true })
    await parquetWriteRows({
      writer: fileWriter(`${file}.new`),
      rows: rows(),
      rowGroupSize: TABLE_GROUP_ROWS,
      columns: table.columns.map(name => ({ name, type: 'STRING', nullable: true })),
    })
    await rename(`${file}.new`, file)
    say(`${table.name}.parquet: ${count}`)
  }
}
