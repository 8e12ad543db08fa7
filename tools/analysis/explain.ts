/** `commission projection explain`: the history of a payout: its chain, step by step, and what was paid. Read-only. */

import { type DocumentAddress, getEach, multiGet } from '../../core/store/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import {
  type ChainBody,
  type ChainDocument,
  chainId,
  type Kind,
  type PayoutDocument,
  type PayrollDocument,
  recordId,
  type StatementDocument,
} from '../../schemas/stored/documents.ts'
import { type GenerationLayout, layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { asOf } from '../documents/as-of.ts'
import type { PayrollContent } from '../documents/comparable-content.ts'
import { withRetries } from '../documents/read-retries.ts'
import { chunksOf, portionsOf, sizesOf } from '../documents/sizes.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { readAll, servedPositionsOf } from '../generations/generations.ts'
import { findWhole } from '../generations/sandboxes.ts'
import { COMPARED_DOCUMENTS } from '../limits.ts'
import { timeOf } from '../terminal.ts'
import { type Explanation, explanationText } from './explanation.ts'
import { balancesOf, type ChainPayout, type PayoutChange, stepOf } from './payout-changes.ts'

export type ExplainOptions = {
  readonly org: string
  readonly payout: string
  /** A generation or `sandbox:NAME`; the live generation by default. */
  readonly generation: string | undefined
  readonly json: boolean
}

export const explain = async (options: ExplainOptions, given: CommandContext): Promise<ExitCode> => {
  const { org, payout, json } = options
  const name = options.generation ?? (await readAll(given)).live
  const { identity, context } = await findWhole(name, given, org)
  const { topic, partitions } = identity
  const { addressOf } = layoutOf(context.prefix, identity)
  const partition = partitionOf(org, partitions)
  const position = (await servedPositionsOf(identity, context, partition))[partition] ?? 0
  const read = readerOf(layoutOf(context.prefix, identity), position, context)
  const sizesIn: Sizes = (kind, ids) =>
    sizesOf(
      ids.map(id => addressOf(kind, id)),
      context,
    )

  const [asked] = await read('payouts', [recordId(org, payout)])
  if (asked === undefined) throw new CommandError(`there is no ${payout} of ${org} in ${name}`)
  const { rep_id, period_id } = asked
  const [chain] = await read('chains', [chainId(org, rep_id, period_id)])
  if (chain === undefined) throw new Error('a payout without its chain')
  const { payouts, payroll } = chain.body

  const steps: PayoutChange[] = []
  let before: ChainPayout | undefined
  for await (const now of chainOf(org, payouts, read, sizesIn)) {
    steps.push(stepOf(before, now))
    before = now
  }
  const positionOf = (offset: number): string => `${topic}:${partition}:${offset}`
  const paid: Explanation['payroll'][number][] = []
  for await (const { seq, at, body } of payrollOf(org, payroll, read)) {
    const { rep_id: _, period_id: __, ...record } = body
    paid.push({ ...record, at: timeOf(at), position: positionOf(seq) })
  }
  const explanation: Explanation = {
    generation: name,
    organization: org,
    rep: rep_id,
    period: period_id,
    payout,
    as_of: positionOf(position),
    current: before?.payout.id ?? null,
    steps: steps.map(({ offset, at, ...step }) => ({ ...step, at: timeOf(at), position: positionOf(offset) })),
    payroll: paid,
    balances: balancesOf(before?.payout, paid),
  }
  context.out(json ? `${JSON.stringify(explanation)}\n` : explanationText(explanation))
  return exitCodes.done
}

/** The documents of a history. */
type Documents = {
  readonly chains: ChainDocument
  readonly payouts: PayoutDocument & { readonly body: Omit<ChainPayout['payout'], 'superseded_by_id'> }
  readonly statements: StatementDocument & { readonly body: StatementBody }
  readonly payroll_files: PayrollDocument & { readonly body: PayrollContent }
}
/** Reads documents as of the position, in the order of their ids; undefined for a missing one. */
type Read = <Of extends keyof Documents>(kind: Of, ids: readonly string[]) => Promise<(Documents[Of] | undefined)[]>

const readerOf =
  ({ addressOf }: GenerationLayout, position: number, { send, sleep }: CommandContext): Read =>
  async <Of extends keyof Documents>(kind: Of, ids: readonly string[]) => {
    const docs = ids.map(id => addressOf(kind, id))
    const read = (part: readonly DocumentAddress[]) => withRetries({ sleep }, () => multiGet<Documents[Of]>(send, part))
    const found = await getEach(docs, read)
    return found.map(one =>
      one.found ? asOf(kind, { id: one._id, source: one._source }, position)?.source : undefined,
    )
  }

/** @throws Error if a document is missing: everything that a chain names must exist */
const readAllOf = async <Of extends keyof Documents>(
  read: Read,
  kind: Of,
  ids: readonly string[],
): Promise<Documents[Of][]> => {
  const found = await read(kind, ids)
  return found.map(document => {
    if (document === undefined) throw new Error('a record that its chain names is missing')
    return document
  })
}

/** Yields the payouts of a chain in order. Traces can be long, so only few are in memory at a time. */
async function* chainOf(
  org: string,
  items: ChainBody['payouts'],
  read: Read,
  sizesIn: Sizes,
): AsyncGenerator<ChainPayout> {
  for await (const ids of portionsOfChain(org, items, sizesIn)) {
    const payouts = await readAllOf(read, 'payouts', ids)
    const statements = await readAllOf(read, 'statements', ids)
    for (const [index, { seq, at, superseded_by_id, body }] of payouts.entries()) {
      const statement = statements[index]
      if (statement === undefined) throw new Error('a payout without its statement')
      const { calculation_trace, calculation_trace_recorded } = statement.body
      const payout = { ...body, superseded_by_id }
      yield { payout, traceRecorded: calculation_trace_recorded, trace: calculation_trace, seq, at }
    }
  }
}
/** Yields the payroll records of a chain in order. */
async function* payrollOf(org: string, items: ChainBody['payroll'], read: Read): AsyncGenerator<PayrollDocument> {
  for (const chunk of chunksOf(items, COMPARED_DOCUMENTS)) {
    const ids = chunk.map(({ id }) => recordId(org, id))
    yield* await readAllOf(read, 'payroll_files', ids)
  }
}

/** Yields ids of payouts that fit into memory together with their statements. */
async function* portionsOfChain(
  org: string,
  items: ChainBody['payouts'],
  sizesIn: Sizes,
): AsyncGenerator<readonly string[]> {
  for (const chunk of chunksOf(items, COMPARED_DOCUMENTS)) {
    const ids = chunk.map(({ id }) => recordId(org, id))
    const [payouts, statements] = [await sizesIn('payouts', ids), await sizesIn('statements', ids)]
    yield* portionsOf(
      ids,
      payouts.map((size, at) => size + (statements[at] ?? 0)),
    )
  }
}
type Sizes = (kind: Kind, ids: readonly string[]) => Promise<number[]>

type StatementBody = {
  readonly calculation_trace_recorded: boolean
  readonly calculation_trace: ChainPayout['trace']
}
