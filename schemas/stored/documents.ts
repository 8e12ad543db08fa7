/**
 * Everything stored in Elasticsearch: index names, document ids and the shape of every document (mappings.ts has the
 * mappings). The projector writes the documents and the API reads them. `body` has the bytes that a client gets: it is
 * never indexed, and always the last field. `body_bytes` just before it is its length, so that a reader can cut the
 * body out of an answer without parsing.
 */
import type { ParkCode } from '../errors.ts'
import type { PayrollRecordedData, PeriodData, RepData } from '../events.ts'
import type { Comparison } from './comparisons.ts'
import type { SandboxBody } from './sandboxes.ts'
import type { ShardIds } from './shard-ids.ts'

/**
 * The kinds of documents of one generation. `payroll_files` are the payroll records: payments and voids. Layout 1 has
 * an index for each kind; layouts 2 and 3 have one for all that lists search (layout.ts).
 */
export const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains', 'parked'] as const
export type Kind = (typeof kinds)[number]

/** The kinds that lists search: they are refreshed before the position is published. `listTraits` says what each is. */
export const listKinds = ['reps', 'periods', 'payouts', 'payroll_files'] as const
export type ListKind = (typeof listKinds)[number]
export const isListKind = (kind: string): kind is ListKind => listKinds.some(known => known === kind)

export const indexOf = (prefix: string, generation: string, kind: Kind): string => `${prefix}-${generation}-${kind}`
/**
 * The index of all records that lists search, not in layout 1. It is named after its most frequent kind, so that
 * roles and patterns for layout 1 open it.
 */
export const recordsIndexOf = (prefix: string, generation: string): string => indexOf(prefix, generation, 'payouts')
/**
 * The index of balances, not in layout 1. Their sums are by period, and no other index has this name then: roles and
 * patterns for layout 1 open it, too.
 */
export const balancesIndexOf = (prefix: string, generation: string): string => indexOf(prefix, generation, 'periods')
export const controlIndexOf = (prefix: string): string => `${prefix}-control`
export const apiKeysIndexOf = (prefix: string): string => `${prefix}-api-keys`
export const apiKeysParkedIndexOf = (prefix: string): string => `${prefix}-api-keys-parked`
export const templateNameOf = (prefix: string): string => `${prefix}-no-auto-create`

/** The generation name of API keys: they have a source and a position, as a generation of events has. */
export const API_KEYS_GENERATION = 'api-keys'
export const FIRST_GENERATION = 'g1'

/** Document ids in the control index. */
export const LIVE_ID = 'live'
export const generationId = (generation: string): string => `generation:${generation}`
export const positionId = (generation: string, partition: number): string => `position:${generation}:${partition}`
export const timesId = (generation: string): string => `times:${generation}`
export const writtenId = (generation: string, partition: number): string => `written:${generation}:${partition}`
export const pastPositionsId = (generation: string, slot: number): string => `past:${generation}:${slot}`

/**
 * Ids of projected documents. Each but that of a parked record begins with the organization, so that no id names
 * another organization's document. The own id of a record has the prefix of its kind, so that no two kinds share an id.
 */
export const recordId = (org: string, id: string): string => `${org}:${id}`
export const versionId = (org: string, id: string, seq: number): string => `${org}:${id}:${seq}`
export const chainId = (org: string, rep: string, period: string): string => `${org}:${rep}:${period}`
/** @param sequence of the last change that the balance includes */
export const balanceId = (org: string, sequence: number): string => `${org}:${sequence}`
/** The organization of such an id. A parked record has none in its id. */
export const orgIn = (documentId: string): string => documentId.slice(0, documentId.indexOf(':'))
export const parkedId = (topic: string, partition: number, offset: number): string => `${topic}:${partition}:${offset}`

// --- documents of a generation. Those of list kinds begin with `kind`, but in layout 1. `seq`: the offset of the event
// that made the record. `at`: the time of that event in Kafka, in milliseconds. `until_seq`: the offset of the event
// that replaced the record.

/** A version of a rep or a period: id `versionId`. Lists are ordered by `first_seq`. */
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
  body: Omit<RepData, 'org_id'> | Omit<PeriodData, 'org_id'>
}

/** The versions of a rep or a period: id `recordId`, in the same index. Without `seq`, so that lists do not find it. */
export type HeadDocument = { org_id: string; body_bytes: number; body: HeadBody }
export type HeadBody = { versions: { seq: number; hash: string }[] }

/** A payout: id `recordId`. The API adds `superseded_by_id` to the body: null until the replacement is published. */
export type PayoutDocument = {
  org_id: string
  seq: number
  until_seq: number
  superseded_by_id: string | null
  at: number
  rep_id: string
  period_id: string
  /** `net_amount` and `currency` as in the body: totals read these fields. */
  amount: string
  currency: string
  hash: string
  body_bytes: number
  body: unknown
}

