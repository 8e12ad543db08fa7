/**
 * The log that the publishers of the organizations made, with a model of it. A topic can lose it, get another one from
 * a stranger, and get it back. Everything that readers are shown must come from this log.
 */
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { Outgoing } from '../../support/events.ts'
import { createModel, type Model, type View } from '../../support/model.ts'
import { place, toPublished } from '../../support/topics.ts'
import { API_KEYS, type Entry, EVENTS } from '../history.ts'

export const PARTITIONS = 3
export const STREAMS = [EVENTS, API_KEYS] as const
export type Entries = Readonly<Record<string, readonly (readonly Entry[])[]>>

/** The topic and the partition of a record. */
export const placeOf = (record: Outgoing): { readonly topic: string; readonly partition: number } => {
  const { partition } = place(record, PARTITIONS)
  return { topic: record.stream === 'events' ? EVENTS : API_KEYS, partition }
}

export const entryOf = (record: Outgoing, offset: number, time: number): Entry => {
  const published = toPublished(place(record, PARTITIONS), offset)
  const { key, value, headers } = published
  const message = { offset: `${offset}`, timestamp: `${time}`, key, value, headers: encodeHeaders(headers) }
  return { offset, kind: 'record', published, message }
}

export class RealLog {
  readonly entries: Readonly<Record<string, Entry[][]>>
  readonly #model: Model = createModel(PARTITIONS)
  readonly #changes = new Map<string, number[]>()

  /** @param begin the entries that it begins with */
  constructor(begin: Entries) {
    this.entries = Object.fromEntries(STREAMS.map(topic => [topic, (begin[topic] ?? []).map(() => [])]))
    for (const topic of STREAMS) {
      for (const [partition, entries] of (begin[topic] ?? []).entries()) {
        for (const entry of entries) this.add(topic, partition, entry)
      }
    }
  }

  add(topic: string, partition: number, entry: Entry): void {
    this.entries[topic]?.[partition]?.push(entry)
    const { kind, published } = entry
    if (kind !== 'record') return
    const { outcome } = this.#model.take(published.stream, partition, published)
    const org = String(published.key)
    if (outcome === 'applied' && published.stream === 'events')
      this.#changes.set(org, [...(this.#changes.get(org) ?? []), entry.offset])
  }

  endOf(topic: string, partition: number): number {
    return this.entries[topic]?.[partition]?.length ?? 0
  }

  /** Returns the records of an organization before a position of its partition. */
  view(org: string, position: number): View {
    return this.#model.view(org, position)
  }

  /** Returns the number of changes of an organization before a position. */
  changesOf(org: string, position: number): number {
    return (this.#changes.get(org) ?? []).filter(offset => offset < position).length
  }

  /** Whether a key, by the SHA-256 of its text, was ever created, and whether it is revoked. */
  key(sha256: string): 'unknown' | 'valid' | 'revoked' {
    const key = this.#model.keys().get(sha256)
    if (key === undefined) return 'unknown'
    return key.revoked ? 'revoked' : 'valid'
  }
}

export const emptyEntries: Entries = { [EVENTS]: Array.from({ length: PARTITIONS }, () => []), [API_KEYS]: [[]] }
