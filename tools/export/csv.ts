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

export const writeCsv = async (directory: string, say: (line: string) => void, signal: AbortSignal): Promise<void> => {
  for (const table of tables) say(`${table.name}.csv: ${await writeTable(table, directory, signal)}`)
}

/** Returns the number of its rows. */
const writeTable = async (table: ExportTable, directory: string, signal: AbortSignal): Promise<number> => {
  const file = join(directory, `${table.name}.csv`)
  const columns = Object.keys(table.columns)
  let count = 0
  const lines = async function* (): AsyncGenerator<string> {
    yield csvRow(columns)
    for await (const row of tableRowsIn(table, directory, signal)) {
      count++
      yield csvRow(columns.map(name => row[name] ?? null))
    }
  }
  // A file of a killed process, or a link to another file: removed, never written through.
  await rm(`${file}.new`, { force: true })
  await pipeline(lines(), createWriteStream(`${file}.new`, { flags: 'wx' }))
  await rename(`${file}.new`, file)
  return count
}
