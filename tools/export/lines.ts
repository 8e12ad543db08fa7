/** NDJSON files: reads them line by line, and appends after their last whole line. */
import { constants, createReadStream, existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError } from '../failures.ts'

const NEWLINE = 0x0a

/** Yields the lines of a file without line ends. Ignores a last line without a line end: it was cut off. */
export const linesOf = (file: string): AsyncGenerator<Buffer> => linesIn(createReadStream(file), 'ignored')

/**
 * Yields the lines of bytes without line ends. Splits at line feeds only: other line separators may occur within a line
 * of JSON.
 */
export async function* linesIn(
  chunks: AsyncIterable<Buffer>,
  lastWithoutEnd: 'ignored' | 'a line',
): AsyncGenerator<Buffer> {
  let begun: Buffer[] = []
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      yield Buffer.concat([...begun, chunk.subarray(from, end)])
      begun = []
      from = end + 1
    }
    if (from < chunk.length) begun.push(chunk.subarray(from))
  }
  if (begun.length > 0 && lastWithoutEnd === 'a line') yield Buffer.concat(begun)
}

/** `before`: absent if the file has no further line. `now`: absent if it has one too many. */
export type OtherLine = { readonly file: string; readonly before?: Buffer; readonly now?: Buffer }

/** Compares files of a directory with the lines that they would have now. Yields each line that differs. */
export async function* otherLines(
  directory: string,
  files: readonly string[],
  now: AsyncIterable<{ readonly file: string; readonly lines: readonly Buffer[] }>,
): AsyncGenerator<OtherLine> {
  const open = new Map(files.map(file => [file, linesOf(join(directory, file))]))
  try {
    for await (const { file, lines } of now) {
      for (const line of lines) {
        const before: Buffer | undefined = (await open.get(file)?.next())?.value
        if (!before?.equals(line)) yield { file, now: line, ...(before && { before }) }
      }
    }
    for (const [file, rest] of open) for await (const before of rest) yield { file, before }
  } finally {
    // Closes the files.
    for (const lines of open.values()) await lines.return(undefined)
  }
}

type LinesFile = {
  /** Lines that were in the file when it was opened: their number, and the last one. */
  readonly lines: number
  readonly last: Buffer | undefined
  /** Appends each text as a line. Resolves after the write. */
  readonly append: (texts: readonly Buffer[]) => Promise<void>
  readonly close: () => Promise<void>
}

/** Opens a file to append to it, and removes an incomplete last line. */
export const openLines = async (file: string): Promise<LinesFile> => {
  let [lines, bytes] = [0, 0]
  let last: Buffer | undefined
  if (existsSync(file)) {
    for await (const line of linesOf(file)) {
      lines++
      bytes += line.length + 1
      last = line
    }
  }
  // Never through a link, because its target would be truncated.
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants
  const handle = await open(file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW)
  await handle.truncate(bytes)
  const end = Buffer.from('\n')
  /** @throws CommandError if another process writes to the file too: lines would be there twice */
  const assertOurs = async (): Promise<void> => {
    if ((await handle.stat()).size !== bytes) {
      throw new CommandError(
        `${file} is being written by another process: let one export end, or choose another directory`,
      )
    }
  }
  return {
    lines,
    last,
    append: async texts => {
      await assertOurs()
      const written = Buffer.concat(texts.flatMap(text => [text, end]))
      await handle.appendFile(written).catch((error: { readonly code?: unknown }) => {
        throw new CommandError(`${file} cannot be written: ${error.code}; the same command continues`)
      })
      bytes += written.length
      await assertOurs()
    },
    close: async () => {
      try {
        await handle.sync()
      } finally {
        await handle.close()
      }
    },
  }
}
