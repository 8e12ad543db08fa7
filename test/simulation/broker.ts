/**
 * The simulated Kafka: partitions that grow, their last stable offsets, topics that are deleted and made anew, and
 * consumer groups. Not simulated: several brokers, and new leaders, but that one may be behind when a record is read
 * without a group.
 */
import kafkajs from 'kafkajs'
import type { Clock, SimulatedProcess } from './clock.ts'
import type { Coverage } from './coverage.ts'
import { Group } from './group.ts'
import type { Entry, Log } from './history.ts'
import { borderBefore, borderFrom } from './unread-batches.ts'

export class Partition {
  readonly entries: Entry[]
  /** The last stable offset: later entries are not published yet, or may still be aborted. */
  end = 0
  constructor(entries: readonly Entry[]) {
    this.entries = [...entries]
  }
  /** @returns the offset of the new entry */
  append(entry: (offset: number) => Entry): number {
    const offset = this.entries.length
    this.entries.push(entry(offset))
    this.end = this.entries.length
    return offset
  }
  /** Loses the entries from an offset on, as after an election of a leader that lacks them. */
  cut(offset: number): void {
    this.entries.length = Math.min(this.entries.length, offset)
    this.end = Math.min(this.end, offset)
  }
  /** @returns undefined when the offset is out of range */
  read(offset: number, count: number): readonly Entry[] | undefined {
    if (offset < 0 || offset > this.end) return undefined
    // A fetch brings whole batches.
    const to = Math.min(this.end, offset + count)
    return offset === to ? [] : this.entries.slice(borderBefore(this.entries, offset), borderFrom(this.entries, to))
  }
}

export type Topic = { readonly name: string; readonly id: string; readonly partitions: readonly Partition[] }

/** Producers of one topic: transactional ids with their epoch, and the partitions of an open transaction. */
export type Producers = {
  next: number
  readonly transactions: Map<string, { readonly id: string; readonly epoch: number; readonly open: Set<number> }>
}
const LOG_APPEND_TIME = 'LogAppendTime'
export const AFTER_MAX_MS = 3_600_000

const unknownTopic = (): Error =>
  Object.assign(new kafkajs.KafkaJSError('there is no such topic', { retriable: true }), {
    type: 'UNKNOWN_TOPIC_OR_PARTITION',
  })

export class Broker {
  readonly topics = new Map<string, Topic>()
  clusterId = 'simulated'
  /** Whether topics have ids, as in Kafka 2.8 and later. */
  hasTopicIds = true
  /** The settings that a topic itself has. */
  readonly #settings = new Map<string, ReadonlyMap<string, string>>()
  readonly #producers = new Map<string, Producers>()
  readonly #groups = new Map<string, Group>()
  readonly #makeGroup: (partitions: number) => Group

  readonly #ids: string
  #topicsMade = 0

  /** Session timeout of consumer groups in milliseconds. */
  readonly session: number

  /** @param ids begins the ids of its topics: no two topics have the same id, also on different brokers. */
  constructor(
    log: Log,
    session: number,
    clock: Clock,
    coverage: Coverage,
    onTaken: (from: SimulatedProcess) => void,
    ids = 'first',
  ) {
    this.session = session
    this.#ids = ids
    for (const [name, partitions] of Object.entries(log)) {
      this.topics.set(name, { name, id: this.#newId(), partitions: partitions.map(entries => new Partition(entries)) })
    }
    this.#makeGroup = partitions => new Group(partitions, session, clock, coverage, (_, from) => onTaken(from))
  }

  topic(name: string): Topic {
    const topic = this.topics.get(name)
    if (topic === undefined) throw unknownTopic()
    return topic
  }

  /** Refuses a fetch of a topic by the id of another one. */
  assertFetched(name: string, id: string | undefined): void {
    if (this.topic(name).id !== id && id !== undefined && this.hasTopicIds) throw unknownTopic()
  }

  delete(name: string): void {
    this.topics.delete(name)
    this.#settings.delete(name)
    for (const { open } of this.producersOf(name).transactions.values()) open.clear()
  }

  create(name: string, partitions: number): void {
    const empty = Array.from({ length: partitions }, () => new Partition([]))
    this.topics.set(name, { name, id: this.#newId(), partitions: empty })
  }

  /** Deletes a topic, and creates it with as many partitions. */
  makeAnew(name: string): void {
    const { partitions } = this.topic(name)
    this.delete(name)
    this.create(name, partitions.length)
  }

  #newId(): string {
    return `${this.#ids}-${++this.#topicsMade}`
  }

  timestampTypeOf(topic: string): string {
    return this.settingsOf(topic).get('message.timestamp.type') ?? LOG_APPEND_TIME
  }

  settingsOf(topic: string): ReadonlyMap<string, string> {
    return this.#settings.get(topic) ?? new Map()
  }

  /** Replaces all settings of a topic. */
  setSettings(topic: string, settings: ReadonlyMap<string, string>): void {
    this.#settings.set(topic, settings)
  }

  /** Whether Kafka takes a record with a time of its publisher, by its default since 4.0. */
  takesTime(topic: string, time: number, now: number): boolean {
    return time - now <= Number(this.settingsOf(topic).get('message.timestamp.after.max.ms') ?? AFTER_MAX_MS)
  }

  producersOf(topic: string): Producers {
    const producers = this.#producers.get(topic) ?? { next: 1, transactions: new Map() }
    this.#producers.set(topic, producers)
    return producers
  }

  group(id: string, topic: string): Group {
    const group = this.#groups.get(id) ?? this.#makeGroup(this.topic(topic).partitions.length)
    this.#groups.set(id, group)
    return group
  }

  /** Returns the number of members, including those that are joining, and their partitions. */
  membersOf(id: string): { readonly count: number; readonly assignments: readonly (readonly number[])[] | undefined } {
    const group = this.#groups.get(id)
    return { count: group?.size ?? 0, assignments: group?.assignments }
  }

  /** Returns the group of a generation; undefined before its first member. */
  groupOf(generation: string): Group | undefined {
    return [...this.#groups].find(([id]) => id.endsWith(`-${generation}`))?.[1]
  }

  groups(): Group[] {
    return [...this.#groups.values()]
  }
}
