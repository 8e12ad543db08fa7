/**
 * Finds parked records that other parked records undo: a payment that a void reverses, a key that a revocation ends, a
 * payout that another one replaces. Published again alone, such a record would show what its publisher has taken back.
 *
 * In: the records of a chunk. Out: those of them that a record undoes which this run does not publish. In: the results
 *   of the chunk. Out: how many published records wait for a record of this run that undoes them, when the run ends.
 * Cost: each organization is searched once in a run: its payouts, voids and revocations are read, a page at a time.
 */
import { decode, type ValidEvent, validate } from '../../core/ledger/index.ts'
import type { Send } from '../../core/store/index.ts'
import type { EventType } from '../../schemas/events.ts'
import { recordId } from '../../schemas/stored/documents.ts'
import type { Live, LiveStream } from '../live.ts'
import { AFTER_ALL_OFFSETS } from './decide-record.ts'
import {
  eachParked,
  type Parked,
  type ParkedFields,
  pagesInOrder,
  refreshParkedRecords,
  whyUnsendable,
} from './find.ts'
import { targetSource } from './forecast.ts'

export type UndoneRecords = {
  /** Returns those that this run must not publish. */
  readonly find: (chunk: readonly Parked[]) => Promise<ReadonlySet<Parked>>
  /** Notes a record that this run is done with. */
  readonly note: (parked: Parked, isPublished: boolean) => void
  /** The number of published records that a record undoes which this run was to publish after them, and has not. */
  readonly open: () => number
}

/** @param isSelected whether this run publishes a record, too, if Kafka can take it */
export const createUndoneRecords = (
  stream: LiveStream,
  isSelected: (fields: ParkedFields) => boolean,
  { send, live, signal }: { readonly send: Send; readonly live: Live; readonly signal: AbortSignal },
): UndoneRecords => {
  const known = new Set<string>()
  /** The ids of records that selected records undo and have not yet, and of those that only others undo. */
  const [ours, undone] = [new Set<string>(), new Set<string>()]
  const open = new Set<string>()

  const learn = async (org: readonly string[]): Promise<void> => {
    await refreshParkedRecords(send, live)
    const theirs = new Set<string>()
    /** The id of what a record of ours undoes, by the id of that record. */
    const undoneByOurs = new Map<string, string>()
    const filter = { topic: stream.identity.topic, type: undoingTypes, org }
    for await (const page of pagesInOrder({ send, live, signal }, filter)) {
      for await (const parked of eachParked(send, live, page)) {
        signal.throwIfAborted()
        const event = parked && eventIn(stream, parked)
        const id = undoneBy(event)
        if (!parked || !id) continue
        const isOurs = isSelected(parked.fields) && whyUnsendable(parked) === undefined
        ;(isOurs ? ours : theirs).add(id)
        if (isOurs) undoneByOurs.set(undoableIn(event) ?? '', id)
      }
    }
    // A record of ours that is undone itself is not published: what it undoes must not be, either.
    const found = theirs.difference(ours)
    for (const id of found) {
      undone.add(id)
      const next = undoneByOurs.get(id)
      if (next !== undefined) found.add(next)
    }
    for (const one of org) known.add(one)
  }

  return {
    find: async chunk => {
      const orgs = new Set(chunk.flatMap(({ fields: { org_id } }) => org_id ?? [])).difference(known)
      if (orgs.size > 0) await learn([...orgs])
      const isUndone = (parked: Parked): boolean => undone.has(undoableIn(eventIn(stream, parked)) ?? '')
      return new Set(undone.size === 0 ? [] : chunk.filter(isUndone))
    },
    note: (parked, isPublished) => {
      if (ours.size === 0) return
      const event = eventIn(stream, parked)
      const id = undoableIn(event)
      if (isPublished && id && ours.has(id)) open.add(id)
      const undoneId = undoneBy(event) ?? ''
      if (!isPublished) return
      open.delete(undoneId)
      ours.delete(undoneId)
    },
    open: () => open.size,
  }
}

/** The event of a parked record, where its key puts it; undefined if it breaks a rule that needs no other record. */
const eventIn = (stream: LiveStream, parked: Parked): ValidEvent | undefined => {
  const record = { ...parked.record, offset: AFTER_ALL_OFFSETS }
  const envelope = decode(record)
  const event = typeof envelope === 'string' ? envelope : validate(envelope, record, targetSource(stream, parked))
  return typeof event === 'string' ? undefined : event
}

/** The id of the record that an event makes. A void and a revocation, which has the id of its key, stand for ever. */
const undoableIn = (event: ValidEvent | undefined): string | undefined => {
  if (event === undefined || event.type === VOIDED || event.type === REVOKED) return undefined
  return recordId(event.data.org_id, event.data.id)
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
const undoneBy = (event: ValidEvent | undefined): string | undefined => {
  const id = event && idUndoneBy(event)
  return event && id ? recordId(event.data.org_id, id) : undefined
}
const idUndoneBy = (event: ValidEvent): string | null => {
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