/** The trace of a payout: id `recordId` of the payout; body `{calculation_trace_recorded, calculation_trace}`. */
export type StatementDocument = { org_id: string; seq: number; body_bytes: number; body: unknown }

/** A payroll record, which is a payment or a void: id `recordId`. */
export type PayrollDocument = {
  org_id: string
  seq: number
  at: number
  rep_id: string
  period_id: string
  reverses_id: string | null
  /** As in the body: totals read these fields. */
  amount: string
  currency: string
  hash: string
  body_bytes: number
  body: PayrollBody
}
export type PayrollBody = Omit<PayrollRecordedData, 'org_id'> & { reverses_id: string | null }

/**
 * The payouts and payroll records of one (rep, period), in order: which is current, and which voided, at any offset.
 */
export type ChainDocument = { org_id: string; body_bytes: number; body: ChainBody }
export type ChainBody = {
  payouts: { seq: number; id: string }[]
  payroll: { seq: number; id: string; reverses_id: string | null }[]
}

/** A parked record: id `parkedId`. Only values that match their grammar are indexed; the bytes are in the body. */
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
  /** base64, except for header names. `rawName` (base64) is a name that is not UTF-8. null: the record had none. */
  body: {
    key: string | null
    headers: [name: string, value: string | null, rawName?: string][]
    value: string | null
    /** Only for a record that is too large to keep: its size and hash. The rest of the body is empty. */
    left_out?: { bytes: number; sha256: string }
  }
}

/**
 * The totals of an organization after its change of number `sequence`, which the event at offset `seq` made: id
 * `balanceId`. A pure function of the log: it is never changed. Not in layout 1.
 */
export type BalanceDocument = {
  org_id: string
  seq: number
  sequence: number
  body_bytes: number
  body: { rows: BalanceRow[] }
}
/** As a row of totals. */
export type BalanceRow = {
  period_id: string
  currency: string
  owed_amount: string
  owed_count: number
  paid_amount: string
  paid_count: number
}

/** A document as Elasticsearch has it. `kind` is the first field of a record, and absent in layout 1. */
export type WithKind<Document> = Document & { readonly kind?: unknown }

/** Returns the document without the field that only some layouts have. */
export const ownFieldsOf = <Document extends object>(stored: WithKind<Document>): Omit<WithKind<Document>, 'kind'> => {
  const { kind: _, ...own } = stored
  return own
}

// --- documents of the API key index

/**
 * Authenticates a request: id is the SHA-256 of the key text, 64 lower-case hex digits. A key that expires has its
 * permissions in the body, and none in `permissions`: an API of an older version knows no expiry, and must refuse it.
 * A key with networks has them in `within` instead, for the same reason.
 */
export type ApiKeyDocument = {
  key_id: string
  org_id: string
  permissions: string[]
  revoked: boolean
  body_bytes: number
  body: {
    created_seq: number
    permissions?: string[]
    expires_at?: string
    within?: { networks: string[]; permissions: string[] }
  }
}

/** Decides a key event: id `recordId(org, key id)`. A key of the first version of the rules has no `name`. */
export type ApiKeyHeadDocument = {
  org_id: string
  body_bytes: number
  body: { secret_sha256: string; hash: string; created_seq: number; revoked_seq: number | null; name?: string }
}

// --- documents of any of these indices, while documents that no log has are removed

/**
 * The earlier form of a document that is removed. Elasticsearch takes its earlier version only after it has forgotten
 * the later one. Until then it is kept here: id `keptFormId`, in the same index and, by its routing, in the same shard.
 * So no interruption loses it, and no snapshot has the deletion without it.
 */
export type KeptFormDocument = {
  org_id: typeof KEPT_FORMS
  body_bytes: number
  body: { version: number; source: Readonly<Record<string, unknown>> }
}

/** In place of an organization: no list finds the document, and a search for all of them does. */
export const KEPT_FORMS = ':kept-form'
const KEPT_FORM = 'kept-form::'
/** @param id of the document in that index */
export const keptFormId = (id: string): string => `${KEPT_FORM}${id}`
/** Returns the id of the document that comes back; undefined for the id of any other document. */
export const keptIdIn = (id: string): string | undefined =>
  id.startsWith(KEPT_FORM) ? id.slice(KEPT_FORM.length) : undefined

// --- documents of the control index: `kind` and a body that is not indexed

