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

/**
 * Returns a text whose lines fit. A line that begins with spaces keeps its indentation in the lines that follow it.
 * @param columns undefined: there is no terminal, and the text stays as it is
 */
export const wrapped = (text: string, columns: number | undefined): string =>
  columns === undefined
    ? text
    : joined(text)
        .flatMap(line => wrapLine(line, Math.max(COLUMNS_LEAST, columns)))
        .join('\n')

const COLUMNS_LEAST = 40

/** Lines of one paragraph become one line. A new one begins with an indentation, an option or the exit codes. */
const joined = (text: string): string[] => {
  const lines: string[] = []
  for (const line of text.split('\n')) {
    const before = lines.at(-1)
    const isNew = before === undefined || before === '' || line === '' || /^(?: |--|Exit codes)/.test(line)
    if (isNew || before.startsWith(' ')) lines.push(line)
    else lines[lines.length - 1] = `${before} ${line}`
  }
  return lines
}

const wrapLine = (line: string, columns: number): string[] => {
  // Below the text of a line such as `  record      reps, periods`.
  const indentation = /^ +(?:\S+(?: \S+)* {2,})?/.exec(line)?.[0] ?? ''
  const lines: string[] = []
  let current = indentation
  for (const word of line.slice(indentation.length).split(' ')) {
    const isFirst = current.length === indentation.length
    if (!isFirst && current.length + 1 + word.length > columns) {
      lines.push(current)
      current = `${' '.repeat(indentation.length)}${word}`
    } else current = isFirst ? `${current}${word}` : `${current} ${word}`
  }
  return [...lines, current]
}
