/**
 * Compares the files of an export or a close with its manifest. Promises: each file that was changed, lost or added is
 * named, in the order of the manifest, and of lines the first that was changed. The manifest that counts is the signed
 * one.
 */
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { VerifierKey } from '../../core/runtime/index.ts'
import { csvOfTable } from '../export/csv.ts'
import { BEGUN_FILE } from '../export/export.ts'
import { findChangedLines } from '../export/line-digests.ts'
import { linesOf } from '../export/lines.ts'
import { type DescribedFile, type FileDescription, sizeAndHashOf } from '../export/manifest.ts'
import { checkSignature, EvidenceDiffers } from '../signing/check-signature.ts'
import { MANIFEST_FILE, NOTE_FILE, readIfThere } from '../signing/sign-manifest.ts'
import { closeTables } from './close-tables.ts'
import { folderCovers } from './covers.ts'
import { finishedPath, isLockOfRun, type StoredEntry, sayUnfinished, wrongKind } from './stored-files.ts'
import type { Verified } from './verified.ts'

type Listed = DescribedFile & Partial<Pick<FileDescription, 'lines'>>

/**
 * @param entries what is in the directory
 * @throws EvidenceDiffers if there is no manifest that can be believed
 */
export const verifyFolder = async (
  directory: string,
  entries: readonly StoredEntry[],
  keys: readonly VerifierKey[],
  { signal }: { readonly signal: AbortSignal },
): Promise<Verified & { readonly manifest: ParsedManifest }> => {
  const wrongAt = (file: string): string | undefined => {
    const entry = entries.find(({ path }) => path === file)
    return entry === undefined ? 'this file is lost' : wrongKind(entry, 'file')
  }
  for (const file of [MANIFEST_FILE, NOTE_FILE]) {
    const wrong = wrongAt(file)
    const isAbsent = file === NOTE_FILE && entries.every(({ path }) => path !== file)
    if (wrong !== undefined && !isAbsent) throw new EvidenceDiffers(`${directory}/${file}: ${wrong}`)
  }
  const found = await readFile(join(directory, MANIFEST_FILE))
  const note = await readIfThere(join(directory, NOTE_FILE))
  const { manifest, signature, signers } = checkSignature(found, note, keys, directory)
  const name = `${directory}/${note === undefined ? MANIFEST_FILE : NOTE_FILE}`
  const { parsed, listed } = filesIn(manifest, name)
  const differences: string[] = []
  if (!manifest.equals(found)) {
    differences.push(`${directory}/${MANIFEST_FILE}: line ${firstLine(manifest, found)} is not as it was signed`)
  }
  const changed = new Set<string>()
  for (const file of listed) {
    signal.throwIfAborted()
    const what = wrongAt(file.file) ?? (await differenceOfFile(file, directory, changed, signal))
    if (what === undefined) continue
    changed.add(file.file)
    differences.push(`${directory}/${file.file}: ${what}`)
  }
  const known = new Set([MANIFEST_FILE, NOTE_FILE, ...listed.map(({ file }) => file)])
  const unfinished: string[] = []
  for (const entry of entries.filter(({ path }) => !known.has(path))) {
    const { path, kind } = entry
    const isUnfinished = path === BEGUN_FILE || known.has(finishedPath(path) ?? '')
    if (kind === 'file' && (isUnfinished || isLockOfRun(entry))) unfinished.push(sayUnfinished(`${directory}/${path}`))
    else differences.push(`${directory}/${path}: the manifest does not name it`)
  }
  const covers = folderCovers(parsed, name)
  return {
    manifest: parsed,
    kind: listed.some(({ file }) => file === CONTROL_FILE) ? 'close' : 'export',
    signed: [{ manifest: MANIFEST_FILE, signers, covers: covers.fields }],
    said: [signature, covers.said, `${listed.length} files are compared`],
    unfinished,
    differences,
  }
}

/** Only a close has it. */
export const CONTROL_FILE = 'control_totals.ndjson'

