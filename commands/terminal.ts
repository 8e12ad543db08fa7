/** Text for a terminal, in which nothing that a publisher wrote can move its cursor. */
import { COLUMN_CHARACTERS } from './limits.ts'

/** Everything but letters, digits, punctuation, symbols and plain spaces is written as an escape. */
export const printable = (text: string): string =>
  text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, character => {
    const code = character.codePointAt(0) ?? 0
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
  })

/** As a column of a table has it. */
export const cut = (text: string): string => {
  const shown = printable(text)
  return shown.length <= COLUMN_CHARACTERS ? shown : `${shown.slice(0, COLUMN_CHARACTERS - 1)}…`
}

/** A publisher's clock may say what no calendar has. */
export const timeOf = (at: number): string => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString()
}

/** A row a line, its cells one below the other; those of the columns `right` end there. */
export const aligned = (rows: readonly (readonly string[])[], right: readonly number[] = []): string => {
  // Not all as arguments of one call: there may be more rows than that takes.
  const width = (column: number): number => rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0)
  const widths = rows[0]?.map((_, column) => width(column)) ?? []
  return rows
    .map(row =>
      row
        .map((cell, column) =>
          right.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
