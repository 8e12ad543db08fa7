/**
 * Computes the next balances of an organization from its searchable records: one after each thousand changes or more.
 * A balance is a pure function of the log, because a step depends on the balance before it only.
 * In: an organization, and the published position of its partition. Out: the balances that are due before the position
 *   and not stored yet, in order.
 * Promises: only records before the position count, and all of them are searchable. Sums are exact.
 * Can go wrong: a shard does not answer, or answers too late → `Unanswered`.
 */
import { type BalanceDocument, balanceId } from '../../../schemas/stored/documents.ts'
import type { GenerationLayout, SearchTarget } from '../../../schemas/stored/layout.ts'
import { Unanswered } from '../../runtime/index.ts'
import {
  addAmount,
  amountFields,
  type Combinations,
  type Coverage,
  changeAfter,
  countCombinations,
  type Groups,
  groupsOf,
  lastBalance,
  partsSince,
  rowsOf,
  type SearchAnswer,
  type Send,
} from '../../store/index.ts'
import { BALANCE_AMOUNTS, BALANCE_ROWS_A_STEP, BALANCE_ROWS_MAX } from '../limits.ts'

/** A balance before it is written. */
export type DueBalance = Omit<BalanceDocument, 'body_bytes'> & { readonly id: string }

export type BalanceSteps = {
  readonly layout: GenerationLayout
  readonly send: Send
  readonly signal: AbortSignal
  /** Changes from one balance to the next, if it has few rows. */
  readonly changes: number
}

/** @param most how many balances */
export const nextBalances = async (
  org: string,
  position: number,
  most: number,
  steps: BalanceSteps,
): Promise<DueBalance[]> => {
  const found: DueBalance[] = []
  for (let last = await readStoredBalance(org, position, steps); found.length < most; ) {
    const next = await balanceAfter(last, org, position, steps)
    if (next === undefined) break
    found.push(next)
    last = next
  }
  return found
}

const readStoredBalance = async (
  org: string,
  position: number,
  steps: BalanceSteps,
): Promise<DueBalance | undefined> => {
  const { where, body } = lastBalance(steps.layout, org, position)
  const [hit] = (await search<SearchAnswer<{ _id: string; _source: BalanceDocument }>>(where, body, steps)).hits.hits
  if (hit === undefined) return undefined
  const { body_bytes: _, ...balance } = hit._source
  return { id: hit._id, ...balance }
}

/** Returns undefined if it is not due yet, or if the balance before it is too large. */
const balanceAfter = async (
  last: DueBalance | undefined,
  org: string,
  position: number,
  steps: BalanceSteps,
): Promise<DueBalance | undefined> => {
  const rows = last?.body.rows ?? []
  if (rows.length > BALANCE_ROWS_MAX) return undefined
  const changes = steps.changes * Math.max(1, Math.ceil(rows.length / BALANCE_ROWS_A_STEP))
  const { where, body } = changeAfter(steps.layout, org, last?.seq, changes, position)
  const [hit] = (await search<SearchAnswer<{ _source: { seq: number } }>>(where, body, steps)).hits.hits
  if (hit === undefined) return undefined
  const { seq } = hit._source
  const groups = groupsOf(rows)
  for (const part of partsSince(steps.layout, org, last?.seq, seq + 1)) {
    await count(part, groups, steps)
  }
  const sequence = (last?.sequence ?? 0) + changes
  return { id: balanceId(org, sequence), org_id: org, seq, sequence, body: { rows: rowsOf(groups) } }
}

type Aggregated = Coverage & { readonly aggregations: Combinations<(typeof amountFields)[number]> }

const count = async (
  { what, sign, where, filters }: ReturnType<typeof partsSince>[number],
  groups: Groups,
  steps: BalanceSteps,
): Promise<void> => {
  const ask = async (body: object) => (await search<Aggregated>(where, body, steps)).aggregations
  for await (const amounts of countCombinations(amountFields, BALANCE_AMOUNTS, { bool: { filter: filters } }, ask)) {
    for (const amount of amounts) addAmount(groups, what, sign, amount)
  }
}

/** @throws Unanswered unless every shard has answered whole */
export const search = async <Body extends Coverage>(
  { index, routing }: Pick<SearchTarget, 'index' | 'routing'>,
  body: object,
  { send, signal }: Pick<BalanceSteps, 'send' | 'signal'>,
): Promise<Body> => {
  const answer = await send<Body>(
    {
      method: 'POST',
      path: `/${index}/_search`,
      query: { allow_partial_search_results: false, ...(routing !== undefined && { routing }) },
      body: { track_total_hits: false, ...body },
    },
    signal,
  )
  const { _shards: shards, timed_out } = answer.body
  const isWhole = answer.status === 200 && !timed_out && shards?.failed === 0 && shards.successful === shards.total
  if (!isWhole) throw new Unanswered('elasticsearch', answer.status)
  return answer.body
}
