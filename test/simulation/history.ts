/**
 * The log that a schedule publishes, and what the model expects at each position of it. The log has two topics, with
 * control records and aborted records among the records. Several schedules share one history. A history depends on its
 * seed alone.
 */

import { createHash } from 'node:crypto'
import { type EncodedHeaders, encodeHeaders } from '../../core/log/kafka/encoded-headers.ts'
import { parkedId } from '../../schemas/stored/documents.ts'
import { createModel, type Item, type Model, type Outcome, type View } from '../support/model.ts'
import { partitionOf } from '../support/model-record.ts'
import { createRandom, type Random } from '../support/random.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { type Placed, type Published, place, toPublished } from '../support/topics.ts'
import { BEGINNING } from './clock.ts'
import type { TimedEvent } from './moments.ts'
import { unreadEntries } from './unread-batches.ts'

export const EVENTS = 'commission.events'
export const API_KEYS = 'commission.api-keys'

/** One offset of a partition. A consumer that reads only committed records gets entries of kind `record`. */
export type Entry = {
  readonly offset: number
  readonly kind: 'record' | 'aborted' | 'control'
  readonly published: Published
  /** The batch that it is in, if nobody can read that one. Its entries are those that stand for it. */
  readonly batch?: Buffer
  /** The form in which the Kafka client delivers it. */
  readonly message: {
    readonly offset: string
    readonly timestamp: string
    readonly key: Buffer | null
    readonly value: Buffer | null
    readonly headers: EncodedHeaders
  }
}
export type Log = Readonly<Record<string, readonly (readonly Entry[])[]>>

export type List = 'reps' | 'periods' | 'payouts' | 'payroll_files'
/** The state of an organization at a position. Equal items have equal texts. */
export type Expected = {
  readonly lists: Readonly<Record<List, readonly Expectation[]>>
  readonly payouts: ReadonlyMap<string, Expectation>
  readonly statements: ReadonlyMap<string, string>
}
export type Expectation = { readonly id: string; readonly place: number; readonly pair: string; readonly text: string }

/** `id`: of the record that the event changed. */
export type NamedEvent = TimedEvent & { readonly id: string }

/** A key, and the offsets of the events that created and revoked it. */
export type KeyLife = {
  readonly text: string
  readonly org: string
  readonly id: string
  readonly created: number
  revoked: number
}

export class History {
  readonly log: Log
  readonly partitions: number
  readonly organizations: readonly string[]
  /** Its publisher has wrong times; undefined if there is one organization only. */
  readonly stranger: string | undefined
  readonly outcomes: ReadonlyMap<Entry, Outcome>
  /** By the SHA-256 of the key's text. */
  readonly keys = new Map<string, KeyLife>()
  /** The code of each parked record, by its document id. */
  readonly parked = new Map<string, string>()
  readonly #keyTexts = new Map<string, string>()
  readonly #model: Model
  /** The offset of the first event of each record, by organization and id. */
  readonly #places = new Map<string, number>()
  /** By organization, its applied events in order. */
  readonly #times = new Map<string, NamedEvent[]>()
  readonly #organizationsOf: readonly (readonly string[])[]
  readonly #views = new Map<string, Expected>()

  /** @param times `right`: the same log, with the right times of the stranger's records. */
  constructor(seed: number, times: 'wrong' | 'right' = 'wrong') {
    const random = createRandom(seed)
    this.partitions = 1 + random.below(3)
    // Only in a common partition could the times of one organization reach another one.
    const common = random.chance(0.5) ? random.below(this.partitions) : undefined
    const length = random.pick([1, 2, 2, 3, 3, 4])
    const wanted = Array.from({ length }, () => common ?? random.below(this.partitions))
    this.organizations = organizationsIn(random, wanted, this.partitions)
    this.#organizationsOf = Array.from({ length: this.partitions }, (_, partition) =>
      this.organizations.filter(org => partitionOf(org, this.partitions) === partition),
    )
    const begin = { reps: 1 + random.below(6), periods: 1 + random.below(4) }
    const records = createStream(random, this.organizations, this.partitions, begin)
      .take(40 + random.below(random.pick([40, 200])))
      .filter(({ value }) => (value?.length ?? 0) < VALUE_BYTES)
      .map(record => place(record, this.partitions))
      .map(record => ({ ...record, partition: record.partition % this.partitions }))
    const strange = createRandom(seed + 0x7e57)
    this.stranger = this.organizations.length > 1 ? strange.pick(this.organizations) : undefined
    this.log = lay(records.map(renamed(this.#keyTexts)), this.partitions, random, {
      timeOf: timesWith(this.stranger, strange, times),
      unread: createRandom(seed + 0xba7c4),
    })
    this.#model = createModel(this.partitions)
    this.outcomes = this.#fold()
  }

