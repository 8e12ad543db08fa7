/**
 * In: an organization and maybe a moment. Out: by period and currency what is owed and what has left, and how many records say so.
 * Promises: of exactly the records that the lists hold at that position, summed exactly.
 * Can go wrong: what Elasticsearch cannot answer completely, or in time, is `unavailable`.
 *
 * Elasticsearch counts how often each amount occurs, as text; only here it becomes a number.
 */
import { indexOf, listKinds } from '../schemas/documents.ts'
import { Exact, textOfSum } from '../schemas/money.ts'
import type { Totals } from '../schemas/resources.ts'
import { smallSearch } from './cut-documents.ts'
import type { Search } from './elasticsearch.ts'
import { unavailable } from './failures.ts'
import { SEARCH_TIME_MAX, TOTALS_PAGE } from './limits.ts'
import { notReplacedRange, type Position, visibleRange } from './position.ts'
import type { ReaderParts } from './read-list.ts'
import { type Moment, type RecordName, textOfName } from './read-parameters.ts'
import { createReadAtMoment } from './read-record.ts'

export type TotalsRead = { readonly position: Position; readonly totals: Totals }
export type ReadTotals = (org: string, asOf: Moment | undefined, signal: AbortSignal) => Promise<TotalsRead>

export const createReadTotals = (parts: ReaderParts, search: Search): ReadTotals => {
  const readAtMoment = createReadAtMoment(parts)
  const ask = async (indices: readonly string[], body: object, signal: AbortSignal) => {
    const answer = await search(indices.join(), JSON.stringify({ ...always, ...body }), signal)
    if (answer === 'too_large') throw unavailable('elasticsearch_too_large')
    return smallSearch(answer)
  }

  const countAmounts = async (
    kind: 'payouts' | 'payroll_files',
    org: string,
    position: Position,
    signal: AbortSignal,
  ) => {
    const counted: Bucket[] = []
    for (let after: object | undefined; ; ) {
      const body = {
        size: 0,
        query: queryOf(org, kind, position),
        aggs: { amounts: { composite: compositeOf(after) } },
      }
      const { aggregations } = await ask([indexOf(parts.prefix, position.generation.name, kind)], body, signal)
      const { buckets, after_key } = (aggregations as { amounts: Amounts }).amounts
      counted.push(...buckets)
      if (buckets.length < TOTALS_PAGE) return counted
      after = after_key
    }
  }

  const lastChange = async (org: string, position: Position, signal: AbortSignal): Promise<string | null> => {
    const indices = listKinds.map(kind => indexOf(parts.prefix, position.generation.name, kind))
    const body = { size: 1, _source: ['ordinal'], sort: [{ seq: 'desc' }], query: queryOf(org, 'changes', position) }
    const [hit] = (await ask(indices, body, signal)).hits
    if (!hit) return null
    const kind = listKinds[indices.indexOf(hit._index)] ?? 'reps'
    const id = hit._id.split(':')[1] ?? ''
    const { ordinal } = hit._source as { ordinal?: number }
    const name: RecordName = kind === 'reps' || kind === 'periods' ? { kind, id, ordinal: ordinal ?? 0 } : { kind, id }
    return textOfName(name)
  }

  return async (org, asOf, signal) => {
    const { now, position: then } = await readAtMoment(org, () => [], asOf, signal)
    const [owed, paid, last_change_id] = await Promise.all([
      countAmounts('payouts', org, then, signal),
      countAmounts('payroll_files', org, then, signal),
      lastChange(org, then, signal),
    ])
    const time = await parts.projectionTime(org, now, last_change_id === null ? 'nothing' : 'records', signal)
    return { position: { ...then, time }, totals: { last_change_id, totals: rowsOf(owed, paid) } }
  }
}

const always = { track_total_hits: false, timeout: `${SEARCH_TIME_MAX}ms` }

type Key = { readonly period_id: string; readonly currency: string; readonly amount: string }
type Bucket = { readonly key: Key; readonly doc_count: number }
type Amounts = { readonly buckets: readonly Bucket[]; readonly after_key?: object }

const compositeOf = (after: object | undefined): object => ({
  size: TOTALS_PAGE,
  sources: ['period_id', 'currency', 'amount'].map(field => ({ [field]: { terms: { field } } })),
  ...(after && { after }),
})

const queryOf = (org: string, what: 'payouts' | 'payroll_files' | 'changes', position: Position): object => ({
  bool: {
    filter: [
      { term: { org_id: org } },
      { range: { seq: visibleRange(position) } },
      ...(what === 'payouts' ? [{ range: { until_seq: notReplacedRange(position) } }] : []),
    ],
  },
})

type Row = Totals['totals'][number]

const rowsOf = (owed: readonly Bucket[], paid: readonly Bucket[]): Row[] => {
  const groups = Map.groupBy([...owed, ...paid], ({ key }) => `${key.period_id} ${key.currency}`)
  const ofOwed = new Set(owed)
  const sum = (buckets: readonly Bucket[]) => ({
    amount: textOfSum(
      buckets.reduce((sum, { key, doc_count }) => sum.plus(new Exact(key.amount).times(doc_count)), new Exact(0)),
    ),
    count: buckets.reduce((sum, { doc_count }) => sum + doc_count, 0),
  })
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([group, buckets]) => {
      const [period_id = '', currency = ''] = group.split(' ')
      const [owes, left] = [sum(buckets.filter(one => ofOwed.has(one))), sum(buckets.filter(one => !ofOwed.has(one)))]
      return {
        period_id,
        currency,
        owed_amount: owes.amount,
        owed_count: owes.count,
        paid_amount: left.amount,
        paid_count: left.count,
      }
    })
}
