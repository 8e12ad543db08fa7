/**
 * In: an organization, and optionally a moment, one rep, one period and one deal. Out: by period and currency, the
 *   amount owed, the amount that has left and the difference of both, and the number of records behind each. Of a deal,
 *   the sums of its lines instead (read-deal-lines.ts).
 * Promises: the sums are exact, over exactly the records that the lists hold at that position.
 * Can go wrong: Elasticsearch cannot answer completely or in time → `unavailable`. The payouts of a deal are too many,
 *   or cannot be searched by deal → `invalid_request`.
 *
 * A large organization has balances: its totals after some of its changes (core/projection/balances/). Only what lies
 * between the last of them and the position is counted. Without a balance, everything is; so are the records of one
 * rep, because a balance has the sums of all reps. Elasticsearch counts how often each amount occurs, as text; then
 * amounts become numbers. Each answer is added at once and dropped: the sums take memory for their rows, not for the
 * amounts. A result is cached until the organization changes, once two sums agree (agreed.ts), and requests for the
 * same result share one summing. A request that times out finds the result on its retry, or on the next one if the
 * retry comes late.
 */

import { createHash } from 'node:crypto'
import { DEAL_BYTES_MAX } from '../../../schemas/limits.ts'
import type { ListFilter } from '../../../schemas/lists.ts'
import { differenceOf } from '../../../schemas/money.ts'
import type { Totals } from '../../../schemas/resources.ts'
import { type BalanceDocument, type BalanceRow, listKinds } from '../../../schemas/stored/documents.ts'
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { Refusal, scheduleTimer, unavailable, waitOrAbort, withTimeLimit } from '../../runtime/index.ts'
import {
  addAmount,
  amountFields,
  type Combinations,
  type CountedAmount,
  type CountedCombination,
  countCombinations,
  type DifferencePart,
  groupsOf,
  isVisible,
  lastBalance,
  partsSince,
  type Reading,
  type ReadPosition,
  type ReadScope,
  readingOfProcess,
  rowsOf,
  type ScopedSearch,
  searchSmall,
  smallSearch,
  visibleRange,
} from '../../store/index.ts'
import {
  TOTALS_AMOUNTS,
  TOTALS_AT_ONCE,
  TOTALS_BYTES,
  TOTALS_BYTES_REMEMBERED,
  TOTALS_OF_ORGANIZATION,
  TOTALS_RECORDS,
  TOTALS_TIME_MAX,
} from '../limits.ts'
import { type Pace, usualPace } from '../pace.ts'
import { createAgreed, type Proofs } from './agreed.ts'
import { type DealSums, sumDealLines } from './read-deal-lines.ts'
import type { ReaderParts } from './read-list.ts'
import { requireSearchable } from './read-list.ts'
import { type TotalsAsked, textOfName } from './read-parameters.ts'
import { createReadDocumentsAsOf } from './read-record.ts'
import { type CountsOfRanges, nameOfChange, type Sequences } from './sequences.ts'

export type TotalsRead = {
  readonly position: ReadPosition
  readonly totals: Totals
  readonly last: LastChange | undefined
}
/** Payouts of a deal that were added up. */
export type Added = {
  readonly bytes: number
  /** Whether they were read for this request. Otherwise their sum was known already, or another request began it. */
  readonly isFirst: boolean
  /** Whether the next request goes on after them: then they count also if this one is refused. */
  readonly isKept?: true
}
/** `at` in milliseconds. */
type LastChange = { readonly id: string; readonly sequence: number; readonly seq: number; readonly at: number }
/** @param onAdded called for totals of a deal, also if they are refused, or if the request ends before its answer */
export type ReadTotals = (scope: ReadScope, asked: TotalsAsked, onAdded?: (added: Added) => void) => Promise<TotalsRead>

