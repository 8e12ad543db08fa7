/**
 * Writes the files of an export as Parquet tables. Lines and calculation steps get tables of their own. Reads each file
 * twice: to choose the types of the columns, then to write them.
 */
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { fileWriter, parquetWriteRows, type SchemaElement } from 'hyparquet-writer'
import { TABLE_GROUP_ROWS } from '../limits.ts'
import { type ColumnKind, type ColumnValue, createColumn } from './columns.ts'
import { linesOf } from './lines.ts'

type Columns = Readonly<Record<string, ColumnKind>>
type Row = Readonly<Record<string, string | null>>
export type TableValue = string | number | boolean | null | object
type Item = Readonly<Record<string, TableValue>>
type List = 'line_items' | 'calculation_trace'
/** A line of a file. Only one of the files has each list. */
type Line = Item & Readonly<Record<List, readonly Item[]>>
export type ExportTable = {
  readonly name: string
  readonly from: string
  readonly columns: Columns
  readonly rows: (record: Line) => Row[]
}

const pick = (item: Item, columns: Columns): Row =>
  Object.fromEntries(
    Object.keys(columns).map(name => [
      name,
      item[name] === null || item[name] === undefined ? null : textOf(item[name]),
    ]),
  )
const textOf = (value: TableValue): string => (typeof value === 'object' ? JSON.stringify(value) : String(value))

/** A row for each record. */
export const plainTable = (name: string, columns: Columns): ExportTable => ({
  name,
  from: name,
  columns,
  rows: record => [pick(record, columns)],
})
/** Of the payout of an item: a sum of items must not mix currencies. */
const ofPayout = { rep_id: 'text', period_id: 'text', currency: 'text' } as const
/** A row for each item of a list in a record, with the record's id. */
const inside = (name: string, from: string, list: List, columns: Columns): ExportTable => ({
  name,
  from,
  columns: { payout_id: 'text', ...ofPayout, ...columns },
  rows: record => {
    const payout = { ...pick(record, ofPayout), payout_id: String(record.id) }
    return record[list].map(item => ({ ...pick(item, columns), ...payout }))
  },
})

export const tables: readonly ExportTable[] = [
  plainTable('reps', {
    id: 'text',
    name: 'text',
    email: 'text',
    status: 'text',
    started_on: 'date',
    departed_on: 'date',
    erased: 'text',
    unreadable: 'text',
  }),
  plainTable('periods', {
    id: 'text',
    kind: 'text',
    name: 'text',
    timezone: 'text',
    starts_at: 'instant',
    ends_at: 'instant',
  }),
  plainTable('payouts', {
    id: 'text',
    rep_id: 'text',
    period_id: 'text',
    net_amount: 'amount',
    earned_amount: 'amount',
    currency: 'text',
    supersedes_id: 'text',
    calculated_at: 'instant',
    recorded_at: 'instant',
  }),
  inside('line_items', 'payouts', 'line_items', {
    id: 'text',
    category: 'text',
    description: 'text',
    amount: 'amount',
    deal_id: 'text',
  }),
  inside('calculation_steps', 'statements', 'calculation_trace', {
    step: 'number',
    name: 'text',
    strategy: 'text',
    strategy_version: 'text',
    inputs: 'text',
    output_amount: 'amount',
    deal_id: 'text',
  }),
  plainTable('payroll_files', {
    id: 'text',
    rep_id: 'text',
    period_id: 'text',
    payout_id: 'text',
    reverses_id: 'text',
    amount: 'amount',
    currency: 'text',
    destination: 'text',
    recorded_at: 'instant',
  }),
]

/** The names of the files of these formats. */
export const namesOfTables = (formats: Readonly<Record<'parquet' | 'csv', boolean>>): readonly string[] =>
  Object.entries(formats).flatMap(([ending, isWanted]) =>
    isWanted ? tables.map(({ name }) => `${name}.${ending}`) : [],
  )

/**
 * Returns the names of the files.
 * @param former directory of an earlier part of the same copy: a column that cannot have its type there is text
 */
export const writeTables = async (
  directory: string,
  say: (line: string) => void,
  signal: AbortSignal,
  written: readonly ExportTable[] = tables,
  former?: string,
): Promise<string[]> => {
  for (const table of written) await writeTable(table, directory, say, signal, former)
  return written.map(({ name }) => `${name}.parquet`)
}

/** Yields the rows of a table from its file. */
export async function* tableRowsIn(
  { from, rows }: ExportTable,
  directory: string,
  signal: AbortSignal,
): AsyncGenerator<Row> {
  for await (const line of linesOf(join(directory, `${from}.ndjson`))) {
    signal.throwIfAborted()
    yield* rows(JSON.parse(line.toString()))
  }
}

const writeTable = async (
  table: ExportTable,
  directory: string,
  say: (line: string) => void,
  signal: AbortSignal,
  former: string | undefined,
): Promise<void> => {
  const file = join(directory, `${table.name}.parquet`)
  const types = former === undefined ? undefined : await typesIn(join(former, `${table.name}.parquet`))
  const columns = Object.entries(table.columns).map(([name, kind]) => createColumn(name, kind, types?.get(name)))
  const rows = (): AsyncGenerator<Row> => tableRowsIn(table, directory, signal)
  let count = 0
  for await (const row of rows()) {
    count++
    for (const { name, measure } of columns) if (typeof row[name] === 'string') measure(row[name])
  }
  const cells = async function* (): AsyncGenerator<Record<string, ColumnValue>> {
    for await (const row of rows()) {
      yield Object.fromEntries(
        columns.map(({ name, cellOf }) => [name, typeof row[name] === 'string' ? cellOf(row[name]) : null]),
      )
    }
  }
  // A file of a killed process, or a link to another file: removed, never written through.
  await rm(`${file}.new`, { force: true })
  await parquetWriteRows({
    writer: fileWriter(`${file}.new`),
    rows: cells(),
    rowGroupSize: TABLE_GROUP_ROWS,
    columns: columns.map(({ name }) => ({ name })),
    schema: [{ name: 'root', num_children: columns.length }, ...columns.map(({ schema }) => schema())],
  })
  await rename(`${file}.new`, file)
  const texts = columns.flatMap(({ name, asText }) => {
    const why = asText()
    return why === undefined ? [] : [`; ${name} is text, because ${why}`]
  })
  say(`${table.name}.parquet: ${count}${texts.join('')}`)
}

/** The columns of a table by their names. */
const typesIn = async (file: string): Promise<ReadonlyMap<string, SchemaElement>> => {
  const { schema } = await parquetMetadataAsync(await asyncBufferFromFile(file))
  return new Map(schema.slice(1).map(column => [column.name, column]))
}
