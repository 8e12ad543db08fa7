/**
 * Compares two generations of different topics, organization by organization.
 * In: both, each as of positions that have the same records before them. Out: the organizations that differ.
 * All of each document is compared, except the offsets in it. The order of records is that of the logs, which `copy.ts`
 * has compared; the order of versions and of payouts of one rep and period is compared here, too.
 */
import type { GenerationBody } from '../../core/log/index.ts'
import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import { type Kind, kinds } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import type { Document, Fields } from '../documents/as-of.ts'
import { addToDigest, documentHash, documentsOf } from '../documents/summarize.ts'
import { createProgressLine } from '../terminal.ts'

export type ComparedSide = { readonly identity: GenerationBody; readonly positions: readonly number[] }

export type Compared = {
  readonly organizations: number
  /** '' for parked records without an organization. */
  readonly differing: readonly string[]
}

export const compareGenerations = async (
  a: ComparedSide,
  b: ComparedSide,
  context: CommandContext,
): Promise<Compared> => {
  const [left, right] = [await digestsOf(a, context), await digestsOf(b, context)]
  const organizations = [...new Set([...left.keys(), ...right.keys()])].sort()
  const differing = organizations.filter(org => left.get(org) !== right.get(org))
  return { organizations: organizations.length, differing }
}

const digestsOf = async (
  { identity, positions }: ComparedSide,
  { prefix, say, now, ...reading }: CommandContext,
): Promise<Map<string, bigint>> => {
  const layout = layoutOf(prefix, identity)
  const digests = new Map<string, bigint>()
  const showProgress = createProgressLine({ say }, now)
  let read = 0
  for (const kind of kinds) {
    for await (const { org, document } of documentsOf(layout, kind, undefined, positions, reading)) {
      const { id, source } = withoutOffsets(kind, document)
      digests.set(org, addToDigest(digests.get(org) ?? 0n, documentHash(kind, id, source)))
      showProgress(`${++read} documents of ${identity.generation} read`)
    }
  }
  return digests
}

/** Returns what a document says in any topic that has the same records. */
export const withoutOffsets = (kind: Kind, { id, source }: Document): Document => {
  if (kind === 'parked') {
    const { topic: _, partition, offset, code, ...own } = source
    return { id: '', source: { ...own, code: code === 'batch_undecodable' ? 'record_undecodable' : code } }
  }
  // A list of other records. Its length has that of the offsets in it.
  if (source.seq === undefined) {
    const { body_bytes: _, body, ...own } = source
    return { id, source: { ...own, body: withoutSeq(body) } }
  }
  const { seq, first_seq = seq, until_seq, ...own } = source
  // The id of a version ends with its offset.
  const [org, record] = id.split(':')
  return {
    id: `${org}:${record}`,
    source: { ...own, isFirst: first_seq === seq, isCurrent: until_seq === UNTIL_FOREVER },
  }
}

const withoutSeq = (lists: Fields['body'] = {}) =>
  Object.fromEntries(
    Object.entries(lists).map(([name, items]) => [
      name,
      (items as readonly Fields[]).map(({ seq: _, ...item }) => item),
    ]),
  )
