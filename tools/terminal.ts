/** Text for a terminal. Nothing that a publisher wrote can move the cursor. */
import { COLUMN_CHARACTERS, PROGRESS_INTERVAL_MS } from './limits.ts'

/** Escapes everything but letters, digits, punctuation, symbols and plain spaces. */
export const printable = (text: string): string =>
  text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, character => {
    const code = character.codePointAt(0) ?? 0
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
  })

/** Fits a text into a table column. */
export const fitColumn = (text: string): string => {
  const shown = printable(text)
  return shown.length <= COLUMN_CHARACTERS ? shown : `${shown.slice(0, COLUMN_CHARACTERS - 1)}…`
}

/** A publisher's clock may be out of the range of dates: then the number itself. */
export const timeOf = (at: number): string => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString()
}

/** Rows as lines with aligned columns; columns in `right` are aligned to the right. */
export const aligned = (rows: readonly (readonly string[])[], right: readonly number[] = []): string => {
  // Not `Math.max(...rows)`: a call takes fewer arguments than there may be rows.
  const width = (column: number): number => rows.reduce((max, row) => Math.max(max, row[column]?.length ?? 0), 0)
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

export type ProgressOutput = {
  readonly say: (line: string) => void
  /** Redraws one line; undefined without a terminal. */
  readonly draw?: ((line: string) => void) | undefined
}

/**
 * Shows the progress of a long command: redraws one line of a terminal, or prints a line from time to time.
 * @param clock milliseconds of any clock
 */
export const createProgressLine = ({ say, draw }: ProgressOutput, clock: () => number): ((line: string) => void) => {
  let printedAt = clock()
  return line => {
    if (draw) return draw(line)
    const time = clock()
    if (time - printedAt < PROGRESS_INTERVAL_MS) return
    printedAt = time
    say(line)
  }
}