/** Creates the reader of totals and its cache. @param elapsed milliseconds of a monotonic clock */
export const createReadTotals = (
  parts: ReaderParts,
  search: ScopedSearch,
  sequences: Sequences,
  elapsed: () => number,
  proofs?: Proofs,
): ReadTotals => {
  const readDocumentsAsOf = createReadDocumentsAsOf(parts)
  // Limited by bytes: each change is a moment that a client can ask about, of each rep.
  const summed = createAgreed<Summed>(
    { maxSize: TOTALS_BYTES_REMEMBERED, sizeCalculation: bytesOf },
    elapsed,
    proofs,
    (one, other) => one.digest === other.digest,
  )
  const summing = new Map<string, Summing>()

  const ask = async <Aggregations, Source = unknown>(where: Place, body: object, reading: Reading) => {
    return smallSearch<Aggregations, Source>(await searchSmall(search, where, body, reading))
  }

  /** Counts how often each combination of these fields occurs: one answer after the other. */
  const count = <Field extends string>(
    fields: readonly Field[],
    where: SearchTarget,
    query: object,
    reading: Reading,
  ) =>
    countCombinations(
      fields,
      TOTALS_AMOUNTS,
      query,
      async body => (await ask<Combinations<Field>>(where, body, reading)).aggregations,
    )

  /**
   * Counts the amounts of one part. Those after a balance, and those of a rep, are few, and fit into one answer. If
   * there are more, they are read for some periods at a time, because each search reads all records of its query.
   */
  const countAmounts = async (
    { where, filters }: DifferencePart,
    isFew: boolean,
    only: Only,
    reading: Reading,
    each: (amounts: readonly CountedAmount[]) => Promise<void>,
  ): Promise<void> => {
    const repTerm = only.rep === undefined ? [] : [{ term: { rep_id: only.rep } }]
    const periodTerm = only.period === undefined ? [] : [{ term: { period_id: only.period } }]
    const queryOf = (...more: object[]) => ({ bool: { filter: [...filters, ...repTerm, ...more] } })
    const all = queryOf(...periodTerm)
    if (isFew) {
      const { value: first = [] } = await count(amountFields, where, all, reading).next()
      if (first.length < TOTALS_AMOUNTS) return each(first)
    }
    const periods: CountedCombination<'period_id'>[] = []
    for await (const some of count(['period_id'], where, all, reading)) periods.push(...some)
    for (const some of portionsOf(periods)) {
      const query = queryOf({ terms: { period_id: some.map(({ key }) => key.period_id) } })
      for await (const amounts of count(amountFields, where, query, reading)) await each(amounts)
    }
  }

  const readBalance = async (org: string, position: ReadPosition, reading: Reading) => {
    const { layout } = position.generation
    if (!layout.hasBalances) return undefined
    const { where, body } = lastBalance(layout, org, position.publishedTo)
    const [hit] = (await ask<unknown, BalanceDocument>(where, body, reading)).hits
    if (hit === undefined) return undefined
    const { org_id, seq, body: found } = hit._source
    if (org_id !== org || !isVisible(seq, position) || !Array.isArray(found?.rows)) {
      throw unavailable('elasticsearch_malformed_search')
    }
    return { seq, rows: found.rows }
  }

  const sum = (org: string, position: ReadPosition, only: Only, onRead: (bytes: number) => void): Promise<Summed> => {
    return withTimeLimit(TOTALS_TIME_MAX, scheduleTimer, async signal => {
      const pace = usualPace(signal)
      // Several requests share the sum: its bytes count for none of them.
      const reading = readingOfProcess(signal)
      const { deal } = only
      if (deal !== undefined) {
        const filter = { ...filterOf(only), deal_id: deal }
        const of = { ...reading, org }
        const ofDeal = await sumDealLines(parts.readPage, of, position, filter, pace, onRead)
        return { rows: [], ofDeal, digest: await digestOf([...ofDeal.lines, { bytes: ofDeal.bytes }], pace) }
      }
      const balance = only.rep === undefined ? await readBalance(org, position, reading) : undefined
      const groups = groupsOf(ofPeriod(balance?.rows ?? [], only.period))
      // An organization without a balance has few changes yet, unless the generation keeps none.
      const isFew = position.generation.layout.hasBalances || only.rep !== undefined
      const since = partsSince(position.generation.layout, org, balance?.seq, position.publishedTo)
      const add = (part: DifferencePart) =>
        countAmounts(part, isFew, only, reading, async amounts => {
          // An organization can have millions of different amounts: nothing holds them afterwards.
          for (const amount of amounts) {
            addAmount(groups, part.what, part.sign, amount)
            if (pace.countWork(1, 0)) await pace.rest()
          }
        })
      if (isFew) await Promise.all(since.map(add))
      else for (const part of since) await add(part)
      const rows = await withOpenAmounts(rowsOf(groups), pace)
      return { rows, digest: await digestOf(rows, pace) }
    })
  }

  const isRoomFor = (org: string): boolean => {
    const ofOrganization = [...summing.keys()].filter(key => key.split(':')[1] === org).length
    return summing.size < TOTALS_AT_ONCE && ofOrganization < TOTALS_OF_ORGANIZATION
  }

  /** Waits until it may run, as long as the request may wait. */
  const sumOnce = async (
    { org, signal }: ReadScope,
    position: ReadPosition,
    last: string,
    only: Only,
    onAdded: (added: Added) => void,
  ): Promise<Answered> => {
    // `takenBack` differs once a restored copy is adopted: a sum from before may lack records.
    const keyOfAll = `${position.generation.id}:${org}:${position.takenBack}:${last}`
    // The prefixes of the ids tell a rep from a period and from a deal.
    const keyOfDeal = only.deal === undefined ? keyOfAll : `${keyOfAll}:${only.deal}`
    const keyOfPeriods = only.rep === undefined ? keyOfDeal : `${keyOfDeal}:${only.rep}`
    const key = only.period === undefined ? keyOfPeriods : `${keyOfPeriods}:${only.period}`
    for (;;) {
      // A deal has other bytes in one period than in all.
      const periods = only.deal === undefined ? summed.get(keyOfPeriods)?.value : undefined
      const known: Answered | undefined =
        summed.get(key)?.value ?? (periods && { rows: ofPeriod(periods.rows, only.period) })
      if (known) {
        onAdded({ bytes: known.ofDeal?.bytes ?? 0, isFirst: false })
        return known
      }
      const running = summing.get(key)
      if (running !== undefined) return waitForSum(running, signal, bytes => onAdded({ bytes, isFirst: false }))
      if (isRoomFor(org)) break
      const others = [...summing.values()].map(({ found }) => found.catch(() => undefined))
      await waitOrAbort(Promise.race(others), signal)
    }
    let bytes = 0
    const remember = summed.begin()
    const found = sum(org, position, only, more => {
      bytes += more
    }).finally(() => summing.delete(key))
    const began = { found, bytes: () => bytes }
    summing.set(key, began)
    found.then(rows => remember(key, rows, position.generation.name)).catch(() => undefined)
    return waitForSum(began, signal, added => onAdded({ bytes: added, isFirst: true }))
  }

  /** The last change, and how many changes there are. Only those after the last balance are searched and counted. */
  const lastChange = async (scope: ReadScope, position: ReadPosition): Promise<LastChange | undefined> => {
    const { layout } = position.generation
    const where = layout.searchOf(listKinds, scope.org)
    const visible = visibleRange(position)
    const begin = await sequences.ofLastBalance(scope, position)
    // An index is sorted from the first change on: without a start, Elasticsearch reads all changes. Measured with a
    // million: 70 ms in place of 25.
    const range = begin.sequence === 0 ? visible : { ...visible, gte: begin.seq }
    const further = { range: { seq: { gt: begin.seq } } }
    const body = {
      size: 1,
      _source: ['ordinal', 'seq', 'at'],
      sort: [{ seq: 'desc' }],
      query: { bool: { filter: [...where.filters, { range: { seq: range } }] } },
      aggs: { all: { filters: { filters: [further] } } },
    }
    const { hits, aggregations } = await ask<CountsOfRanges, ChangeSource>(where, body, scope)
    const [hit] = hits
    const [counted] = aggregations.all.buckets
    if (!hit && begin.sequence === 0) return undefined
    // The change of a balance is never removed.
    if (!hit || !counted) throw unavailable('elasticsearch_malformed_search')
    const { seq, at } = hit._source
    return { id: textOfName(nameOfChange(layout, hit)), sequence: begin.sequence + counted.doc_count, seq, at }
  }

  return async (scope, { asOf, ...only }, onAdded = () => undefined) => {
    const { current, position } = await readDocumentsAsOf(scope, () => [], asOf)
    requireSearchable(filterOf(only), position.generation.layout)
    const last = await lastChange(scope, position)
    const time = await parts.projectionTime(scope, current, last ? 'records' : 'unknown')
    const { rows, ofDeal }: Answered = last ? await sumOnce(scope, position, last.id, only, onAdded) : { rows: [] }
    if (ofDeal?.isTooMuch) throw tooMuch()
    const { id: last_change_id = null, sequence: last_sequence = 0 } = last ?? {}
    const lines = only.deal !== undefined && { line_totals: [...(ofDeal?.lines ?? [])] }
    const totals = { last_change_id, last_sequence, totals: [...rows], ...lines }
    return { position: { ...position, time }, totals, last }
  }
}

