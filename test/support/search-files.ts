/** Searches all files of a folder for a text, in each form in which our programs and servers store one. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'

/** As UTF-8, as UTF-16 (strings of Java), and inside base64 (values of parked records), at each of its three places. */
const formsOf = (text: string): Buffer[] => {
  const bytes = Buffer.from(text)
  const base64 = [0, 1, 2].map(before => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
    // The first and the last character may have bits of the bytes around.
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor((whole.length * 8) / 6)]
    return Buffer.from(whole.toString('base64').slice(from, to))
  })
  return [bytes, Buffer.from(text, 'utf16le'), ...base64]
}

/** Bytes at the end of a segment of an archive that are no part of its first frame. */
const TRAILER_BYTES = 72

/** The bytes of a file; of a segment of an archive, its content. */
const contentOf = (file: string): Buffer => {
  const bytes = readFileSync(file)
  return file.endsWith('.zst') ? zstdDecompressSync(bytes.subarray(0, -TRAILER_BYTES)) : bytes
}

/** Returns the names of the files under a folder that have a text. */
export const filesWith = (folder: string, text: string): string[] => {
  const forms = formsOf(text)
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => {
    const file = join(folder, name)
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false
    const content = contentOf(file)
    return forms.some(form => content.includes(form))
  })
}
