/**
 * In: an organization, and optionally a moment and one period. Out: by period and currency, the amount owed and the
 *   amount that has left, and the number of records behind each.
 * Promises: the sums are exact, over exactly the records that the lists hold at that position.
 * Can go wrong: Elasticsearch cannot answer completely or in time → `unavailable`.
 *
 * Elasticsearch counts how often each amount occurs, as text. Only here an amount becomes a number. Each answer is
 * added at once and dropped: the sums take memory for their rows, not for the amounts. The time grows with the
 * organization's records. So a result is cached until the organization changes, and requests for the same result share
 * one summing. A request that times out finds the result on its retry.
 */

import { LRUCache } from 'lru-cache'
import { Exact, textOfSum } from '../../../schemas/money.ts'
import type { Totals } from '../../../schemas/resources.ts'
import { listKinds } from '../../../schemas/stored/documents.ts'
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { scheduleTimer, unavailable, waitOrAbort, withTimeLimit } from '../../runtime/index.ts'
import {
  notReplacedRange,
  type Reading,
  type ReadPosition,
  type ReadScope,
  readingOfProcess,
  type ScopedSearch,
  searchSmall,
  smallSearch,
  visibleRange,
} from '../../store/index.ts'
import { type Pace, usualPace } from '../capacity/pace.ts'
import {
  TOTALS_AMOUNTS,
  TOTALS_AT_ONCE,
  TOTALS_OF_ORGANIZATION,
  TOTALS_RECORDS,
  TOTALS_ROWS_REMEMBERED,
  TOTALS_TIME_MAX,
} from '../limits.ts'
import type { ReaderParts } from './read-list.ts'
import { type Moment, type RecordName, textOfName } from './read-parameters.ts'
import { createReadDocumentsAsOf } from './read-record.ts'

export type TotalsRead = {
  readonly position: ReadPosition
  readonly totals: Totals
  readonly last: LastChange | undefined
}
/** `at` in milliseconds. */
type LastChange = { readonly id: string; readonly seq: number; readonly at: number }
/** Parameters of totals. `period`: the id of the only period to add. */
export type TotalsAsked = { readonly asOf: Moment | undefined; readonly period?: string | undefined }
export type ReadTotals = (scope: ReadScope, asked: TotalsAsked) => Promise<TotalsRead>
type Row = Totals['totals'][number]

