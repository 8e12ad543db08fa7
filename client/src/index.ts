/** The client of the commission API. */
export { type Checkpoint, CheckpointInvalidError, type ControlTotal, readCheckpoint } from './checkpoint.ts'
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
  type SignedCheckpoint,
  type Statement,
  type Total,
  type Totals,
} from './client.ts'
export { type Copy, type CopyState, continueCopy, type OnChange, type Proof, readCopy } from './copy.ts'
export type { List, Page } from './list.ts'
export { RefusedError } from './refused.ts'
export { CopyDiffersError } from './served-changes.ts'
