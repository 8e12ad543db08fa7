/** A walk of a simulated client: what it reads, and the answers as the API makes them. */
import type { Answering } from '../../api/answer/answer-page.ts'
import type { Context } from '../../api/http/request.ts'
import { answering } from '../support/answering-request.ts'
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
export type Filter = { readonly rep_id?: string; readonly period_id?: string }

export const repAndPeriodOf = ({ pair }: Expectation): Required<Filter> => {
  const [rep_id = '', period_id = ''] = pair.split(' ')
  return { rep_id, period_id }
}
export const matchesFilter = (item: Expectation, { rep_id, period_id }: Filter): boolean => {
  const fields = repAndPeriodOf(item)
  return (rep_id ?? fields.rep_id) === fields.rep_id && (period_id ?? fields.period_id) === fields.period_id
}

type Page = { readonly data: readonly unknown[]; readonly has_more: boolean; readonly next_cursor: string }

/** Returns the body that the API answers, without the headers. */
export const answered = <Body = Page>(answer: (ctx: Context<Answering>) => void): Body => {
  const ctx = { body: Buffer.alloc(0), set: () => undefined, get: () => '', state: answering() }
  answer(ctx as unknown as Context<Answering>)
  return JSON.parse(ctx.body.toString()) as Body
}
