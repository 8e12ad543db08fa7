/**
 * The log for a pair of commands: two organizations in two partitions, replaced payouts, payments and voids. Some
 * records come before the records that they reference: they are parked, and would be applied if they were published
 * again.
 */
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import {
  keyCreated,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from '../../support/events.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { seal } from '../../support/seal.ts'
import { organizationsIn } from '../../support/streams.ts'
import { place, toPublished } from '../../support/topics.ts'
import { BEGINNING } from '../clock.ts'
import { API_KEYS, type Entry, EVENTS, type Log } from '../history.ts'
import { unreadEntries } from '../unread-batches.ts'

export const PARTITIONS = 2

export type PairLog = {
  readonly log: Log
  readonly organizations: readonly string[]
  /** End of each events partition before the commands start; the rest is published while they run. */
  readonly before: readonly number[]
  /** Parked records that would be applied if they were published again at the end. */
  readonly parked: readonly { readonly topic: string; readonly partition: number; readonly offset: number }[]
}

/** @param isMixed with sealed texts of two more reps, records of aborted transactions, batches that nobody can
 *   read, and times in microseconds */
export const createLog = (random: Random, isMixed = false): PairLog => {
  const organizations = organizationsIn(random, [0, 1], PARTITIONS)
  const log: Record<string, Entry[][]> = { [EVENTS]: Array.from({ length: PARTITIONS }, () => []), [API_KEYS]: [[]] }
  const parked: { topic: string; partition: number; offset: number }[] = []
  const unread = createRandom(7)
  let time = BEGINNING - 1_000_000
  const add = (record: Outgoing, unit = 1): Entry => {
    const { partition } = place(record, PARTITIONS)
    const entries = log[record.stream === 'events' ? EVENTS : API_KEYS]?.[partition] ?? []
    time += 1 + random.below(50)
    const entry = entryOf(record, entries.length, time * unit)
    entries.push(entry)
    return entry
  }
  const addHole = (partition: number): void => {
    const entries = log[EVENTS]?.[partition] ?? []
    const [first] = entries
    for (const kind of first === undefined ? [] : (['aborted', 'aborted', 'control'] as const)) {
      const offset = entries.length
      const message = { ...(first as Entry).message, offset: `${offset}`, timestamp: `${++time}` }
      entries.push({ ...(first as Entry), offset, kind, message })
    }
  }
  /** Batches that nobody can read: four offsets that are parked, and two of an aborted transaction. */
  const addUnread = (partition: number): void => {
    const entries = log[EVENTS]?.[partition] ?? []
    for (const [kind, count] of [
      ['record', 4],
      ['aborted', 2],
    ] as const) {
      time += 50
      const times = Array.from({ length: count }, (_, index) => time + index)
      entries.push(...unreadEntries(unread, { stream: 'events', partition }, entries.length, kind, times))
    }
  }
  const addParked = (record: Outgoing): void => {
    const { partition, offset } = add(record).published
    parked.push({ topic: EVENTS, partition, offset })
  }
  const payout = (org_id: string, number: number, supersedes_id: string | null, rep_id = 'rep_1'): Outgoing =>
    payoutCalculated({ org_id, id: `payout_${rep_id.slice(4)}x${number}`, rep_id, supersedes_id })

  for (const org_id of organizations) {
    add(keyCreated({ org_id, id: 'key_1', text: `ck_pair_${org_id}_0000000000` }))
    addParked(payout(org_id, 1, null, 'rep_2'))
    addParked(payrollRecorded({ org_id, id: 'payroll_early', rep_id: 'rep_2', payout_id: null }))
    add(repRecorded({ org_id, id: 'rep_1' }))
    add(repRecorded({ org_id, id: 'rep_2' }))
    add(periodRecorded({ org_id }), isMixed ? 1_000 : 1)
    if (isMixed) for (const rep of sealedReps(org_id)) add(repRecorded(rep))
    for (let number = 1; number < 4; number++)
      add(payout(org_id, number, number === 1 ? null : `payout_1x${number - 1}`))
    add(payrollRecorded({ org_id, id: 'payroll_1', rep_id: 'rep_1', payout_id: 'payout_1x3' }))
  }
  const addMixed = (): void => {
    if (!isMixed) return
    for (let partition = 0; partition < PARTITIONS; partition++) {
      addHole(partition)
      addUnread(partition)
    }
  }
  addMixed()
  const before = (log[EVENTS] ?? []).map(entries => entries.length)
  for (const org_id of organizations) {
    add(payrollVoided({ org_id, id: 'payroll_2', reverses_id: 'payroll_1' }))
    for (let number = 4; number < 8; number++) add(payout(org_id, number, `payout_1x${number - 1}`))
    add(repRecorded({ org_id, id: 'rep_1', name: 'Grace' }))
  }
  addMixed()
  return { log, organizations, before, parked }
}

export const entryOf = (record: Outgoing, at: number, time: number): Entry => {
  const published = toPublished(place(record, PARTITIONS), at)
  const { offset, key, value, headers } = published
  const message = { offset: `${offset}`, timestamp: `${time}`, key, value, headers: encodeHeaders(headers) }
  return { offset, kind: 'record', published, message }
}

/** The ids of the seal keys in a mixed log: two of `rep_3`, one of `rep_4`. */
export const sealKeysOf = (org: string): readonly string[] =>
  ['a', 'b', 'c'].map(name => `${name}-${org.slice(4).toLowerCase()}`)

const sealedReps = (org_id: string) => {
  const [a = '', b = '', c = ''] = sealKeysOf(org_id)
  const text = (id: string, field: 'name' | 'email', keyId: string): string =>
    seal(`${field} of ${id}`, { org: org_id, record: id, field, keyId })
  return [
    { org_id, id: 'rep_3', name: text('rep_3', 'name', a), email: text('rep_3', 'email', b) },
    { org_id, id: 'rep_4', name: text('rep_4', 'name', c) },
  ]
}
