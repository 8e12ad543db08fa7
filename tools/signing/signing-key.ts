/** Keys that sign manifests: `commission evidence key` makes a pair, and `--sign FILE` reads the secret one. */
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  createSigningKey,
  parseSigningKey,
  type SigningKey,
  textOfSigningKey,
  textOfVerifierKey,
} from '../../core/runtime/index.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { createWhole, syncDirectory } from '../whole-file.ts'

export type MakeKeyOptions = { readonly name: string; readonly out: string; readonly json: boolean }
type MakeKeySteps = { readonly out: (text: string) => void; readonly say: (line: string) => void }

/** Writes the secret key into a new file, and prints the public one. @throws CommandError if there is a file */
export const makeSigningKey = async (
  { name, out: file, json }: MakeKeyOptions,
  { out, say }: MakeKeySteps,
): Promise<ExitCode> => {
  const key = createSigningKey(name)
  if (!(await createWhole(file, `${textOfSigningKey(key)}\n`))) {
    throw new CommandError(`${file} is there already, and stays as it is: choose another file`)
  }
  await syncDirectory(dirname(file))
  const text = textOfVerifierKey(key.verifier)
  out(json ? `${JSON.stringify({ name, id: key.id, public_key: text })}\n` : `${text}\n`)
  say(`${file} has the secret key. Give the public key, which is on standard output, to those who verify`)
  return exitCodes.done
}

/** Reads a key from its file; undefined without a file. @throws CommandError for a file without a key */
export const readSigningKey = async (file: string | undefined): Promise<SigningKey | undefined> => {
  if (file === undefined) return undefined
  const text = await readFile(file, 'utf8').catch((error: { code?: unknown }) => {
    throw new CommandError(`${file}: cannot be read (${error.code}): expected the file of a key`)
  })
  const key = parseSigningKey(text.trimEnd())
  if (key) return key
  throw new CommandError(`${file}: expected a key as commission evidence key writes it: PRIVATE+KEY+NAME+ID+KEY`)
}
