/** Rules of reps and periods: each event has the whole record and replaces the last version; all stay readable. */

import type { PeriodData, RepData } from '../../schemas/events.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../schemas/limits.ts'
import { recordId, type VersionDocument, versionId } from '../../schemas/stored/documents.ts'
import { type Decision, duplicate, parked, type Rules, type SequencedEvent } from './decision.ts'
import { type DocumentChange, type DocumentRef, documentChangeOf, refOf, type State, versionsBefore } from './state.ts'

type Data = RepData | PeriodData
type Versioned = 'reps' | 'periods'

type HeadName = { readonly head: DocumentRef }

export const repRules: Rules<RepData, HeadName> = {
  reads: data => reads('reps', data),
  thenReads: (event, state) => thenReads('reps', event, state),
  decide: (event, state) => decide('reps', event, state, () => true),
}

export const periodRules: Rules<PeriodData, HeadName> = {
  reads: data => reads('periods', data),
  thenReads: (event, state) => thenReads('periods', event, state),
  decide: (event, state) => decide('periods', event, state, before => onlyNameDiffers(before, event.data)),
}

const reads = (kind: Versioned, data: Data) => ({ head: refOf(kind, recordId(data.org_id, data.id)) })

const thenReads = (kind: Versioned, { data, reads, seq }: SequencedEvent<Data, HeadName>, state: State) => {
  const last = versionsBefore(state.head(reads.head), seq).at(-1)
  return last ? [refOf(kind, versionId(data.org_id, data.id, last.seq))] : []
}

const decide = (
  kind: Versioned,
  { data, reads: { head }, hash, seq, at }: SequencedEvent<Data, HeadName>,
  state: State,
  mayReplace: (before: VersionDocument['body']) => boolean,
): Decision => {
  const { org_id, ...body } = data
  const versions = versionsBefore(state.head(head), seq)
  const last = versions.at(-1)
  if (last?.hash === hash) return duplicate

  const change = (name: DocumentRef, draft: DocumentChange['draft']): DocumentChange =>
    documentChangeOf(name, seq, draft)
  const changes = [
    change(refOf(kind, versionId(org_id, data.id, seq)), {
      org_id,
      first_seq: versions[0]?.seq ?? seq,
      seq,
      ordinal: versions.length + 1,
      until_seq: UNTIL_FOREVER,
      at,
      hash,
      body,
    }),
    change(head, { org_id, body: { versions: [...versions, { seq, hash }] } }),
  ]
  if (last) {
    const name = refOf(kind, versionId(org_id, data.id, last.seq))
    const replaced = state.version(name)
    if (replaced === null) throw new Error('a head names a version that does not exist')
    if (!mayReplace(replaced.body)) return parked('period_changed')
    changes.push(change(name, { ...replaced, until_seq: seq }))
  }
  if (versions.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')
  return { outcome: 'applied', changes }
}

/** Compares instants as text, because the API serves that text and only the name may change. */
const onlyNameDiffers = (before: VersionDocument['body'], after: PeriodData): boolean =>
  'kind' in before &&
  before.kind === after.kind &&
  before.timezone === after.timezone &&
  before.starts_at === after.starts_at &&
  before.ends_at === after.ends_at
