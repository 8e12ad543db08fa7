/**
 * Compares a copy that grows: each of its parts with its manifest, and each manifest with that of the part before it.
 * In: the directory of the parts. Out: each part that is lost, or is of another copy, is named.
 * Can go wrong: `last-part.json` is not signed. Somebody may remove the last parts, and name an earlier one there.
 */
import { join } from 'node:path'
import type { VerifierKey } from '../../core/runtime/index.ts'
import { nameOfPart, UNFINISHED } from '../export/add-part.ts'
import { LAST_PART_FILE } from '../export/export.ts'
import { type Manifest, readJson } from '../export/manifest.ts'
import { type PartBegin, whyNoPart } from '../export/parts.ts'
import { CommandError } from '../failures.ts'
import { EvidenceDiffers } from '../signing/check-signature.ts'
import { printable } from '../terminal.ts'
import { entriesIn, finishedPath, isLockOfRun, type StoredEntry, sayUnfinished, wrongKind } from './stored-files.ts'
import type { Signed, Verified } from './verified.ts'
import { verifyFolder } from './verify-folder.ts'

const numberOf = (name: string): number | undefined => {
  const number = /^part-(\d{6})$/.exec(name)?.[1]
  return number === undefined ? undefined : Number(number)
}

/** Whether a directory with these entries is a copy that grows. */
export const isCopy = (entries: readonly StoredEntry[]): boolean =>
  entries.some(({ path }) => path === LAST_PART_FILE || numberOf(path) !== undefined)

/** @param entries all in the directory and in its folders, in order */
export const verifyCopy = async (
  directory: string,
  entries: readonly StoredEntry[],
  keys: readonly VerifierKey[],
  steps: { readonly signal: AbortSignal },
): Promise<Verified> => {
  const [said, unfinished, differences]: [string[], string[], string[]] = [[], [], []]
  const signed: Signed[] = []
  const manifests = new Map<number, Manifest>()
  let last = 0
  for (const entry of entries) {
    const { path, kind } = entry
    if (path.includes('/')) continue
    const name = `${directory}/${path}`
    const number = numberOf(path)
    if (number === undefined) {
      if (path === LAST_PART_FILE && kind === 'file') continue
      const isUnfinished = path === UNFINISHED ? kind === 'folder' : finishedPath(path) === LAST_PART_FILE
      if (isUnfinished || isLockOfRun(entry)) unfinished.push(sayUnfinished(name))
      else differences.push(`${name}: no copy has such a ${kind}`)
      continue
    }
    if (number !== last + 1) differences.push(`${directory}/${nameOfPart(last + 1)}: this part is lost`)
    const before = manifests.get(number - 1)
    last = number
    const wrong = wrongKind(entry, 'folder')
    if (wrong !== undefined) {
      differences.push(`${name}: ${wrong}`)
      continue
    }
    const below = entries.filter(one => one.path.startsWith(`${path}/`))
    const inside = below.map(one => ({ ...one, path: one.path.slice(path.length + 1) }))
    const top = inside.filter(one => !one.path.includes('/'))
    const part = await verifyFolder(join(directory, path), top, keys, steps).catch((error: unknown) => {
      if (!(error instanceof EvidenceDiffers)) throw error
      differences.push(error.message)
      return undefined
    })
    if (part === undefined) continue
    // Of another form, each field that is compared differs.
    const manifest = part.manifest as unknown as Manifest
    manifests.set(number, manifest)
    said.push(...part.said)
    unfinished.push(...part.unfinished)
    differences.push(...part.differences)
    signed.push(...part.signed.map(one => ({ ...one, manifest: `${path}/${one.manifest}` })))
    const why = number === 1 || before ? whyNoPart(manifest, before, before ?? manifest) : undefined
    if (why !== undefined) differences.push(printable(`${name} is ${why}`))
  }
  const lost = await lostEnd(directory, entries, manifests, last)
  if (lost !== undefined) differences.push(lost)
  said.push(`${last} parts are compared`)
  return { kind: 'copy', signed, said, unfinished, differences }
}

/** In words; undefined if the copy has the part that was named as its last one. */
const lostEnd = async (
  directory: string,
  entries: readonly StoredEntry[],
  manifests: ReadonlyMap<number, Manifest>,
  last: number,
): Promise<string | undefined> => {
  const file = `${directory}/${LAST_PART_FILE}`
  const entry = entries.find(({ path }) => path === LAST_PART_FILE)
  // The run that added the first part was killed before it named it.
  if (entry === undefined) return last <= 1 ? undefined : `${file}: this file is lost`
  // Named above.
  if (entry.kind !== 'file') return undefined
  const named = await readJson<PartBegin & { readonly part?: unknown }>(file).catch((error: unknown) => {
    if (error instanceof CommandError) return undefined
    throw error
  })
  const number = typeof named?.part === 'string' ? numberOf(named.part) : undefined
  if (named === undefined || number === undefined) return `${file}: expected the name of the last part`
  const found = manifests.get(number)
  if (found !== undefined && found.digest === named.digest && found.as_of === named.as_of) return undefined
  // A part that was not believed is named above; one that was added meanwhile is not read.
  if (found === undefined && number <= last) return undefined
  const isAdded = async (): Promise<boolean> =>
    (await entriesIn(directory, false)).some(({ path }) => path === nameOfPart(number))
  if (number > last && (await isAdded())) return undefined
  return `${directory}/${nameOfPart(number)}: this part is lost, or is another one than ${LAST_PART_FILE} names`
}
