/** Rules of reps and periods: each event has the whole record and replaces the last version; all stay readable. */

import type { PeriodData, RepData } from '../../schemas/events.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../schemas/limits.ts'
import { recordId, versionId } from '../../schemas/stored/documents.ts'
import { type Decision, duplicate, type Placed, parked, type Rules } from './decision.ts'
import { type DocumentChange, type DocumentRef, documentChangeOf, refOf, type State, versionsBefore } from './state.ts'

type Data = RepData | PeriodData
type Versioned = 'reps' | 'periods'

type HeadName = { readonly head: DocumentRef }

export const repRules: Rules<RepData, HeadName> = {
  names: data => names('reps', data),
  namesNext: (event, state) => namesNext('reps', event, state),
  decide: (event, state) => decide('reps', event, state, () => true),
}

export const periodRules: Rules<PeriodData, HeadName> = {
  names: data => names('periods', data),
  namesNext: (event, state) => namesNext('periods', event, state),
  decide: (event, state) =>
    decide('periods', event, state, before => onlyNameDiffers(before as PeriodBody, event.data)),
}

const names = (place: Versioned, data: Data) => ({ head: refOf(place, recordId(data.org_id, data.id)) })

const namesNext = (place: Versioned, { data, names, seq }: Placed<Data, HeadName>, state: State) => {
  const last = versionsBefore(state.head(names.head), seq).at(-1)
  return last ? [refOf(place, versionId(data.org_id, data.id, last.seq))] : []
}

const decide = (
  place: Versioned,
  { data, names: { head }, hash, seq, at }: Placed<Data, HeadName>,
  state: State,
  mayReplace: (before: unknown) => boolean,
): Decision => {
  const { org_id, ...body } = data
  const versions = versionsBefore(state.head(head), seq)
  const last = versions.at(-1)
  if (last?.hash === hash) return duplicate

  const change = (name: DocumentRef, draft: DocumentChange['draft']): DocumentChange =>
    documentChangeOf(name, seq, draft)
  const changes = [
    change(refOf(place, versionId(org_id, data.id, seq)), {
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
    const name = refOf(place, versionId(org_id, data.id, last.seq))
    const replaced = state.version(name)
    if (replaced === null) throw new Error('a head names a version that does not exist')
    if (!mayReplace(replaced.body)) return parked('period_changed')
    changes.push(change(name, { ...replaced, until_seq: seq }))
  }
  if (versions.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')
  return { outcome: 'applied', changes }
}

type PeriodBody = Omit<PeriodData, 'org_id'>

/** Compares instants as text, because the API serves that text and only the name may change. */
const onlyNameDiffers = (before: PeriodBody, after: PeriodData): boolean =>
  before.kind === after.kind &&
  before.timezone === after.timezone &&
  before.starts_at === after.starts_at &&
  before.ends_at === after.ends_at
