/**
 * Compares two generations of different topics, organization by organization.
 * In: both, each as of positions that have the same records before them. Out: the organizations that differ.
 * All of each document is compared, except the offsets in it. The order of records is that of the logs, which `copy.ts`
 * has compared; the order of versions and of payouts of one rep and period is compared here, too. Balances need
 * not be after the same changes: those of each generation are counted again from its own records.
 */
import type { GenerationBody } from '../../core/log/index.ts'
import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import type { Kind } from '../../schemas/stored/documents.ts'
import type { CommandContext } from '../context.ts'
import type { Document, Fields } from '../documents/as-of.ts'
import { summarize } from '../documents/summarize.ts'

export type ComparedSide = { readonly identity: GenerationBody; readonly positions: readonly number[] }

export type Compared = {
  readonly organizations: number
  /** Those with a wrong balance, too. '' for parked records without an organization. */
  readonly differing: readonly string[]
}

export const compareGenerations = async (
  a: ComparedSide,
  b: ComparedSide,
  context: CommandContext,
): Promise<Compared> => {
  const [left, right] = [await summaryOf(a, context), await summaryOf(b, context)]
  const wrong = new Set([...left.wrongBalances, ...right.wrongBalances].map(({ organization }) => organization))
  const organizations = [...new Set([...left.summaries.keys(), ...right.summaries.keys(), ...wrong])].sort()
  const differing = organizations.filter(
    org => wrong.has(org) || left.summaries.get(org)?.digest !== right.summaries.get(org)?.digest,
  )
  return { organizations: organizations.length, differing }
}

const summaryOf = ({ identity, positions }: ComparedSide, context: CommandContext) =>
  summarize(identity, positions, undefined, context, withoutOffsets)

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
