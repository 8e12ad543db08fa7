/**
 * Sums up the documents of a generation as of some positions: by organization their number, what is owed and paid, and
 * a digest of all; and the balances that are wrong. Memory holds one answer of Elasticsearch, a summary of each
 * organization, and its balances.
 */
import { createHash } from 'node:crypto'
import { addTo, type Sums, textOfSums } from '../../schemas/money.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { type Kind, kinds } from '../../schemas/stored/documents.ts'
import { type GenerationLayout, type LayoutSource, layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { createProgressLine } from '../terminal.ts'
import { asOf, type Document } from './as-of.ts'
import { BalanceCheck, type WrongBalance } from './check-balances.ts'
import type { RetryContext } from './read-retries.ts'
import { scan } from './scan.ts'
import { isAmount } from './sums.ts'

export type Summary = {
  readonly counts: Partial<Record<Kind, number>>
  /** By currency, as decimal strings: amounts that are owed now, and amounts that left through payroll. */
  readonly owed: Record<string, string>
  readonly paid: Record<string, string>
  /** Digest of every document, independent of their order. */
  readonly digest: string
}

type Adding = {
  readonly counts: Partial<Record<Kind, number>>
  readonly owed: Sums
  readonly paid: Sums
  digest: bigint
}

/**
 * @param only the only organization to read; undefined for all
 * @param comparable returns what the digest has of a document
 */
export const summarize = async (
  identity: LayoutSource,
  positions: readonly number[],
  only: string | undefined,
  { prefix, say, now, ...reading }: CommandContext,
  comparable: (kind: Kind, document: Document) => Document = (_, document) => document,
): Promise<{ readonly summaries: Map<string, Summary>; readonly wrongBalances: readonly WrongBalance[] }> => {
  const layout = layoutOf(prefix, identity)
  // Before the records: a balance that is made meanwhile may be of changes that are not read any more.
  const balances = await BalanceCheck.of(layout, positions, only, reading)
  const found = new Map<string, Adding>()
  const showProgress = createProgressLine({ say }, now)
  let read = 0
  for (const kind of kinds) {
    for await (const { org, document } of documentsOf(layout, kind, only, positions, reading)) {
      const summary: Adding = found.get(org) ?? { counts: {}, owed: new Map(), paid: new Map(), digest: 0n }
      found.set(org, summary)
      summary.counts[kind] = (summary.counts[kind] ?? 0) + 1
      const { id, source } = comparable(kind, document)
      summary.digest = addToDigest(summary.digest, documentHash(kind, id, source))
      const { body: { currency = '', net_amount = '0', amount = '0' } = {}, superseded_by_id } = document.source
      balances.add(kind, org, document.source)
      // A damaged amount has no place in a sum. The digest and the balances show the damage.
      if (kind === 'payouts' && superseded_by_id === null && isAmount(net_amount))
        addTo(summary.owed, String(currency), net_amount)
      if (kind === 'payroll_files' && isAmount(amount)) addTo(summary.paid, String(currency), amount)
      read++
      showProgress(`${read} documents of ${identity.generation} read`)
    }
  }
  const summaries = new Map(
    [...found].map(([org, { counts, owed, paid, digest }]) => [
      org,
      { counts, owed: textOfSums(owed), paid: textOfSums(paid), digest: digest.toString(16).padStart(64, '0') },
    ]),
  )
  return { summaries, wrongBalances: balances.wrong() }
}

export const documentHash = (kind: Kind, id: string, content: unknown): string =>
  createHash('sha256')
    .update(`${kind}\n${id}\n${JSON.stringify(content)}`)
    .digest('hex')

/** A digest is the sum of hashes, and does not depend on the order of the documents. */
export const addToDigest = (digest: bigint, hash: string): bigint => (digest + BigInt(`0x${hash}`)) % 2n ** 256n

export async function* documentsOf(
  { searchOf }: GenerationLayout,
  kind: Kind,
  org: string | undefined,
  positions: readonly number[],
  reading: RetryContext,
): AsyncGenerator<{ readonly org: string; readonly document: Document }> {
  for await (const document of scan(searchOf([kind], org), reading)) {
    const owner = String(document.source.org_id ?? '')
    const then = asOf(kind, document, positionFor(kind, owner, document, positions))
    if (then !== undefined) yield { org: owner, document: then }
  }
}

/** The position of the partition that a document came from. */
export const positionFor = (kind: Kind, org: string, { source }: Document, positions: readonly number[]): number =>
  positions[kind === 'parked' ? Number(source.partition) : partitionOf(org, positions.length)] ?? 0
