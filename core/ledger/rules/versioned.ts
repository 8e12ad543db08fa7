/** Rules of reps and periods: each event has the whole record and replaces the last version; all stay readable. */

import type { PeriodData, RepData } from '../../../schemas/events.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { recordId, type VersionDocument, versionId } from '../../../schemas/stored/documents.ts'
import {
  type Decision,
  type DocumentChange,
  type DocumentRef,
  documentChangeOf,
  duplicate,
  type EventToLoad,
  parked,
  type Rules,
  refOf,
  type SequencedEvent,
  type State,
  versionsBefore,
} from './state.ts'

type Data = RepData | PeriodData
type Versioned = 'reps' | 'periods'

type HeadRefs = { readonly head: DocumentRef }

export const repRules: Rules<RepData, HeadRefs> = {
  reads: data => headRefs('reps', data),
  thenReads: (event, state) => lastVersionRefs('reps', event, state),
  decide: (event, state) => decideVersion('reps', event, state, () => true),
}

export const periodRules: Rules<PeriodData, HeadRefs> = {
  reads: data => headRefs('periods', data),
  thenReads: (event, state) => lastVersionRefs('periods', event, state),
  decide: (event, state) => decideVersion('periods', event, state, before => onlyNameDiffers(before, event.data)),
}

const headRefs = (kind: Versioned, data: Data): HeadRefs => ({ head: refOf(kind, recordId(data.org_id, data.id)) })

const lastVersionRefs = (kind: Versioned, { data, reads, seq }: EventToLoad<Data, HeadRefs>, state: State) => {
  const last = versionsBefore(state.head(reads.head), seq).at(-1)
  return last ? [refOf(kind, versionId(data.org_id, data.id, last.seq))] : []
}

const decideVersion = (
  kind: Versioned,
  { data, reads: { head }, hash, seq, at }: SequencedEvent<Data, HeadRefs>,
  state: State,
  mayReplace: (before: VersionDocument['body']) => boolean,
): Decision => {
  const { org_id, ...body } = data
  const versions = versionsBefore(state.head(head), seq)
  const last = versions.at(-1)
  if (last?.hash === hash) return duplicate

  const change = (ref: DocumentRef, draft: DocumentChange['draft']): DocumentChange => documentChangeOf(ref, seq, draft)
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
    const replacedRef = refOf(kind, versionId(org_id, data.id, last.seq))
    const replaced = state.version(replacedRef)
    if (replaced === null) throw new Error('a head names a version that does not exist')
    if (!mayReplace(replaced.body)) return parked('period_changed')
    changes.push(change(replacedRef, { ...replaced, until_seq: seq }))
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
