/** A walk of a simulated client: what it reads, and the answers as the API makes them. */
import type { Answering } from '../../api/answer/answer-page.ts'
import type { Context } from '../../api/http/request.ts'
import { answering } from '../support/answering-request.ts'
import type { Random } from '../support/random.ts'
import type { Expectation, List } from './history.ts'

export type Walk = {
  readonly org: string
  readonly list: List
  readonly limit: number
  readonly from: string | undefined
  /** The moment just after this payout, which was listed before. */
  readonly moment?: { readonly id: string; readonly position: number }
  readonly filter?: Filter
}
export type Filter = { readonly rep_id?: string; readonly period_id?: string; readonly deal_id?: string }

export const repAndPeriodOf = ({ pair }: Expectation): Required<Pick<Filter, 'rep_id' | 'period_id'>> => {
  const [rep_id = '', period_id = ''] = pair.split(' ')
  return { rep_id, period_id }
}
/** The deal that lines of `streams.ts` have. */
export const DEAL = 'deal_1'
/** The deals of the lines of a payout. */
const dealsOf = ({ text }: Expectation): string[] => {
  const { line_items = [] } = JSON.parse(text) as { line_items?: { deal_id: string | null }[] }
  return line_items.flatMap(({ deal_id }) => deal_id ?? [])
}
/** Returns a filter that a record matches. */
export const filterOf = (item: Expectation, random: Random, byDeal: boolean): Filter => {
  const { rep_id, period_id } = repAndPeriodOf(item)
  const [deal_id] = byDeal ? dealsOf(item) : []
  if (deal_id !== undefined && random.chance(0.5)) return random.pick([{ deal_id }, { rep_id, deal_id }])
  return random.pick([{ rep_id }, { period_id }, { rep_id, period_id }])
}
export const matchesFilter = (item: Expectation, { rep_id, period_id, deal_id }: Filter): boolean => {
  const fields = repAndPeriodOf(item)
  if (deal_id !== undefined && !dealsOf(item).includes(deal_id)) return false
  return (rep_id ?? fields.rep_id) === fields.rep_id && (period_id ?? fields.period_id) === fields.period_id
}

/** Whether a walk has neither a payout nor its replacement. A replacement need not have the deal of the filter. */
export const areAnyLost = (
  before: readonly Expectation[],
  walked: readonly Expectation[],
  atEnd: readonly Expectation[],
  filter: Filter,
): boolean => {
  const accounted = [...walked, ...atEnd.filter(item => !matchesFilter(item, filter))]
  const pairs = new Set(accounted.map(({ pair }) => pair))
  return before.some(({ pair }) => !pairs.has(pair))
}

type Page = { readonly data: readonly unknown[]; readonly has_more: boolean; readonly next_cursor: string }

/** Returns the body that the API answers, without the headers. */
export const answered = <Body = Page>(answer: (ctx: Context<Answering>) => void): Body => {
  const ctx = { body: Buffer.alloc(0), set: () => undefined, get: () => '', state: answering() }
  answer(ctx as unknown as Context<Answering>)
  return JSON.parse(ctx.body.toString()) as Body
}