  organizationsOf(partition: number): readonly string[] {
    return this.#organizationsOf[partition] ?? []
  }

  partitionOf(org: string): number {
    return this.#organizationsOf.findIndex(organizations => organizations.includes(org))
  }

  at(org: string, position: number): Expected {
    const key = `${org} ${position}`
    const known = this.#views.get(key) ?? this.#expect(org, this.#model.view(org, position))
    this.#views.set(key, known)
    return known
  }

  /** The current payouts and the payroll records of an organization at a position. */
  recordsAt(org: string, position: number) {
    const { payouts, payroll_files } = this.at(org, position).lists
    const itemsOf = (of: readonly Expectation[]) => of.map(({ text }) => JSON.parse(text) as Item)
    return { payouts: itemsOf(payouts), payroll_files: itemsOf(payroll_files) }
  }

  /** The texts of these records at a position, replaced payouts too, in this order and without unknown ones. */
  byIds(org: string, position: number, list: List, ids: readonly string[]): string[] {
    const { lists, payouts } = this.at(org, position)
    const found = list === 'payouts' ? payouts : new Map(lists[list].map(item => [item.id, item]))
    return ids.flatMap(id => found.get(id)?.text ?? [])
  }

  /** Returns the offset that orders a record in its list, at any position; undefined if no event made it. */
  placeOf(org: string, id: string): number | undefined {
    return this.#places.get(`${org} ${id}`)
  }

  /** The applied events of an organization before a position, in order, with their times. */
  eventsOf(org: string, position: number): readonly NamedEvent[] {
    return (this.#times.get(org) ?? []).filter(({ seq }) => seq < position)
  }

  #fold(): Map<Entry, Outcome> {
    const outcomes = new Map<Entry, Outcome>()
    for (const [topic, partitions] of Object.entries(this.log)) {
      for (const [partition, entries] of partitions.entries()) {
        for (const entry of entries) {
          if (entry.kind !== 'record') continue
          const outcome = this.#model.take(entry.published.stream, partition, entry.published)
          outcomes.set(entry, outcome)
          if (outcome.outcome === 'parked') this.parked.set(parkedId(topic, partition, entry.offset), outcome.code)
          if (outcome.outcome === 'applied') this.#remember(entry)
        }
      }
    }
    return outcomes
  }

  #remember({ published, offset, message }: Entry): void {
    const json = JSON.parse(String(published.value))
    const { org_id, id, secret_sha256, revoked_at } = json.specversion === undefined ? json : json.data
    if (published.stream === 'events') {
      const key = `${org_id} ${id}`
      const at = Math.min(Math.max(0, Number(message.timestamp)), Number.MAX_SAFE_INTEGER)
      this.#times.set(org_id, [...(this.#times.get(org_id) ?? []), { seq: offset, at, id }])
      if (!this.#places.has(key)) this.#places.set(key, offset)
    } else if (revoked_at === undefined) {
      const text = this.#keyTexts.get(secret_sha256) ?? ''
      this.keys.set(secret_sha256, { text, org: org_id, id, created: offset, revoked: Number.POSITIVE_INFINITY })
    } else {
      for (const key of this.keys.values()) if (key.org === org_id && key.id === id) key.revoked = offset
    }
  }

  #expect(org: string, view: View): Expected {
    const expectation = (item: Item): Expectation => ({
      id: String(item.id),
      place: this.placeOf(org, String(item.id)) ?? -1,
      pair: `${item.rep_id} ${item.period_id}`,
      text: textOfItem(item),
    })
    const { reps, periods, payouts, payroll_files } = view
    const all = { reps, periods, payouts, payroll_files }
    return {
      lists: Object.fromEntries(
        Object.entries(all).map(([list, items]) => [list, items.map(expectation)]),
      ) as unknown as Expected['lists'],
      payouts: new Map(view.everyPayout.map(item => [String(item.id), expectation(item)])),
      statements: new Map(view.statements.map(item => [String(item.id), textOfItem(item)])),
    }
  }
}

/** Maximum bytes of a value. Larger values cost time, or are refused for their size: neither matters here. */
const VALUE_BYTES = 20_000

/** Returns JSON with sorted field names. */
export const textOf = (json: unknown): string => {
  if (Array.isArray(json)) return `[${json.map(textOf).join()}]`
  if (typeof json !== 'object' || json === null) return JSON.stringify(json)
  const fields = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${textOf(value)}`).join()}}`
}

