/**
 * Finds the documents of one organization that differ between two generations. Reads both again, kind by kind, and
 * keeps the id and hash of at most `DIFFERING_HELD` documents in memory. Reads whole only the documents that differ,
 * two at a time.
 */
import { createHash } from 'node:crypto'
import { multiGet } from '../../core/store/index.ts'
import { type Kind, kinds, ownFieldsOf } from '../../schemas/stored/documents.ts'
import { type LayoutSource, layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { DIFFERING_BUCKETS, DIFFERING_HELD } from '../limits.ts'
import { asOf, type Document, type Fields } from './as-of.ts'
import { withRetries } from './read-retries.ts'
import { addToDigest, documentHash, documentsOf, positionFor, type Summary } from './summarize.ts'

export type DocumentDifference = {
  readonly organization: string
  readonly kind: Kind
  readonly id: string
  /** Path of the field; empty if only one generation has the document. */
  readonly field: string
  readonly a: unknown
  readonly b: unknown
}

type Pair = { readonly a: LayoutSource; readonly b: LayoutSource; readonly positions: readonly number[] }
type Counts = Summary['counts']

/** Yields differences by kind and id, with the first field that differs; for a very large organization only some. */
export async function* documentDifferences(
  organization: string,
  pair: Pair,
  counts: readonly Counts[],
  context: CommandContext,
): AsyncGenerator<DocumentDifference> {
  for (const kind of kinds) {
    const count = Math.max(0, ...counts.map(of => of[kind] ?? 0))
    for (const id of await differingIds(organization, kind, pair, count, context)) {
      const read = (of: LayoutSource) => readOne(organization, kind, of, id, pair.positions, context)
      const found = firstDifference(await read(pair.a), await read(pair.b), '')
      if (found) yield { organization, kind, id, ...found }
    }
  }
}

const differingIds = async (
  organization: string,
  kind: Kind,
  { a, b, positions }: Pair,
  count: number,
  { prefix, ...reading }: CommandContext,
): Promise<string[]> => {
  const documents = (of: LayoutSource) => documentsOf(layoutOf(prefix, of), kind, organization, positions, reading)
  const isHeld =
    count <= DIFFERING_HELD ? () => true : await bucketsThatDiffer(kind, documents(a), documents(b), DIFFERING_HELD)
  const differing = new Map<string, string>()
  for await (const { document } of documents(a)) {
    if (isHeld(document.id)) differing.set(document.id, documentHash(kind, document.id, document.source))
  }
  for await (const { document } of documents(b)) {
    if (!isHeld(document.id)) continue
    const hash = documentHash(kind, document.id, document.source)
    if (differing.get(document.id) === hash) differing.delete(document.id)
    else differing.set(document.id, hash)
  }
  return [...differing.keys()].sort()
}

type Documents = AsyncIterable<{ readonly document: Document }>

/**
 * For more ids than memory may hold. Divides all documents by id into buckets with a digest each, and selects differing
 * buckets with at most `held` documents. Returns whether an id is in one of them.
 */
export const bucketsThatDiffer = async (
  kind: Kind,
  a: Documents,
  b: Documents,
  held: number,
): Promise<(id: string) => boolean> => {
  const sides = [a, b]
  const digests = sides.map(() => Array.from({ length: DIFFERING_BUCKETS }, () => ({ digest: 0n, count: 0 })))
  for (const [side, documents] of sides.entries()) {
    for await (const { document } of documents) {
      const bucket = digests[side]?.[bucketOf(document.id)]
      if (bucket === undefined) throw new Error('an id without a bucket')
      bucket.digest = addToDigest(bucket.digest, documentHash(kind, document.id, document.source))
      bucket.count++
    }
  }
  const [ours = [], theirs = []] = digests
  const chosen = new Set<number>()
  let documents = 0
  for (const [bucket, { digest, count }] of ours.entries()) {
    const other = theirs[bucket]
    if (digest === other?.digest && count === other.count) continue
    documents += Math.max(count, other?.count ?? 0)
    if (chosen.size > 0 && documents > held) break
    chosen.add(bucket)
  }
  return id => chosen.has(bucketOf(id))
}

const bucketOf = (id: string): number => createHash('sha256').update(id).digest().readUInt32BE(0) % DIFFERING_BUCKETS

/** Reads one document as of the positions; undefined if it does not exist. */
const readOne = async (
  organization: string,
  kind: Kind,
  of: LayoutSource,
  id: string,
  positions: readonly number[],
  { send, prefix, sleep }: CommandContext,
): Promise<Fields | undefined> => {
  const docs = [layoutOf(prefix, of).addressOf(kind, id)]
  const [found] = await withRetries({ sleep }, () => multiGet<Fields>(send, docs))
  if (!found?.found) return undefined
  const document = { id, source: ownFieldsOf(found._source) }
  return asOf(kind, document, positionFor(kind, organization, document, positions))?.source
}

/** Returns the first field that differs, with both values; undefined if the documents are equal. */
export const firstDifference = (
  a: unknown,
  b: unknown,
  field: string,
): Pick<DocumentDifference, 'field' | 'a' | 'b'> | undefined => {
  if (isObject(a) && isObject(b)) {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const inside = firstDifference(own(a, name), own(b, name), field === '' ? name : `${field}.${name}`)
      if (inside) return inside
    }
    return undefined
  }
  return a === b ? undefined : { field, a, b }
}

/** Field names come from publishers: `constructor` must not find an inherited member. */
const own = (of: Record<string, unknown>, name: string): unknown => (Object.hasOwn(of, name) ? of[name] : undefined)

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
