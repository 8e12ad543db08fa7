/** Writes a file whole or not at all. */
import { access, constants, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** @throws Error with `path` and `code` if the directory does not permit new files; before long work */
export const assertWritable = (file: string): Promise<void> => access(dirname(file), constants.W_OK)

/** Replaces the file at once, even if the power fails. */
export const writeWhole = async (file: string, text: string): Promise<void> => {
  // A file of a killed process, or a link to another file: removed, never written through.
  await rm(`${file}.new`, { force: true })
  await using handle = await open(`${file}.new`, 'wx')
  await handle.writeFile(text)
  await handle.sync()
  await rename(`${file}.new`, file)
}