const seen = new Map<string, string>()

/** The same as `textOf`, with a cache. */
export const textOfItem = (json: unknown): string => {
  const written = JSON.stringify(json)
  const known = seen.get(written) ?? textOf(json)
  if (seen.size > ITEMS_REMEMBERED) seen.clear()
  seen.set(written, known)
  return known
}
const ITEMS_REMEMBERED = 20_000

/** Replaces random texts of the event builders by numbered ones: the history must depend on its seed alone. */
const renamed = (keyTexts: Map<string, string>) => {
  const names = new Map<string, string>()
  const name = (found: string): string => {
    const known = names.get(found)
    if (known !== undefined) return known
    const text = `simulated_key_${names.size}`
    const made = hashOf(text).slice(0, found.length)
    keyTexts.set(made, text)
    names.set(found, made)
    return made
  }
  const rename = (text: string): string =>
    text
      .replace(/(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{16})(?![0-9a-f])/g, name)
      .replace(/("last4":\s*)"[^"]{4}"/g, '$1"last"')
  const inBytes = <Bytes extends Buffer | string | null>(bytes: Bytes): Bytes | Buffer | string => {
    if (bytes === null) return bytes
    return typeof bytes === 'string' ? rename(bytes) : Buffer.from(rename(bytes.toString('latin1')), 'latin1')
  }
  return (record: Placed): Placed => ({
    ...record,
    key: inBytes(record.key),
    value: inBytes(record.value),
    headers: Object.fromEntries(
      Object.entries(record.headers).map(([header, value]) => [
        header,
        typeof value === 'string' ? rename(value) : value,
      ]),
    ),
  })
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

type TimeOf = (record: Placed, time: number) => number

/**
 * The publisher of one organization has wrong times, by random numbers of their own. The clocks of the others are
 * right.
 */
const timesWith = (stranger: string | undefined, random: Random, times: 'wrong' | 'right'): TimeOf => {
  let latest = 0
  return ({ key }, time) => {
    if (stranger === undefined) return time
    latest = Math.max(latest + 1, time)
    if (String(key) !== stranger || random.chance(0.3)) return latest
    const wrong = random.pick([
      time * 1_000,
      time + 7_200_000,
      time + 2_000,
      time - 30_000_000_000,
      time - 2_000,
      0,
      -1,
      -(2 ** 40),
    ])
    return times === 'wrong' ? wrong : latest
  }
}

/** Puts records into their partitions, some in transactions with control records and aborted records. */
const lay = (
  records: readonly Placed[],
  partitions: number,
  random: Random,
  { timeOf, unread }: { readonly timeOf: TimeOf; readonly unread: Random },
): Log => {
  const log: Record<string, Entry[][]> = { [EVENTS]: Array.from({ length: partitions }, () => []), [API_KEYS]: [[]] }
  const transactions = random.chance(0.6)
  let time = BEGINNING
  const add = (record: Placed, kind: Entry['kind']): void => {
    const entries = log[record.stream === 'events' ? EVENTS : API_KEYS]?.[record.partition]
    // A broker that takes over a partition can have a clock that is behind.
    time += random.below(50) - (random.chance(0.05) ? 2_000 : 0)
    entries?.push(toEntry(record, kind, entries.length, timeOf(record, time)))
  }
  const addUnread = (beside: Placed): void => {
    const entries = log[beside.stream === 'events' ? EVENTS : API_KEYS]?.[beside.partition] ?? []
    const times = Array.from({ length: 2 + unread.below(unread.pick([3, 60])) }, () => timeOf(beside, time))
    const kind = transactions && unread.chance(0.3) ? 'aborted' : 'record'
    entries.push(...unreadEntries(unread, beside, entries.length, kind, times))
  }
  const hasUnread = unread.chance(0.4)
  for (const record of records) {
    add(record, 'record')
    if (hasUnread && unread.chance(0.03)) addUnread(record)
    if (!transactions || random.chance(0.8)) continue
    if (random.chance(0.5)) for (let count = random.below(4); count >= 0; count--) add(random.pick(records), 'aborted')
    add(record, 'control')
  }
  return log
}

const toEntry = (record: Placed, kind: Entry['kind'], offset: number, time: number): Entry => {
  const published = toPublished(record, offset)
  const { key, value, headers } = published
  const message = { offset: `${offset}`, timestamp: `${time}`, key, value, headers: encodeHeaders(headers) }
  return { offset, kind, published, message }
}
