/**
 * Where an instant lies in a partition. In: entries in order, and an instant. Out: the first record whose time is
 *   later: everything before it is up to the instant.
 * Promises: only records count. Control records and aborted ones have the time at which a restore made them. A time
 *   that says nothing (before Kafka existed, or ahead of the clock) counts with the record before it.
 * Can go wrong: a record after that one has a time up to the instant. Then no offset separates the records by time, and
 *   an end would cut off records that belong to it.
 */

import type { LogEntry } from '../../core/log/index.ts'
import { EVENT_TIME_AHEAD_MAX_MS, EVENT_TIME_MIN } from '../../schemas/limits.ts'
import { CommandError } from '../failures.ts'

export type WantedTime = {
  readonly time: number
  /** The present, in milliseconds since 1970. */
  readonly now: number
  /** Only records with this key count; undefined for all. */
  readonly org: string | undefined
}

/** Finds the first later record, given the entries of a partition in order, part by part. */
export class FirstLater {
  readonly #partition: number
  readonly #wanted: WantedTime
  #offset: number | undefined

  constructor(partition: number, wanted: WantedTime) {
    this.#partition = partition
    this.#wanted = wanted
  }

  get offset(): number | undefined {
    return this.#offset
  }

  /** @throws CommandError that names both records, if the instant does not separate them */
  add(entries: readonly LogEntry[]): void {
    const { time, now, org } = this.#wanted
    for (const { kind, timestamp, key, offset } of entries) {
      if (kind !== 'record' || (org !== undefined && key?.toString('utf8') !== org)) continue
      if (timestamp < EVENT_TIME_MIN || timestamp > now + EVENT_TIME_AHEAD_MAX_MS) continue
      if (timestamp > time) this.#offset ??= offset
      else if (this.#offset !== undefined) throw this.#mixed(this.#offset, offset)
    }
  }

  #mixed(later: number, earlier: number): CommandError {
    const partition = this.#partition
    const what = `in partition ${partition} the record at offset ${later} is later, and that at ${earlier}, after it, is not`
    const next = `Choose another time, say --org, or --until-offset ${partition}:OFFSET`
    return new CommandError(`the times of the records do not separate them at that time: ${what}. ${next}`)
  }
}
