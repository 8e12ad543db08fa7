/**
 * Two steps. `assess` looks at one record alone: its envelope, its event or park code, its rules and the documents that
 * they may read. `project` takes the assessed records of a batch, in order, and their state: the outcome of each
 * record, and the documents to write, and their stored text. Promises: pure (no clock, no randomness, no I/O); each
 * decision sees only the records before it. In a stored text `body_bytes` and `body` come last: the API relies on that
 * to cut out the body.
 */
import type { ParkCode } from '../../../schemas/errors.ts'
import { type ParkedDocument, parkedId, type WithKind } from '../../../schemas/stored/documents.ts'
import { isId } from '../../../schemas/values.ts'
import { type Envelope, type NotDecoded, type RawRecord, recordHash } from '../event/decode.ts'
import { textOf } from '../event/json-text.ts'
import { hasFirstKeyRules, type PartitionSource, type ValidEvent, validate } from '../event/validate.ts'
import { PARKED_BYTES_MAX } from '../limits.ts'
import { type AnyRules, firstKeyRules, type RulesTable } from '../rules/rules.ts'
import {
  type AnyDocument,
  type AnyNewDocument,
  type Decision,
  type DocumentChange,
  documentChangeOf,
  type NewDocument,
  type Reads,
  refOf,
  type State,
} from '../rules/state.ts'

/** A record, and what is known of it without looking at other records. */
export type Assessed = {
  readonly record: RawRecord
  readonly envelope: Envelope | undefined
  /** The documents that its rules may read. */
  readonly reads: Reads
} & (
  | { readonly verdict: ValidEvent; readonly rules: AnyRules }
  | { readonly verdict: ParkCode; readonly rules: undefined }
)

/** A record of an organization that is not projected. */
export type Skipped = { readonly record: RawRecord; readonly skipped: true; readonly rules: undefined }

export type AssessSteps = {
  /** Checks UTF-8, JSON and the attributes of CloudEvents. It knows no event type and no field of the data. */
  readonly decode: (record: RawRecord) => Envelope | NotDecoded
  readonly source: PartitionSource
  readonly rules: RulesTable
  /** Projects only the records of this organization; undefined for all. */
  readonly org?: string | undefined
}

export const assess = (record: RawRecord, { decode, source, rules: table }: AssessSteps): Assessed => {
  const envelope = decode(record)
  if (typeof envelope === 'string') return parkedBeforeRules(record, undefined, envelope)
  const verdict = validate(envelope, record, source)
  if (typeof verdict === 'string') return parkedBeforeRules(record, envelope, verdict)
  // Parking needs only these fields. The rest of the envelope would take most of the memory.
  const { org_id } = verdict.data
  const { type, id } = envelope
  // `core/ledger/rules/payouts.ts` has the rules of a payout, `rules.ts` there the table.
  const rules = (hasFirstKeyRules(source, record) ? firstKeyRules : table)[verdict.type]
  return { record, envelope: { type, id, data: { org_id } }, verdict, reads: rules.reads(verdict.data), rules }
}

/** Like `assess`, but skips records of other organizations than `org`, if there is one. */
export const assessOrSkip = (record: RawRecord, steps: AssessSteps): Assessed | Skipped => {
  const { org } = steps
  const assessed = assess(record, steps)
  return org === undefined || orgOf(assessed) === org ? assessed : { record, skipped: true, rules: undefined }
}

const parkedBeforeRules = (record: RawRecord, envelope: Envelope | undefined, verdict: ParkCode): Assessed => ({
  record,
  envelope,
  verdict,
  reads: NONE,
  rules: undefined,
})
/** The rules read no documents for a record that is parked here. */
const NONE: Reads = {}

/** Returns the organization of a record: from its data, or else from its key. */
export const orgOf = ({ record: { key }, envelope }: Pick<Assessed, 'record' | 'envelope'>): string | undefined => {
  const data = envelope?.data
  const named = typeof data === 'object' && data !== null && 'org_id' in data ? data.org_id : undefined
  return [named, key?.toString('utf8')].find(candidate => isId('org', candidate))
}

export type ProjectedBatch = {
  /** One per document: the last change is the whole document. */
  readonly changes: readonly DocumentChange[]
  readonly counts: Readonly<Record<Decision['outcome'], number>>
  readonly parkedCodes: readonly ParkCode[]
}