/** Waits for a sum. Then, or when the request ends before, `onAdded` gets the bytes that were read for it so far. */
const waitForSum = async (
  { found, bytes }: Summing,
  signal: AbortSignal,
  onAdded: (bytes: number) => void,
): Promise<Summed> => {
  try {
    return await waitOrAbort(found, signal)
  } finally {
    onAdded(bytes())
  }
}

const tooMuch = (): Refusal => {
  const size = `${DEAL_BYTES_MAX / 1024 / 1024} MiB`
  const message = [
    `\`deal_id\`: the current payouts with lines of this deal have more than ${size}, which is too much to add up here.`,
    'Add `period_id` or `rep_id`, or walk `/payouts?deal_id=` as of one moment.',
  ].join(' ')
  return new Refusal('invalid_request', { message, reason: 'deal_bytes' })
}

type Row = Totals['totals'][number]
/** A result that is remembered. */
type Summed = Answered & { readonly digest: string }
type Answered = { readonly rows: readonly Row[]; readonly ofDeal?: DealSums }
/** A result that is being made: of a deal, with the bytes of the payouts that were read so far. */
type Summing = { readonly found: Promise<Summed>; readonly bytes: () => number }
const bytesOf = ({ rows, ofDeal }: Summed, name: string): number => {
  const all: readonly object[] = [...rows, ...(ofDeal?.lines ?? [])]
  return TOTALS_BYTES.each + TOTALS_BYTES.character * name.length + all.reduce((sum, row) => sum + bytesOfRow(row), 0)
}
/** A period id and amounts may be long. */
const bytesOfRow = (row: object): number =>
  Object.values(row).reduce((sum, value) => sum + String(value).length, TOTALS_BYTES.row)

