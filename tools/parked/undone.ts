/**
 * Finds parked records that other parked records undo: a payment that a void reverses, a key that a revocation ends, a
 * payout that another one replaces. Published again alone, such a record would show what its publisher has taken back.
 *
 * In: the records of a chunk. Out: those of them that a record undoes which this run does not publish.
 * Cost: each organization is searched once in a run. Of the records that this run publishes too, no bytes are read,
 *   except where another record has the same event id: it may be a copy, of which one is enough.
 */
import { decode, type ValidEvent, validate } from '../../core/ledger/index.ts'
import type { Send } from '../../core/store/index.ts'
import type { EventType } from '../../schemas/events.ts'
import { recordId } from '../../schemas/stored/documents.ts'
import type { Live, LiveStream } from '../live.ts'
import { AFTER_ALL_OFFSETS } from './decide-record.ts'
import { eachParked, type Parked, type ParkedFields, pagesInOrder } from './find.ts'
import { targetSource } from './forecast.ts'

/** Returns those that this run must not publish. */
type FindUndone = (chunk: readonly Parked[]) => Promise<ReadonlySet<Parked>>

/** @param isSelected whether this run publishes a record, too */
export const createFindUndone = (
  stream: LiveStream,
  isSelected: (fields: ParkedFields) => boolean,
  { send, live }: { readonly send: Send; readonly live: Live },
): FindUndone => {
  const known = new Set<string>()
  const undone = new Set<string>()

  const readUndone = async (records: readonly ParkedFields[]): Promise<Set<string>> => {
    const ids = new Set<string>()
    for await (const parked of eachParked(send, live, records)) {
      const event = parked && eventIn(stream, parked)
      const id = event && undoneBy(event)
      if (event && id) ids.add(recordId(event.data.org_id, id))
    }
    return ids
  }
  const learn = async (org: readonly string[]): Promise<void> => {
    const [ours, others]: [ParkedFields[], ParkedFields[]] = [[], []]
    const filter = { topic: stream.identity.topic, type: undoingTypes, org }
    for await (const page of pagesInOrder(send, live, filter)) {
      for (const fields of page) (isSelected(fields) ? ours : others).push(fields)
    }
    const events = new Set(others.map(eventOf))
    const published = await readUndone(ours.filter(fields => events.has(eventOf(fields))))
    for (const id of await readUndone(others)) if (!published.has(id)) undone.add(id)
    for (const one of org) known.add(one)
  }

  return async chunk => {
    const orgs = new Set(chunk.flatMap(({ fields: { org_id } }) => org_id ?? [])).difference(known)
    if (orgs.size > 0) await learn([...orgs])
    return new Set(undone.size === 0 ? [] : chunk.filter(parked => isUndone(eventIn(stream, parked), undone)))
  }
}

const eventOf = ({ type, event_id }: ParkedFields): string => `${type} ${event_id}`

/** The event of a parked record, where its key puts it; undefined if it breaks a rule that needs no other record. */
const eventIn = (stream: LiveStream, parked: Parked): ValidEvent | undefined => {
  const record = { ...parked.record, offset: AFTER_ALL_OFFSETS }
  const envelope = decode(record)
  const event = typeof envelope === 'string' ? envelope : validate(envelope, record, targetSource(stream, parked))
  return typeof event === 'string' ? undefined : event
}

const isUndone = (event: ValidEvent | undefined, undone: ReadonlySet<string>): boolean => {
  // A void and a revocation stand for ever. A revocation has the id of its key.
  if (event === undefined || event.type === VOIDED || event.type === REVOKED) return false
  return undone.has(recordId(event.data.org_id, event.data.id))
}

const VOIDED = 'commission.payroll.voided.v1'
const REVOKED = 'commission.api_key.revoked.v1'
const undoingTypes: readonly EventType[] = [
  VOIDED,
  REVOKED,
  'commission.payout.calculated.v1',
  'commission.payout.recorded.v1',
]

/** The id of the record that an event reverses, replaces or revokes. */
const undoneBy = (event: ValidEvent): string | null => {
  switch (event.type) {
    case VOIDED:
      return event.data.reverses_id
    case REVOKED:
      return event.data.id
    case 'commission.payout.calculated.v1':
    case 'commission.payout.recorded.v1':
      return event.data.supersedes_id
    case 'commission.rep.recorded.v1':
    case 'commission.period.recorded.v1':
    case 'commission.payroll.recorded.v1':
    case 'commission.api_key.created.v1':
      return null
    default:
      return event satisfies never
  }
}
