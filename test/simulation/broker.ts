/**
 * The simulated Kafka: partitions that grow, their last stable offsets, and consumer groups. Not simulated: several
 * brokers, new leaders, and records that are lost or deleted.
 */
import type { Clock, SimulatedProcess } from './clock.ts'
import type { Coverage } from './coverage.ts'
import { Group } from './group.ts'
import type { Entry, Log } from './history.ts'

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
  /** @returns undefined when the offset is out of range */
  read(offset: number, count: number): readonly Entry[] | undefined {
    if (offset < 0 || offset > this.end) return undefined
    return this.entries.slice(offset, Math.min(this.end, offset + count))
  }
}

export type Topic = { readonly name: string; readonly id: string; readonly partitions: readonly Partition[] }

/** Producers of one topic: transactional ids with their epoch, and the partitions of an open transaction. */
export type Producers = {
  next: number
  readonly transactions: Map<string, { readonly id: string; readonly epoch: number; readonly open: Set<number> }>
}
const LOG_APPEND_TIME = 'LogAppendTime'

export class Broker {
  readonly topics = new Map<string, Topic>()
  clusterId = 'simulated'
  readonly #timestampTypes = new Map<string, string>()
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
    if (topic === undefined) throw new Error(`there is no topic ${name}`)
    return topic
  }

  /** Deletes a topic, and creates it with as many partitions. */
  makeAnew(name: string): void {
    const { partitions } = this.topic(name)
    this.topics.set(name, { name, id: this.#newId(), partitions: partitions.map(() => new Partition([])) })
    this.#timestampTypes.delete(name)
  }

  #newId(): string {
    return `${this.#ids}-${++this.#topicsMade}`
  }

  timestampTypeOf(topic: string): string {
    return this.#timestampTypes.get(topic) ?? LOG_APPEND_TIME
  }

  setTimestampType(topic: string, type: string): void {
    this.#timestampTypes.set(topic, type)
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

  /** Returns the number of members, including those that are joining. */
  membersOf(id: string): number {
    return this.#groups.get(id)?.size ?? 0
  }

  /** Returns the group of a generation; undefined before its first member. */
  groupOf(generation: string): Group | undefined {
    return [...this.#groups].find(([id]) => id.endsWith(`-${generation}`))?.[1]
  }

  groups(): Group[] {
    return [...this.#groups.values()]
  }
}