/** Creates the reader of totals and its cache. */
export const createReadTotals = (parts: ReaderParts, search: ScopedSearch): ReadTotals => {
  const readDocumentsAsOf = createReadDocumentsAsOf(parts)
  // Limited by rows: each change is a moment that a client can ask about.
  const summed = new LRUCache<string, readonly Row[]>({
    maxSize: TOTALS_ROWS_REMEMBERED,
    sizeCalculation: rows => rows.length + 1,
  })
  const summing = new Map<string, Promise<readonly Row[]>>()

  const ask = async <Aggregations, Source = unknown>(where: SearchTarget, body: object, reading: Reading) => {
    return smallSearch<Aggregations, Source>(await searchSmall(search, where, body, reading))
  }

  /** Counts how often each combination of these fields occurs. Hands over one answer after the other. */
  const count = async <Field extends string>(
    fields: readonly Field[],
    where: SearchTarget,
    query: object,
    reading: Reading,
    each: (counted: readonly Counted<Field>[]) => Promise<void> | void,
  ): Promise<void> => {
    for (let after: object | undefined; ; ) {
      const sources = fields.map(field => ({ [field]: { terms: { field } } }))
      const composite = { size: TOTALS_AMOUNTS, sources, ...(after && { after }) }
      const body = { size: 0, query, aggs: { all: { composite } } }
      const { all } = (await ask<Composite<Field>>(where, body, reading)).aggregations
      await each(all.buckets)
      if (all.buckets.length < TOTALS_AMOUNTS) return
      after = all.after_key
    }
  }

  /** Asks for some periods at a time, because each search reads all records of its query. */
  const countAmounts = async (
    kind: 'payouts' | 'payroll_files',
    org: string,
    position: ReadPosition,
    period: string | undefined,
    reading: Reading,
    each: (amounts: Amounts) => Promise<void>,
  ): Promise<void> => {
    const where = position.generation.layout.searchOf([kind], org)
    const ofPeriod = period === undefined ? [] : [{ term: { period_id: period } }]
    const periods: Counted<'period_id'>[] = []
    const all = queryOf(where, kind, position, ofPeriod)
    await count(['period_id'], where, all, reading, counted => void periods.push(...counted))
    for (const some of portionsOf(periods)) {
      const query = queryOf(where, kind, position, [{ terms: { period_id: some.map(({ key }) => key.period_id) } }])
      await count(['period_id', 'currency', 'amount'], where, query, reading, each)
    }
  }

  const sum = (org: string, position: ReadPosition, period: string | undefined): Promise<readonly Row[]> => {
    return withTimeLimit(TOTALS_TIME_MAX, scheduleTimer, async signal => {
      const pace = usualPace(signal)
      // Several requests share the sum: its bytes count for none of them.
      const reading = readingOfProcess(signal)
      const groups: Groups = new Map()
      await countAmounts('payouts', org, position, period, reading, some => add(groups, some, 'owed', pace))
      await countAmounts('payroll_files', org, position, period, reading, some => add(groups, some, 'paid', pace))
      return rowsOf(groups)
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
    period: string | undefined,
  ): Promise<readonly Row[]> => {
    // `takenBack` differs once a restored copy is adopted: a sum from before may lack records.
    const keyOfAll = `${position.generation.name}:${org}:${position.takenBack}:${last}`
    const key = period === undefined ? keyOfAll : `${keyOfAll}:${period}`
    for (;;) {
      const known = summed.get(key) ?? summed.get(keyOfAll)?.filter(({ period_id }) => period_id === period)
      if (known) return known
      const running = summing.get(key)
      if (running !== undefined) return waitOrAbort(running, signal)
      if (isRoomFor(org)) break
      const others = [...summing.values()].map(other => other.catch(() => undefined))
      await waitOrAbort(Promise.race(others), signal)
    }
    const began = sum(org, position, period).finally(() => summing.delete(key))
    summing.set(key, began)
    began.then(rows => summed.set(key, rows)).catch(() => undefined)
    return waitOrAbort(began, signal)
  }

  const lastChange = async (scope: ReadScope, position: ReadPosition): Promise<LastChange | undefined> => {
    const { layout } = position.generation
    const where = layout.searchOf(listKinds, scope.org)
    const body = {
      size: 1,
      _source: ['ordinal', 'seq', 'at'],
      sort: [{ seq: 'desc' }],
      query: queryOf(where, 'changes', position),
    }
    const [hit] = (await ask<unknown, ChangeSource>(where, body, scope)).hits
    if (!hit) return undefined
    const found = layout.kindOf(hit._index, hit._id)
    const kind = listKinds.find(of => of === found)
    const id = hit._id.split(':')[1]
    const { ordinal, seq, at } = hit._source
    // Versions have an ordinal, other records have none.
    const isVersion = kind === 'reps' || kind === 'periods'
    if (kind === undefined || id === undefined || isVersion !== (ordinal !== undefined)) {
      throw unavailable('elasticsearch_malformed_search')
    }
    const name: RecordName = ordinal === undefined ? { kind, id } : { kind, id, ordinal }
    return { id: textOfName(name), seq, at }
  }

  return async (scope, { asOf, period }) => {
    const { current, position } = await readDocumentsAsOf(scope, () => [], asOf)
    const last = await lastChange(scope, position)
    const time = await parts.projectionTime(scope, current, last ? 'records' : 'unknown')
    const totals = last ? await sumOnce(scope, position, last.id, period) : []
    return { position: { ...position, time }, totals: { last_change_id: last?.id ?? null, totals: [...totals] }, last }
  }
}

type Counted<Field extends string> = { readonly key: Readonly<Record<Field, string>>; readonly doc_count: number }

type Composite<Field extends string> = {
  readonly all: { readonly buckets: readonly Counted<Field>[]; readonly after_key?: object }
}
type ChangeSource = { readonly ordinal?: number; readonly seq: number; readonly at: number }

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

const queryOf = (
  { filters }: SearchTarget,
  what: 'payouts' | 'payroll_files' | 'changes',
  position: ReadPosition,
  more: readonly object[] = [],
): object => ({
  bool: {
    filter: [
      ...filters,
      { range: { seq: visibleRange(position) } },
      ...(what === 'payouts' ? [{ range: { until_seq: notReplacedRange(position) } }] : []),
      ...more,
    ],
  },
})

type Amounts = readonly Counted<'period_id' | 'currency' | 'amount'>[]

type Sum = { amount: Exact; count: number }
type Group = { readonly owed: Sum; readonly paid: Sum }
/** By period and currency. */
type Groups = Map<string, Group>
const nothing = (): Sum => ({ amount: new Exact(0), count: 0 })

/** Adds amounts to the sums. Nothing holds them afterwards: an organization can have millions of different amounts. */
const add = async (groups: Groups, amounts: Amounts, what: keyof Group, pace: Pace): Promise<void> => {
  for (const { key, doc_count } of amounts) {
    const name = `${key.period_id} ${key.currency}`
    const group = groups.get(name) ?? { owed: nothing(), paid: nothing() }
    groups.set(name, group)
    group[what].amount = group[what].amount.plus(new Exact(key.amount).times(doc_count))
    group[what].count += doc_count
    if (pace.countWork(1, 0)) await pace.rest()
  }
}

const rowsOf = (groups: Groups): Row[] =>
  [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { owed, paid }]) => {
      const [period_id = '', currency = ''] = name.split(' ')
      return {
        period_id,
        currency,
        owed_amount: textOfSum(owed.amount),
        owed_count: owed.count,
        paid_amount: textOfSum(paid.amount),
        paid_count: paid.count,
      }
    })