/** The number of the first line that differs. */
const firstLine = (expected: Buffer, got: Buffer): number => {
  const [ours = [], theirs = []] = [expected, got].map(text => text.toString('latin1').split('\n'))
  for (let at = 0; ; at++) if (ours[at] !== theirs[at] || at > ours.length) return at + 1
}

type ParsedManifest = Readonly<Record<string, unknown>>

/** All files that a manifest names. @throws EvidenceDiffers for a manifest of another form */
const filesIn = (manifest: Buffer, name: string): { readonly parsed: ParsedManifest; readonly listed: Listed[] } => {
  const refused = new EvidenceDiffers(
    `${name}: expected the manifest of an export or a close: "files" with file, bytes, sha256`,
  )
  let parsed: ParsedManifest
  try {
    parsed = JSON.parse(manifest.toString('utf8'))
  } catch {
    throw refused
  }
  const isMap = (value: unknown): value is object => typeof value === 'object' && value !== null
  const { files, tables = {} } = Object(parsed)
  if (!isMap(files) || !isMap(tables)) throw refused
  const all: readonly unknown[] = [...Object.values(files), ...Object.values(tables)]
  if (!all.every(isListed)) throw refused
  return { parsed, listed: [...all] }
}

/** A name of a file in the folder itself, and the digest of its bytes. */
const isListed = (value: unknown): value is Listed => {
  if (typeof value !== 'object' || value === null) return false
  const { file, bytes, sha256, lines }: Partial<Listed> = value
  const hasLines = lines === undefined || (lines.each >= 1 && typeof lines.digests === 'string')
  return (
    /^\w[\w.-]*$/.test(file ?? '') && Number.isSafeInteger(bytes) && /^[0-9a-f]{64}$/.test(sha256 ?? '') && hasLines
  )
}

/** In words; undefined if the file has the bytes that the manifest says. */
const differenceOfFile = async (
  { file, bytes, sha256, lines }: Listed,
  directory: string,
  changed: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const path = join(directory, file)
  const now = await sizeAndHashOf(path).catch((error: { code?: unknown }) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
  if (now === undefined) return 'this file is lost'
  if (now.bytes === bytes && now.sha256 === sha256) return undefined
  const how = now.bytes === bytes ? `its SHA-256 is ${now.sha256}, not ${sha256}` : `${now.bytes} bytes, not ${bytes}`
  const where = lines ? await changedLines(path, lines) : await changedRow(file, directory, changed, signal)
  return `it was changed${where === undefined ? '' : `, first in ${where}`}: ${how}`
}

const changedLines = async (path: string, digests: FileDescription['lines']): Promise<string | undefined> => {
  const found = digests && (await findChangedLines(path, digests))
  if (found === undefined) return undefined
  const { from, to } = found
  if (from !== to) return `lines ${from} to ${to}`
  const id = await idInLine(path, from)
  return `line ${from}${id === undefined ? '' : ` (${id})`}`
}

/** The id of the record in a line; undefined if it has none. */
const idInLine = async (path: string, wanted: number): Promise<string | undefined> => {
  let at = 0
  for await (const line of linesOf(path)) {
    if (++at !== wanted) continue
    return /^\{"id":"([a-z]+_[0-9A-Za-z]{1,64})"/.exec(line.toString('utf8'))?.[1]
  }
  return undefined
}

/** Makes a table of CSV again from the file that it was made from; undefined if this file was changed, too. */
const changedRow = async (
  file: string,
  directory: string,
  changed: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const table = closeTables.find(({ name }) => file === `${name}.csv`)
  if (table === undefined || changed.has(`${table.from}.ndjson`)) return undefined
  await using handle = await open(join(directory, file), 'r')
  let [row, at] = [0, 0]
  for await (const text of csvOfTable(table, directory, signal)) {
    const expected = Buffer.from(text)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(expected.length), 0, expected.length, at)
    if (!buffer.subarray(0, bytesRead).equals(expected)) return row === 0 ? 'its heading' : `row ${row}`
    row++
    at += expected.length
  }
  return 'what follows the last row'
}
