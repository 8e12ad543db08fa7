/**
 * Writes the files of an export as CSV: the tables and columns of Parquet, each value with the characters of the API.
 * An absent value is nothing between two commas, and an empty text is a pair of quotation marks.
 */
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { csvRow } from '../documents/rows.ts'
import { type ExportTable, tableRowsIn, tables } from './tables.ts'

/** Returns the names of the files. */
export const writeCsv = async (
  directory: string,
  say: (line: string) => void,
  signal: AbortSignal,
  written: readonly ExportTable[] = tables,
): Promise<string[]> => {
  for (const table of written) say(`${table.name}.csv: ${await writeTable(table, directory, signal)}`)
  return written.map(({ name }) => `${name}.csv`)
}

/** Yields the lines of the CSV of a table, its heading first. */
export async function* csvOfTable(table: ExportTable, directory: string, signal: AbortSignal): AsyncGenerator<string> {
  const columns = Object.keys(table.columns)
  yield csvRow(columns)
  for await (const row of tableRowsIn(table, directory, signal)) yield csvRow(columns.map(name => row[name] ?? null))
}

/** Returns the number of its rows. */
const writeTable = async (table: ExportTable, directory: string, signal: AbortSignal): Promise<number> => {
  const file = join(directory, `${table.name}.csv`)
  let count = -1
  const lines = async function* (): AsyncGenerator<string> {
    for await (const line of csvOfTable(table, directory, signal)) {
      count++
      yield line
    }
  }
  // A file of a killed process, or a link to another file: removed, never written through.
  await rm(`${file}.new`, { force: true })
  await pipeline(lines(), createWriteStream(`${file}.new`, { flags: 'wx' }))
  await rename(`${file}.new`, file)
  return count
}
