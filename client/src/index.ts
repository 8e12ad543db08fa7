/** The client of the commission API. */
export {
  type Change,
  type Client,
  type ClientOptions,
  createClient,
  type DealFilter,
  type Filter,
  type ListOptions,
  type Payout,
  type PayoutStep,
  type PayrollRecord,
  type Period,
  type Rep,
  type Statement,
  type Total,
  type Totals,
} from './client.ts'
export { type Copy, CopyDiffersError, type CopyState, continueCopy, readCopy } from './copy.ts'
export type { List, Page } from './list.ts'
export { RefusedError } from './refused.ts'
