/**
 * What is stored in Elasticsearch: index names, document ids, the shape of every document (mappings.ts has the
 * mappings). The projector writes these and the API reads them; both know them from here only. `body` is what a client
 * gets, as bytes: never indexed, always the document's last field, and `body_bytes` just before it says how long it is,
 * so that a reader can cut it out of an answer without parsing it.
 */
import type { ParkCode } from '../errors.ts'
import type { Comparison } from './comparisons.ts'
import type { SandboxBody } from './sandboxes.ts'

/** The indices of one generation, by kind. */
export const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains', 'parked'] as const
export type Kind = (typeof kinds)[number]

/** The kinds that lists search, and that are therefore refreshed before their position is published. */
export const listKinds = ['reps', 'periods', 'payouts', 'payroll_files'] as const
export type ListKind = (typeof listKinds)[number]

/** The order in which a list is walked: organization, then this field. Its index is sorted the same way. */
export const listOrder = { reps: 'first_seq', periods: 'first_seq', payouts: 'seq', payroll_files: 'seq' } as const

export const indexOf = (prefix: string, generation: string, kind: Kind): string => `${prefix}-${generation}-${kind}`
export const controlIndexOf = (prefix: string): string => `${prefix}-control`
export const apiKeysIndexOf = (prefix: string): string => `${prefix}-api-keys`
export const apiKeysParkedIndexOf = (prefix: string): string => `${prefix}-api-keys-parked`
export const templateNameOf = (prefix: string): string => `${prefix}-no-auto-create`

/** The stream of API keys has a source and a position like a generation of events has; this is its name. */
export const API_KEYS_GENERATION = 'api-keys'
export const FIRST_GENERATION = 'g1'

/** Ids of the documents of the control index. */
export const LIVE_ID = 'live'
export const generationId = (generation: string): string => `generation:${generation}`
export const positionId = (generation: string, partition: number): string => `position:${generation}:${partition}`

/**
 * Ids of the projected documents. The organization is part of every one: a document of another cannot even be named.
 */
export const recordId = (org: string, id: string): string => `${org}:${id}`
export const versionId = (org: string, id: string, seq: number): string => `${org}:${id}:${seq}`
export const chainId = (org: string, rep: string, period: string): string => `${org}:${rep}:${period}`
export const parkedId = (topic: string, partition: number, offset: number): string => `${topic}:${partition}:${offset}`

// --- documents of a generation. `seq` is the offset of the event that made the record, `at` that event's time in
// milliseconds as the highest so far in its partition, `until_seq` the offset of the event that replaced it.

/** A version of a rep or a period: id `versionId`. The list is in order of `first_seq`. */
export type VersionDocument = {
  org_id: string
  first_seq: number
  seq: number
  /** Version number of the record, starting at 1. */
  ordinal: number
  until_seq: number
  at: number
  hash: string
  body_bytes: number
  body: unknown
}

/** Which versions of a rep or a period there are: id `recordId`, in the same index, without `seq`, so never listed. */
export type HeadDocument = { org_id: string; body_bytes: number; body: HeadBody }
export type HeadBody = { versions: { seq: number; hash: string }[] }

/**
 * A payout: id `recordId`. Its body has no `superseded_by_id`: that is put in on the way out, null unless until_seq <
 * W.
 */
export type PayoutDocument = {
  org_id: string
  seq: number
  until_seq: number
  superseded_by_id: string | null
  at: number
  rep_id: string
  period_id: string
  /** `net_amount` as it is in the body, and its currency: what is owed is counted by them. */
  amount: string
  currency: string
  hash: string
  body_bytes: number
  body: unknown
}

/** The trace of a payout: id `recordId` of the payout; body `{calculation_trace_recorded, calculation_trace}`. */
export type StatementDocument = { org_id: string; seq: number; body_bytes: number; body: unknown }

