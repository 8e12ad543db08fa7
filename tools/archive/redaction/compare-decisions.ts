/**
 * Compares the decisions on two logs that differ in some texts only.
 *
 * In: the records of one partition in order, each as it is and as it will be. Out: nothing, if all are decided alike.
 * Promises: whole decisions are compared: the outcome, the code, and for an applied event each document that it makes
 *   or changes, with everything in it but the replaced texts and hashes. Needs no Elasticsearch: the documents of one
 *   organization are held in memory, without bodies that no rule reads. A record is decided twice only if it, or a
 *   document that it may read, differs: rules are pure.
 * Can go wrong: a decision differs → RedactionRefused that names the first such record.
 */

import {
  type AnyNewDocument,
  type Assessed,
  assess,
  builtInRules,
  type Decision,
  type DocumentChange,
  type DocumentKey,
  type DocumentRef,
  decode,
  JsonText,
  orgOf,
  type RawRecord,
  State,
  type ValidEvent,
} from '../../../core/ledger/index.ts'
import type { Stream } from '../../../schemas/events.ts'
import { RedactionRefused } from './redact-record.ts'

export type ComparedPartition = {
  readonly stream: Stream
  readonly topic: string
  readonly partition: number
  readonly partitions: number
}

export type DecisionComparer = {
  /** Takes the next record. `after` is the same object if the record stays as it is. @throws RedactionRefused */
  readonly next: (before: RawRecord, after: RawRecord) => void
}

type Documents = Map<DocumentKey, string>
type ValidRecord = Extract<Assessed, { readonly verdict: ValidEvent }>

/** @param org the organization whose texts are replaced: decisions on events of others cannot change */
export const compareDecisions = (source: ComparedPartition, org: string): DecisionComparer => {
  /** Documents as the log makes them now, and those that the other log makes differently. */
  const documents: Documents = new Map()
  const differing: Documents = new Map()
  const assessed = (record: RawRecord, firstKeyRulesUntil = 0) =>
    assess(record, { decode, source: { ...source, firstKeyRulesUntil }, rules: builtInRules })

  const next = (before: RawRecord, after: RawRecord): void => {
    const isChanged = after !== before
    // The record key of an event that is applied is its organization.
    if (!isChanged && before.key?.toString('latin1') !== org) return
    const was = assessed(before)
    const is = isChanged ? assessed(after) : was
    const refuse = (then: string, now: string): never => {
      const where = `the record at offset ${before.offset} of partition ${source.partition} of ${source.topic}`
      throw new RedactionRefused(`${where} would be decided differently: ${then} became ${now}. Nothing is changed`)
    }
    if (was.rules === undefined || is.rules === undefined) {
      if (verdictOf(was) !== verdictOf(is)) refuse(verdictOf(was), verdictOf(is))
      if (orgOf(was) !== orgOf(is)) refuse('its organization', 'another one')
      // Nobody knows here which version of the rules for keys decides the record.
      const [first, firstNow] = isChanged
        ? [before, after].map(one => verdictOf(assessed(one, Number.POSITIVE_INFINITY)))
        : []
      if (first !== firstNow) refuse(`${first}`, `${firstNow}`)
      return
    }
    if (source.stream === 'api-keys' || was.verdict.data.org_id !== org) {
      if (was.verdict.hash !== is.verdict.hash) refuse('an event that has no text of this person', 'another event')
      return
    }
    const first = decided(was, key => documents.get(key))
    const isSame = !isChanged && !first.keys.some(key => differing.has(key))
    const second = isSame ? first : decided(is, key => differing.get(key) ?? documents.get(key))
    const [then, now] = [nameOf(first.decision), nameOf(second.decision)]
    if (then !== now) refuse(then, now)
    const [made, madeNow] = [changesOf(first.decision), changesOf(second.decision)]
    if (!isSame && shapeOf(made) !== shapeOf(madeNow)) refuse('its documents', 'others')
    for (const [index, { key, kind, draft }] of made.entries()) {
      // No rule reads them.
      if (kind === 'statements') continue
      const text = textOf(kind, draft)
      const textNow = isSame ? text : textOf(kind, madeNow[index]?.draft ?? draft)
      documents.set(key, text)
      if (text === textNow) differing.delete(key)
      else differing.set(key, textNow)
    }
  }
  return { next }
}

/** The code of a record that is parked without a look at others, or the type of its event. */
const verdictOf = ({ verdict }: Assessed): string => (typeof verdict === 'string' ? verdict : verdict.type)

type Decided = { readonly decision: Decision; readonly keys: readonly DocumentKey[] }

const decided = (
  { record, verdict, reads, rules }: ValidRecord,
  read: (key: DocumentKey) => string | undefined,
): Decided => {
  const state = new State()
  const keys: DocumentKey[] = []
  const load = (refs: readonly (DocumentRef | undefined)[]): void => {
    for (const ref of refs) {
      if (ref === undefined) continue
      const { key } = ref
      const text = read(key)
      state.set(key, text === undefined ? null : JSON.parse(text))
      keys.push(key)
    }
  }
  const { data, hash } = verdict
  const event = { data, reads, hash, seq: record.offset }
  load(Object.values(reads))
  load(rules.thenReads(event, state))
  return { decision: rules.decide({ ...event, at: record.timestamp }, state), keys }
}

const nameOf = (decision: Decision): string => (decision.outcome === 'parked' ? decision.code : decision.outcome)
const changesOf = (decision: Decision): readonly DocumentChange[] =>
  decision.outcome === 'applied' ? decision.changes : []

/** No rule reads the body of a payout, which is most of its bytes. */
const textOf = (kind: DocumentChange['kind'], draft: AnyNewDocument): string =>
  JSON.stringify(kind === 'payouts' ? { ...draft, body: null } : draft)

/** The documents without texts that a redaction replaces, and without hashes, which follow from them. */
const shapeOf = (changes: readonly DocumentChange[]): string =>
  JSON.stringify(changes, (name, value) => {
    if (value instanceof JsonText) return value.text
    return replaced.has(name) && typeof value === 'string' ? '' : value
  })
const replaced = new Set(['name', 'email', 'label', 'hash'])