/** The only rep, the only period and the deal to add. */
type Only = Omit<TotalsAsked, 'asOf'>
type Place = Pick<SearchTarget, 'index' | 'routing'>

type ChangeSource = { readonly ordinal?: number; readonly seq: number; readonly at: number }

const filterOf = ({ rep, period, deal }: Only): ListFilter => ({
  ...(rep !== undefined && { rep_id: rep }),
  ...(period !== undefined && { period_id: period }),
  ...(deal !== undefined && { deal_id: deal }),
})

/** Returns the rows of a period; all of them without one. */
const ofPeriod = <Of extends BalanceRow>(rows: readonly Of[], period: string | undefined): readonly Of[] =>
  period === undefined ? rows : rows.filter(({ period_id }) => period_id === period)

/** The open amounts are not stored: a balance has what it is made of. */
const withOpenAmounts = async (rows: readonly BalanceRow[], pace: Pace): Promise<Row[]> => {
  const totals: Row[] = []
  for (const row of rows) {
    totals.push({ ...row, open_amount: differenceOf(row.paid_amount, row.owed_amount) })
    if (pace.countWork(1, 0)) await pace.rest()
  }
  return totals
}

/** Two sums are compared by their digests. */
const digestOf = async (rows: readonly object[], pace: Pace): Promise<string> => {
  const digest = createHash('sha256')
  for (const row of rows) {
    digest.update(JSON.stringify(row))
    if (pace.countWork(1, 0)) await pace.rest()
  }
  return digest.digest('base64url')
}

/** Groups neighbours with up to TOTALS_RECORDS records in all. A larger one is alone. */
const portionsOf = <Item extends { readonly doc_count: number }>(items: readonly Item[]): Item[][] => {
  const portions: Item[][] = []
  let room = 0
  for (const item of items) {
    if (item.doc_count > room || portions.length === 0) {
      portions.push([])
      room = TOTALS_RECORDS
    }
    portions.at(-1)?.push(item)
    room -= item.doc_count
  }
  return portions
}