/** A payroll record or a void: id `recordId`. */
export type PayrollDocument = {
  org_id: string
  seq: number
  at: number
  rep_id: string
  period_id: string
  reverses_id: string | null
  /** As they are in the body: what has left is counted by them. */
  amount: string
  currency: string
  hash: string
  body_bytes: number
  body: unknown
}

/** The payouts and payroll records of one (rep, period), in order: who is current, what is voided, as of any offset. */
export type ChainDocument = { org_id: string; body_bytes: number; body: ChainBody }
export type ChainBody = {
  payouts: { seq: number; id: string }[]
  payroll: { seq: number; id: string; reverses_id: string | null }[]
}

/**
 * A record that was refused: id `parkedId`. Only values that passed their grammar are indexed; the bytes are in the
 * body.
 */
export type ParkedDocument = {
  code: ParkCode
  org_id?: string
  type?: string
  event_id?: string
  topic: string
  partition: number
  offset: number
  at: number
  body_bytes: number
  /**
   * base64, but for names of headers; `rawName` is one that is not UTF-8, in base64. null where the record had none.
   */
  body: {
    key: string | null
    headers: [name: string, value: string | null, rawName?: string][]
    value: string | null
    /** Of a record that is too large to be kept: how many bytes it has, and its hash; the rest is empty. */
    left_out?: { bytes: number; sha256: string }
  }
}

// --- documents of the API key index

/** What a request is checked against: id is the SHA-256 of the key text, 64 lower-case hex. */
export type ApiKeyDocument = {
  key_id: string
  org_id: string
  permissions: string[]
  revoked: boolean
  body_bytes: number
  body: { created_seq: number }
}

/** What a key event is decided on: id `recordId(org, key id)`. */
export type ApiKeyHeadDocument = {
  org_id: string
  body_bytes: number
  body: { secret_sha256: string; hash: string; created_seq: number; revoked_seq: number | null }
}

// --- documents of the control index: `kind` and a body that is not indexed

/** Which generation the API reads, and which others there are: absent is none. */
export type LiveDocument = {
  kind: 'live'
  body: {
    generation: string
    /** All that projectors keep up, the live one included; and one that a rebuild is making. */
    kept?: string[]
    building?: string | null
    /** What was live before: to go back to. */
    previous?: string | null
    /**
     * The last comparison of two, by `pairOf` their names; `verified` is that of older versions, which does not say as
     * of where.
     */
    compared?: Record<string, Comparison>
    verified?: Record<string, string>
    /** Of the live one: what readers may have seen of the one before, by partition; null while that is found out. */
    floor?: readonly number[] | null
    /**
     * The floor of each when it was made live first, by name: a generation that followed another decides by itself from
     * there on.
     */
    alone?: Record<string, readonly number[]>
    /**
     * The highest number that a generation was ever named by: a name is never used again, as readers remember things by
     * it.
     */
    highest?: number
  }
}

export type GenerationDocument = {
  kind: 'generation'
  body: {
    generation: string
    topic: string
    cluster_id: string
    partitions: number
    rules_version: number
    /**
     * The generation that was live when this one was begun under other rules: what that one parked stays parked here.
     */
    follows?: string
    /** The ids of the indices it stands on, by name; absent until a projector that knows of them has started. */
    indices?: Record<string, string>
    /** Of a sandbox only. */
    sandbox?: SandboxBody
  }
}

/**
 * How far one partition is published. Everything at an offset below `position` is applied, a duplicate or parked, and
 * searchable; `time` (milliseconds, the projector's clock) is an instant up to which everything published is included.
 */
export type PositionDocument = {
  kind: 'position'
  body: {
    position: number
    /** The last record read (not a control record), so that a recreated topic is recognized; null before the first. */
    last: { offset: number; sha256: string } | null
    /** The highest record time so far in the partition, milliseconds; 0 before the first record. */
    at: number
    time: number
    taken_back?: number
    /** API keys only: they are served once `position` has reached this offset. */
    serve_from: number
  }
}
