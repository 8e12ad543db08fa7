/**
 * The documents of one organization in which two generations differ. Both are read again, kind by kind; of each
 * document an id and a hash stay in memory, of so many at most as `DIFFERING_HELD` says. Only documents that differ are
 * read whole, two at a time.
 */
import { createHash } from 'node:crypto'
import { multiGet } from '../../projector/elasticsearch/client.ts'
import { indexOf, type Kind, kinds } from '../../schemas/stored/documents.ts'
import type { CommandContext } from '../context.ts'
import { DIFFERING_BUCKETS, DIFFERING_HELD } from '../limits.ts'
import { asOf, type Document } from './as-of.ts'
import { patiently } from './patiently.ts'
import { add, documentsOf, hashOf, positionFor, type Summary } from './summarize.ts'

export type Difference = {
  readonly organization: string
  readonly kind: Kind
  readonly id: string
  /** Where in the document; empty for one that only one of them has. */
  readonly field: string
  readonly a: unknown
  readonly b: unknown
}

type Pair = { readonly a: string; readonly b: string; readonly positions: readonly number[] }
type Counts = Summary['counts']

/** By kind and id, each with the first field that differs. Of a very large organization only some. */
export async function* differencesOf(
  organization: string,
  pair: Pair,
  counts: readonly Counts[],
  context: CommandContext,
): AsyncGenerator<Difference> {
  for (const kind of kinds) {
    const count = Math.max(0, ...counts.map(of => of[kind] ?? 0))
    for (const id of await differingIds(organization, kind, pair, count, context)) {
      const read = (generation: string) => readOne(organization, kind, generation, id, pair.positions, context)
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
  const documents = (generation: string) =>
    documentsOf(indexOf(prefix, generation, kind), kind, organization, positions, reading)
  const isHeld =
    count <= DIFFERING_HELD ? () => true : await bucketsThatDiffer(kind, documents(a), documents(b), DIFFERING_HELD)
  const differing = new Map<string, string>()
  for await (const { document } of documents(a)) {
    if (isHeld(document.id)) differing.set(document.id, hashOf(kind, document))
  }
  for await (const { document } of documents(b)) {
    if (!isHeld(document.id)) continue
    const hash = hashOf(kind, document)
    if (differing.get(document.id) === hash) differing.delete(document.id)
    else differing.set(document.id, hash)
  }
  return [...differing.keys()].sort()
}

type Documents = AsyncIterable<{ readonly document: Document }>

/**
 * Where there are too many ids to hold: all documents are divided by their ids into buckets, and each has a digest. The
 * buckets that differ are known then; as many of them are looked into as can be held.
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
      bucket.digest = add(bucket.digest, hashOf(kind, document))
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

/** One document whole, as of the positions; undefined where there is none. */
const readOne = async (
  organization: string,
  kind: Kind,
  generation: string,
  id: string,
  positions: readonly number[],
  { send, prefix, sleep }: CommandContext,
): Promise<Document['source'] | undefined> => {
  const docs = [{ _index: indexOf(prefix, generation, kind), _id: id }]
  const [found] = await patiently({ sleep }, () => multiGet(send, docs))
  if (!found?.found) return undefined
  const document = { id, source: found._source as Document['source'] }
  return asOf(kind, document, positionFor(kind, organization, document, positions))?.source
}

/** The first field in which two documents differ, and what stands there; nothing where they are equal. */
export const firstDifference = (
  a: unknown,
  b: unknown,
  field: string,
): Pick<Difference, 'field' | 'a' | 'b'> | undefined => {
  if (isObject(a) && isObject(b)) {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const inside = firstDifference(own(a, name), own(b, name), field === '' ? name : `${field}.${name}`)
      if (inside) return inside
    }
    return undefined
  }
  return a === b ? undefined : { field, a, b }
}

/** Names are publishers' words, too: what every object has besides is none of theirs. */
const own = (of: Record<string, unknown>, name: string): unknown => (Object.hasOwn(of, name) ? of[name] : undefined)

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