export const project = (
  assessed: readonly (Assessed | Skipped)[],
  state: State,
  source: { readonly topic: string; readonly partition: number },
): ProjectedBatch => {
  const changes = new Map<string, DocumentChange>()
  const counts = { applied: 0, duplicate: 0, parked: 0 }
  const parkedCodes: ParkCode[] = []

  for (const item of assessed) {
    if ('skipped' in item) continue
    const at = timeOfRecord(item.record)
    const decision = decisionOn(item, state, at)
    counts[decision.outcome]++
    if (decision.outcome === 'applied') {
      state.apply(decision.changes)
      for (const change of decision.changes) changes.set(change.key, change)
    } else if (decision.outcome === 'parked') {
      const change = park(item, decision.code, source, at)
      changes.set(change.key, change)
      parkedCodes.push(decision.code)
    }
  }
  return { changes: [...changes.values()], counts, parkedCodes }
}

/**
 * The time of a record that its documents get: its own, whatever the records around it have. Publishers can send any
 * timestamp. Above the upper bound it is not an integer that Elasticsearch takes; below 0 it is no time.
 */
export const timeOfRecord = ({ timestamp }: RawRecord): number =>
  Math.min(Math.max(0, timestamp), Number.MAX_SAFE_INTEGER)

const decisionOn = ({ verdict, record, reads, rules }: Assessed, state: State, at: number): Decision => {
  if (rules === undefined) return { outcome: 'parked', code: verdict }
  const { data, hash } = verdict
  return rules.decide({ data, reads, hash, seq: record.offset, at }, state)
}

/** Keeps the whole record. Only attributes that passed validation become fields. */
export const park = (
  { record, envelope }: Pick<Assessed, 'record' | 'envelope'>,
  code: ParkCode,
  { topic, partition }: { readonly topic: string; readonly partition: number },
  at: number,
): DocumentChange => {
  const { offset } = record
  const org = orgOf({ record, envelope })
  const draft: NewDocument<ParkedDocument> = {
    code,
    ...(org !== undefined && { org_id: org }),
    ...(envelope && isShort(envelope.type) && { type: envelope.type }),
    ...(envelope && isShort(envelope.id) && { event_id: envelope.id }),
    topic,
    partition,
    offset,
    at,
    body: contentOf(record),
  }
  return documentChangeOf(refOf('parked', parkedId(topic, partition, offset)), offset, draft)
}

/** A decompressed record can exceed any document. Then only its size and hash are kept; the log has the record. */
const contentOf = (record: RawRecord): ParkedDocument['body'] => {
  const { key, headers, value } = record
  const bytes = bytesToKeep(record)
  if (bytes <= PARKED_BYTES_MAX) {
    const inBase64 = Array.from(
      headers,
      ([name, header, rawName]): KeptHeader =>
        rawName === undefined ? [name, base64(header)] : [name, base64(header), rawName.toString('base64')],
    )
    const whole = { key: base64(key), headers: inBase64, value: base64(value) }
    // Header names are JSON text, in which a control character takes six bytes: check the real size.
    if (Buffer.byteLength(JSON.stringify(whole)) <= PARKED_BYTES_MAX) return whole
  }
  return { key: null, headers: [], value: null, left_out: { bytes, sha256: recordHash(record) } }
}

type KeptHeader = ParkedDocument['body']['headers'][number]

/** Estimated bytes of a parked record. The result is part of its document, so this formula must never change. */
const bytesToKeep = ({ key, value, headers }: RawRecord): number => {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0) + 100
  for (const [name, header] of headers) bytes += name.length + (header?.length ?? 0) + 20
  return bytes
}

const base64 = (bytes: Buffer | null): string | null => (bytes === null ? null : bytes.toString('base64'))

/** Longest CloudEvents attribute that becomes a field, in characters. A longer one stays in the headers only. */
const SHORT = 256
const isShort = (attribute: string): boolean => attribute.length <= SHORT

/** A document as it was decided, and as a line of JSON. */
export type DecidedDocument = DocumentChange & { readonly line: string }

export const serialize = (change: DocumentChange): DecidedDocument => {
  const { key, kind, id, version, draft } = change
  const body = textOf(draft.body)
  const fields = JSON.stringify({ ...draft, body: undefined }).slice(0, -1)
  return { key, kind, id, version, draft, line: `${fields},"body_bytes":${Buffer.byteLength(body)},"body":${body}}\n` }
}

/** Returns the draft that a stored document was serialized from. */
export const draftOf = (stored: WithKind<AnyDocument>): AnyNewDocument => {
  const { body_bytes: _, kind: __, ...draft } = stored
  return draft
}
