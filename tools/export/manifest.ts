/** The manifest of an export: its moment, its files, and their sums. */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { lstat, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { checkNote, parseNote, type SigningKey } from '../../core/runtime/index.ts'
import type { Sight } from '../../core/store/index.ts'
import { type Sums as Adding, addTo, textOfSums } from '../../schemas/money.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { Totals } from '../../schemas/resources.ts'
import type { SandboxBody } from '../../schemas/stored/sandboxes.ts'
import type { CommandContext } from '../context.ts'
import { findUncompared, refuseUncompared } from '../documents/shards.ts'
import { CommandError } from '../failures.ts'
import { recordedIdentityOf } from '../generations/generations.ts'
import { readSight, refuseUnseen } from '../live.ts'
import { MANIFEST_FILE, NOTE_FILE, readIfThere } from '../signing/sign-manifest.ts'
import { AS_USUAL, writeWhole } from '../whole-file.ts'
import { digestLines, type LineDigests } from './line-digests.ts'
import { linesOf } from './lines.ts'
import { namesOfTables } from './tables.ts'

export type ManifestSource = {
  readonly topic: string
  readonly partition: number
  readonly rules_version: number
  readonly sandbox?: SandboxBody
  /** A recorded shard that could not be compared: it may have lost documents. */
  readonly unknownShard?: string
  /** Whether a role hides documents. */
  readonly sight?: Sight
}
/**
 * Returns a function that reads the topic and partition of an organization, the version of the rules of a generation,
 * and the options of a sandbox.
 */
export const sourceOf =
  (context: CommandContext) =>
  async (generation: string, org: string): Promise<ManifestSource> => {
    const identity = await recordedIdentityOf(generation, context)
    const unknownShard = await findUncompared(identity, context)
    const { topic, partitions, rules_version, sandbox } = identity
    const sight = await readSight(Object.keys(identity.indices ?? {}), context.send)
    const source = { topic, partition: partitionOf(org, partitions), rules_version, sight, ...(sandbox && { sandbox }) }
    return { ...source, ...(unknownShard !== undefined && { unknownShard }) }
  }

/** As `refuseUncompared` and `refuseUnseen`: an error before a signature. */
export const refuseUnknownShard = (
  { unknownShard, sight = 'all' }: { readonly unknownShard?: string | undefined; readonly sight?: Sight | undefined },
  { sign }: { readonly sign?: string | undefined },
  steps: Pick<CommandContext, 'say'>,
): void => {
  const refusal = sign === undefined ? undefined : 'Nothing was signed'
  refuseUncompared(unknownShard, refusal, steps)
  // Without a signature `doctor` tells it.
  if (refusal !== undefined) refuseUnseen(sight, refusal, steps)
}

/** The bytes of a file. */
export type DescribedFile = { readonly file: string; readonly bytes: number; readonly sha256: string }
/** `lines`: where the file was changed, if it was. Absent in exports of earlier versions. */
export type FileDescription = DescribedFile & { readonly records: number; readonly lines?: LineDigests }
/** Of a payout or a payroll record. */
type Amounts = Readonly<Record<'currency' | 'net_amount' | 'amount', string>>
/** By currency, as decimal strings. */
type Sums = Readonly<Record<string, string>>

export type Manifest = {
  readonly organization: string
  /** Id of the last change in it; null before the first one. */
  readonly as_of: string | null
  /** When that change was published. */
  readonly published_at: string | null
  /** Position just after that change: the next offset. */
  readonly position: { readonly topic: string; readonly partition: number; readonly offset: number }
  readonly rules_version: number
  /** The generation or sandbox; absent of the live generation. */
  readonly generation?: string
  /** Of a sandbox: its organization, its end, and the module of its rules. */
  readonly sandbox?: SandboxBody
  /** Present if sealed texts were opened. */
  readonly opened?: true
  /** Of a later part of a copy that grows: the last change of the part before it, and the digest of that part. */
  readonly after?: { readonly as_of: string; readonly digest: string }
  /** Of the organization as of that change; of a part, of all parts together. */
  readonly owed: Sums
  readonly paid: Sums
  readonly files: Readonly<Record<string, FileDescription>>
  /** SHA-256 over a line `name sha256` for each file, in order. */
  readonly digest: string
  /** Tables that were made from the files, by their names. */
  readonly tables?: Readonly<Record<string, DescribedFile>>
}

export const describeFiles = async (
  names: readonly string[],
  directory: string,
  signal: AbortSignal,
): Promise<{ files: Record<string, FileDescription>; sums: Pick<Manifest, 'owed' | 'paid'>; digest: string }> => {
  const files: Record<string, FileDescription> = {}
  const owed: Adding = new Map()
  const paid: Adding = new Map()
  for (const name of names) {
    const file = `${name}.ndjson`
    const path = join(directory, file)
    const hash = createHash('sha256')
    let [records, bytes] = [0, 0]
    for await (const line of linesOf(path)) {
      records++
      bytes += line.length + 1
      hash.update(line).update('\n')
      signal.throwIfAborted()
      if (name === 'payouts') {
        const { currency, net_amount }: Amounts = JSON.parse(line.toString())
        addTo(owed, currency, net_amount)
      } else if (name === 'payroll_files') {
        const { currency, amount }: Amounts = JSON.parse(line.toString())
        addTo(paid, currency, amount)
      }
    }
    if ((await stat(path)).size !== bytes) throw new CommandError(`${path}: its last line is cut off`)
    const lines = await digestLines(path, records)
    files[name] = { file, records, bytes, sha256: hash.digest('hex'), lines }
  }
  const digest = createHash('sha256')
  for (const [name, { sha256 }] of Object.entries(files)) digest.update(`${name} ${sha256}\n`)
  return { files, sums: { owed: textOfSums(owed), paid: textOfSums(paid) }, digest: digest.digest('hex') }
}

/** Describes tables by the names of their files. */
export const describeTables = async (
  names: readonly string[],
  directory: string,
): Promise<Record<string, DescribedFile>> => {
  const tables: Record<string, DescribedFile> = {}
  for (const file of names) tables[file] = { file, ...(await sizeAndHashOf(join(directory, file))) }
  return tables
}

/**
 * Returns the files that a manifest names.
 * @param asked tables that are about to be written again: they are left out
 */
export const namedIn = ({ files, tables = {} }: Manifest, asked: readonly string[] = []): readonly DescribedFile[] => [
  ...Object.values(files),
  ...Object.values(tables).filter(({ file }) => !asked.includes(file)),
]

/**
 * Another signature would be of an export that somebody changed. Tables are added to an export after it was signed.
 * @param asked tables that are about to be written again: they may differ from the signed ones
 */
export const assertAsSigned = async (
  out: string,
  { verifier }: SigningKey,
  asked: readonly string[] = [],
): Promise<void> => {
  const bytes = await readIfThere(join(out, NOTE_FILE))
  if (bytes === undefined) return
  const note = parseNote(bytes)
  const outcome = note === undefined ? 'wrong' : checkNote(note, [verifier]).outcome
  if (note === undefined || outcome === 'wrong') {
    throw new CommandError(`${out}/${NOTE_FILE}: its signature is not of its text: export into another directory`)
  }
  // Signed by another key only: this key says nothing about it.
  if (outcome === 'unknown') return
  const manifestIn = (text: Buffer | undefined): Manifest => JSON.parse(text?.toString('utf8') ?? '{}')
  const [signed, found] = [manifestIn(note.text), manifestIn(await readIfThere(join(out, MANIFEST_FILE)))]
  const kept = Object.keys(signed.tables ?? {}).filter(table => !asked.includes(table))
  const textOf = ({ tables = {}, ...exported }: Manifest): string =>
    JSON.stringify([exported, kept.map(table => tables[table])])
  if (textOf(signed) === textOf(found)) return
  throw new CommandError(`${out}/${MANIFEST_FILE} is not the signed one: export into another directory`)
}

/** @throws CommandError if a manifest says other sums or records than its files have, or names a file of none */
export const assertDescribes = (
  manifest: Manifest,
  found: Pick<Manifest, 'owed' | 'paid' | 'files' | 'digest'>,
  out: string,
): void => {
  const textOf = ({ owed, paid, files, digest }: typeof found): string =>
    JSON.stringify([
      owed,
      paid,
      digest,
      Object.entries(files).map(([name, { file, records }]) => [name, file, records]),
    ])
  const all = namesOfTables({ parquet: true, csv: true })
  const isKnown = Object.entries(manifest.tables ?? {}).every(([name, { file }]) => name === file && all.includes(name))
  if (isKnown && textOf(manifest) === textOf(found)) return
  throw new CommandError(`${out}/${MANIFEST_FILE} is not of its files: export into an empty directory`)
}

/** @throws CommandError for a link, which can lead to another file tomorrow, and for a file that is lost */
export const assertNoLinks = async (named: readonly DescribedFile[], directory: string): Promise<void> => {
  for (const { file } of named) {
    const found = await lstat(join(directory, file)).catch(() => undefined)
    if (found?.isFile()) continue
    const what =
      found === undefined ? 'it is lost' : `it is a ${found.isSymbolicLink() ? 'link' : 'folder'}, and no file`
    throw new CommandError(`${join(directory, file)}: ${what}: export into an empty directory`)
  }
}

/**
 * @param known files that were read before
 * @throws CommandError if a file was changed after it was written
 */
export const assertIntact = async (
  named: readonly DescribedFile[],
  directory: string,
  known: Readonly<Record<string, DescribedFile>> = {},
): Promise<void> => {
  const read = Object.values(known)
  for (const { file, bytes, sha256 } of named) {
    const before = read.find(one => one.file === file)
    const now = before ?? (await sizeAndHashOf(join(directory, file)).catch(() => undefined))
    if (now?.sha256 === sha256 && now.bytes === bytes) continue
    throw new CommandError(`${file} was changed after it was written: export into an empty directory`)
  }
}

/** Sums by currency, without rows that count nothing. */
export const sumsOf = (totals: Totals['totals'], what: 'owed' | 'paid'): Sums => {
  const sums: Adding = new Map()
  for (const row of totals) if (row[`${what}_count`] > 0) addTo(sums, row.currency, row[`${what}_amount`])
  return textOfSums(sums)
}

export const sizeAndHashOf = async (file: string): Promise<Omit<DescribedFile, 'file'>> => {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk)
  return { bytes: (await stat(file)).size, sha256: hash.digest('hex') }
}

/**
 * The manifest of an export that is not finished. `read_from`: the copy that was read first, by `copyRead`. Exports
 * that earlier versions began have none, or an id.
 */
export type Begun = Pick<
  Manifest,
  'organization' | 'as_of' | 'rules_version' | 'generation' | 'sandbox' | 'opened' | 'after'
> & {
  readonly read_from?: string
}

/** @throws CommandError for a file that is no JSON: cut off, or not written by an export */
export const readJson = async <Document>(file: string): Promise<Document | undefined> => {
  if (!existsSync(file)) return undefined
  const text = await readFile(file, 'utf8')
  try {
    return JSON.parse(text)
  } catch {
    throw new CommandError(`${file} is not whole, or not of an export: choose another directory, or remove it`)
  }
}

/** Writes a manifest whole, or not at all. */
export const writeJson = (file: string, document: object): Promise<void> =>
  writeWhole(file, `${JSON.stringify(document, null, 2)}\n`, AS_USUAL)
