/**
 * In: the assessed records of a batch, in order, and the state they touch. Out: what each one did, and the documents
 * that are to be written. Promises: pure. No clock, no randomness, no I/O; each decision sees only the records before
 * it.
 */

import type { ParkCode } from '../../schemas/errors.ts'
import type { ParkedDocument } from '../../schemas/stored/documents.ts'
import { parkedId } from '../../schemas/stored/documents.ts'
import { isId } from '../../schemas/values.ts'
import type { Envelope } from '../event/decode.ts'
import type { RawRecord } from '../event/raw-record.ts'
import type { ValidEvent } from '../event/validate.ts'
import { hashOf } from '../kafka/source.ts'
import { PARKED_BYTES_MAX } from '../limits.ts'
import type { Decision, Names } from '../rules/decision.ts'
import type { AnyRules } from '../rules/rules.ts'
import { type Change, changeOf, type NewDocument, refOf, type State } from '../rules/state.ts'

/** A record and what could be said of it without looking at any other. */
export type Assessed = {
  readonly record: RawRecord
  readonly envelope: Envelope | undefined
  /** What its rules may look at. */
  readonly names: Names
} & (
  | { readonly verdict: ValidEvent; readonly rules: AnyRules }
  | { readonly verdict: ParkCode; readonly rules: undefined }
)

/** A record of another organization than the only one that is projected: its time counts, and nothing else of it. */
export type PassedOver = { readonly record: RawRecord; readonly passedOver: true; readonly rules: undefined }

export type Projection = {
  /** One per document: the last change is the whole document. */
  readonly changes: readonly Change[]
  readonly counts: Readonly<Record<Decision['outcome'], number>>
  readonly parkedCodes: readonly ParkCode[]
  /** The highest record time up to the end of the batch, milliseconds. */
  readonly at: number
}

export const project = (
  assessed: readonly (Assessed | PassedOver)[],
  state: State,
  place: { readonly topic: string; readonly partition: number },
  atBefore: number,
): Projection => {
  const changes = new Map<string, Change>()
  const counts = { applied: 0, duplicate: 0, parked: 0 }
  const parkedCodes: ParkCode[] = []
  let at = atBefore

  for (const item of assessed) {
    // A publisher's clock may say anything; beyond this it would not be a whole number that Elasticsearch takes.
    at = Math.max(at, Math.min(item.record.timestamp, Number.MAX_SAFE_INTEGER))
    if ('passedOver' in item) continue
    const decision = decide(item, state, at)
    counts[decision.outcome]++
    if (decision.outcome === 'applied') {
      state.apply(decision.changes)
      for (const change of decision.changes) changes.set(change.key, change)
    } else if (decision.outcome === 'parked') {
      const change = park(item, decision.code, place, at)
      changes.set(change.key, change)
      parkedCodes.push(decision.code)
    }
  }
  return { changes: [...changes.values()], counts, parkedCodes, at }
}

const decide = ({ verdict, record, names, rules }: Assessed, state: State, at: number): Decision => {
  if (rules === undefined) return { outcome: 'parked', code: verdict }
  const { data, hash } = verdict
  return rules.decide({ data, names, hash, seq: record.offset, at }, state)
}

/** The record whole. Only what passed its grammar stands beside it as a field. */
const park = (
  { record, envelope }: Assessed,
  code: ParkCode,
  { topic, partition }: { readonly topic: string; readonly partition: number },
  at: number,
): Change => {
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
  return changeOf(refOf('parked', parkedId(topic, partition, offset)), offset, draft)
}

/** A compressed record can be larger than any document may be: the log keeps it, and here stands what it is. */
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
    // A header's name is text there: a control character takes six bytes.
    if (Buffer.byteLength(JSON.stringify(whole)) <= PARKED_BYTES_MAX) return whole
  }
  return { key: null, headers: [], value: null, left_out: { bytes, sha256: hashOf(record) } }
}

type KeptHeader = ParkedDocument['body']['headers'][number]

/** Bytes that a parked record takes, roughly. Part of its document: it must never be reckoned otherwise. */
const bytesToKeep = ({ key, value, headers }: RawRecord): number => {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0) + 100
  for (const [name, header] of headers) bytes += name.length + (header?.length ?? 0) + 20
  return bytes
}

const base64 = (bytes: Buffer | null): string | null => (bytes === null ? null : bytes.toString('base64'))

/** Characters of a CloudEvents attribute that is kept as a field; a longer one stays in the headers. */
const SHORT = 256
const isShort = (attribute: string): boolean => attribute.length <= SHORT

/** Whose a record is: as its data says, or else its key. */
export const orgOf = ({ record: { key }, envelope }: Pick<Assessed, 'record' | 'envelope'>): string | undefined => {
  const data = envelope?.data
  const named = typeof data === 'object' && data !== null && 'org_id' in data ? data.org_id : undefined
  return [named, key?.toString('utf8')].find(candidate => isId('org', candidate)) as string | undefined
}
