/** `commission reference`: writes the reference of the API as files that a browser opens without a server. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { referenceFiles } from '../../core/reading/index.ts'
import { type ExitCode, exitCodes } from '../failures.ts'

export type ReferenceOptions = { readonly directory: string }

export const writeReference = async (
  { directory }: ReferenceOptions,
  { say }: { readonly say: (line: string) => void },
): Promise<ExitCode> => {
  await mkdir(directory, { recursive: true })
  for (const [name, content] of await referenceFiles()) await writeFile(join(directory, name), content)
  say(`open ${join(directory, 'index.html')}`)
  return exitCodes.done
}