/** The generation that the API reads, and the other ones. An absent field means none. */
export type LiveDocument = {
  kind: 'live'
  body: {
    /** Names here and in all other fields are read with `withPlainNames` (live-names.ts). */
    generation: string
    /** `active` in the code: the generations that projectors keep up to date, the live one included. */
    kept?: string[]
    /** The generation that a rebuild makes. */
    building?: string | null
    /** The generation that was live before, to swap back to. */
    previous?: string | null
    /** The last comparison of two generations, by `pairOf`. `verified` comes from older versions, without positions. */
    compared?: Record<string, Comparison>
    verified?: Record<string, string>
    /**
     * `minPositions` in the code: the positions that readers may have seen of the previous generation; null until the
     * swap has stored them.
     */
    floor?: readonly number[] | null
    /**
     * `independentFrom` in the code: by name, the `floor` of each generation when it first became live. From there on
     * its own rules decide alone.
     */
    alone?: Record<string, readonly number[]>
    /**
     * The topic before `commission grow`. `before`: those before that one, the last first. Inside it, since an older
     * program that writes this document keeps only the fields that it knows, and these whole.
     */
    grown?: FormerTopic & { before?: readonly FormerTopic[] }
    /** The highest number in a generation name so far: names are never reused. */
    highest?: number
  }
}

/**
 * A topic of events that has grown, and its ends at the swap: all before them is in the topic of the live generation.
 * Later records were published to the wrong topic.
 */
export type FormerTopic = { topic: string; cluster_id: string; topic_id?: string; ends: readonly number[] }

export type GenerationDocument = {
  kind: 'generation'
  body: {
    generation: string
    topic: string
    cluster_id: string
    partitions: number
    /** The topic id, as Kafka prints it; absent if the brokers have none, or until all last records were verified. */
    topic_id?: string
    rules_version: number
    /** Which indices it has, and how its documents are routed (layout.ts). Absent: layout 1. */
    layout?: 2 | 3
    /** The shards of each index that hold an organization, if that is more than one. Not in layout 1. */
    routing_partition_size?: number
    /** Only for API keys: records before this offset are decided under version 1. Absent in version 2: none are. */
    first_rules_until?: number
    /** The generation that was live when this one began under other rules: records parked there stay parked here. */
    follows?: string
    /** The ids of its indices, by index name; absent until a projector that knows ids has started. */
    indices?: Record<string, string>
    /** The ids of their primary shards; absent if Elasticsearch does not tell them to a projector's user. */
    shards?: ShardIds
    /** A shard that a projector found to be another one than recorded: readers are refused. */
    lost?: string
    /** Only for a sandbox. */
    sandbox?: SandboxBody
    /** The ends of a redacted log that it was given as its source: its documents before have the texts. */
    redacted_to?: number[]
  }
}

/**
 * The published position of one partition. Every record before `position` is searchable, and is applied, a duplicate or
 * parked. Everything published up to `time` (milliseconds since 1970) is included. The clock of the projector had
 * reached it, and that of Elasticsearch, if it is known.
 */
export type PositionDocument = {
  kind: 'position'
  body: {
    position: number
    /** The last record read, control records excluded, to recognize a recreated topic; null before the first record. */
    last: { offset: number; sha256: string } | null
    /** The time of the last record, in milliseconds; 0 before the first. For metrics: nothing is decided by it. */
    at: number
    time: number
    /** How many times `time` was set back because clocks had been ahead. */
    taken_back?: number
    /** The API serves the partition from this position on. Above 0 for API keys and for restored indices. */
    serve_from: number
    /** The ids of the cluster and topic that `adopt --archive` made the source; absent before. Other owners stop. */
    source?: string
    /**
     * Present while `adopt` or `rewind` removes documents of the partition that no log has: some of the others are gone
     * for a moment, or until the position is set back. Until then nobody may read or write them.
     */
    removing?: true
  }
}

/**
 * The last record of a batch whose documents are written; a bulk request writes it with them. A projector that opens
 * the partition compares it with the log: at and after the position there may be documents of another log.
 */
export type WrittenDocument = { kind: 'written'; body: { offset: number; sha256: string } }

/**
 * The times of all partitions of a generation whose position stands still. One document, so that a projection at rest
 * costs one write, however many partitions it has. Absent until a position has stood still.
 */
export type TimesDocument = { kind: 'times'; body: { partitions: Record<string, PartitionTime> } }

/** The time of a partition, once its position has reached `position`. `taken_back` as in the position. */
export type PartitionTime = { position: number; time: number; taken_back?: number }

/**
 * Past positions that each generation has at most: one for each minute of two days. The id of the document has the
 * minute modulo this number. A minute without new positions replaces none, so that at rest older ones stay.
 */
export const PAST_POSITIONS = 2 * 24 * 60

/**
 * The published positions of a generation at a moment of the past, so that a copy of the indices can be projected on
 * from there. Everything before the positions was stored at `time`, in the indices of `copy`.
 */
export type PastPositionsDocument = {
  kind: 'past'
  body: {
    /** Milliseconds since 1970, by the clock that was furthest ahead. It was read after the positions. */
    time: number
    /** The clocks that were compared. Absent in 1.1.0, which read the clock of one node: it may have been behind. */
    clocks?: 'all'
    /** Identifies the indices: a digest of their ids. After a restore it is another one. */
    copy: string
    partitions: Pick<PositionDocument['body'], 'position' | 'last' | 'at'>[]
  }
}
