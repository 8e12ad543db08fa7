/** `commission reference`: writes the reference of the API as files that a browser opens without a server. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { referenceFiles } from '../../core/reading/index.ts'
import { type ExitCode, exitCodes } from '../failures.ts'

export type ReferenceOptions = { readonly directory: string; readonly json: boolean }

export const writeReference = async (
  { directory, json }: ReferenceOptions,
  { out, say }: { readonly out: (text: string) => void; readonly say: (line: string) => void },
): Promise<ExitCode> => {
  await mkdir(directory, { recursive: true })
  const files = await referenceFiles()
  for (const [name, content] of files) await writeFile(join(directory, name), content)
  if (json) out(`${JSON.stringify({ directory, files: [...files.keys()] })}\n`)
  say(`open ${join(directory, 'index.html')}`)
  return exitCodes.done
}
