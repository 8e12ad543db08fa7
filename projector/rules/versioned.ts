/** Reps and periods: each recording is the whole record, and replaces the one before. Every version stays readable. */
import { recordId, versionId } from '../../schemas/documents.ts'
import type { PeriodData, RepData } from '../../schemas/events.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../schemas/limits.ts'
import { type Change, changeOf, keyOf, type State, versionsBefore } from '../state.ts'
import { type Decision, duplicate, type Placed, parked, type Rules } from './decision.ts'

type Data = RepData | PeriodData
type Versioned = 'reps' | 'periods'

export const repRules: Rules<RepData> = {
  needs: data => needs('reps', data),
  needsNext: (event, state) => needsNext('reps', event, state),
  decide: (event, state) => decide('reps', event, state, () => true),
}

export const periodRules: Rules<PeriodData> = {
  needs: data => needs('periods', data),
  needsNext: (event, state) => needsNext('periods', event, state),
  decide: (event, state) =>
    decide('periods', event, state, before => onlyNameDiffers(before as PeriodBody, event.data)),
}

const needs = (place: Versioned, data: Data) => [keyOf(place, recordId(data.org_id, data.id))]

const needsNext = (place: Versioned, { data, seq }: Placed<Data>, state: State) => {
  const last = versionsBefore(state.head(place, recordId(data.org_id, data.id)), seq).at(-1)
  return last ? [keyOf(place, versionId(data.org_id, data.id, last.seq))] : []
}

const decide = (
  place: Versioned,
  { data, hash, seq, at }: Placed<Data>,
  state: State,
  mayReplace: (before: unknown) => boolean,
): Decision => {
  const { org_id, ...body } = data
  const head = recordId(org_id, data.id)
  const versions = versionsBefore(state.head(place, head), seq)
  const last = versions.at(-1)
  if (last?.hash === hash) return duplicate

  const change = (id: string, draft: Change['draft']): Change => changeOf(place, id, seq, draft)
  const changes = [
    change(versionId(org_id, data.id, seq), {
      org_id,
      first_seq: versions[0]?.seq ?? seq,
      seq,
      until_seq: UNTIL_FOREVER,
      at,
      hash,
      body,
    }),
    change(head, { org_id, body: { versions: [...versions, { seq, hash }] } }),
  ]
  if (last) {
    const id = versionId(org_id, data.id, last.seq)
    const replaced = state.version(place, id)
    if (replaced === null) throw new Error('a version that its head names is missing')
    if (!mayReplace(replaced.body)) return parked('period_changed')
    changes.push(change(id, { ...replaced, until_seq: seq }))
  }
  if (versions.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')
  return { outcome: 'applied', changes }
}

type PeriodBody = Omit<PeriodData, 'org_id'>

/** As text: another notation of the same instant would change what is served, and only the name may change. */
const onlyNameDiffers = (before: PeriodBody, after: PeriodData): boolean =>
  before.kind === after.kind &&
  before.timezone === after.timezone &&
  before.starts_at === after.starts_at &&
  before.ends_at === after.ends_at
