/** Files of JSON lines: read line by line, and gone on with where they end. */
import { constants, createReadStream, existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { CommandError } from '../failures.ts'

const NEWLINE = 0x0a

/** The whole lines of a file, without what ends them. One that is not ended was cut off, and is none. */
export async function* linesOf(file: string): AsyncGenerator<Buffer> {
  let begun: Buffer[] = []
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    let from = 0
    // Byte by byte: what a text may hold besides, as a line separator, ends no line of JSON.
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      yield Buffer.concat([...begun, chunk.subarray(from, end)])
      begun = []
      from = end + 1
    }
    if (from < chunk.length) begun.push(chunk.subarray(from))
  }
}

export type LinesFile = {
  /** Of the lines that were there when it was opened: how many, and the last one. */
  readonly lines: number
  readonly last: Buffer | undefined
  /** Each text is a line. They are in the file when this resolves. */
  readonly append: (texts: readonly Buffer[]) => Promise<void>
  readonly close: () => Promise<void>
}

/** Opens a file to go on behind its last whole line; what was cut off behind it is taken away. */
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
  // Never through a link: what it points to would be cut off.
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants
  const handle = await open(file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW)
  await handle.truncate(bytes)
  const end = Buffer.from('\n')
  /** @throws CommandError where another process writes to it, too: its lines would be there twice */
  const assertOurs = async (): Promise<void> => {
    if ((await handle.stat()).size !== bytes) {
      throw new CommandError(
        `${file} is being written by something else: let one export end, or choose another directory`,
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
        throw new CommandError(`${file} cannot be written: ${error.code}; the same command goes on`)
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
