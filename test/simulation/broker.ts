/**
 * The simulated Kafka as it is on the other side of the wire: partitions that grow, where they end for who reads only
 * what is committed, and consumer groups. Not simulated: several brokers, leaders that change, records that are lost or
 * deleted.
 */
import type { Clock, Host } from './clock.ts'
import type { Coverage } from './coverage.ts'
import { Group } from './group.ts'
import type { Entry, Log } from './history.ts'

export class Partition {
  readonly entries: Entry[]
  /** The last stable offset: what is behind it is not published yet, or may still be aborted. */
  end = 0
  constructor(entries: readonly Entry[]) {
    this.entries = [...entries]
  }
  /** @returns its offset */
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

export type Topic = { readonly name: string; readonly partitions: readonly Partition[] }

export class Broker {
  readonly topics = new Map<string, Topic>()
  readonly #groups = new Map<string, Group>()
  readonly #makeGroup: (partitions: number) => Group

  /** Milliseconds after which a silent member is left out of its group. */
  readonly session: number

  constructor(log: Log, session: number, clock: Clock, coverage: Coverage, onTaken: (from: Host) => void) {
    this.session = session
    for (const [name, partitions] of Object.entries(log)) {
      this.topics.set(name, { name, partitions: partitions.map(entries => new Partition(entries)) })
    }
    this.#makeGroup = partitions => new Group(partitions, session, clock, coverage, (_, from) => onTaken(from))
  }

  topic(name: string): Topic {
    const topic = this.topics.get(name)
    if (topic === undefined) throw new Error(`there is no topic ${name}`)
    return topic
  }

  group(id: string, topic: string): Group {
    const group = this.#groups.get(id) ?? this.#makeGroup(this.topic(topic).partitions.length)
    this.#groups.set(id, group)
    return group
  }

  /** Those that want to be in a group, or are. */
  membersOf(id: string): number {
    return this.#groups.get(id)?.size ?? 0
  }

  /** The group of a generation, once somebody has joined it. */
  groupOf(generation: string): Group | undefined {
    return [...this.#groups].find(([id]) => id.endsWith(`-${generation}`))?.[1]
  }

  groups(): Group[] {
    return [...this.#groups.values()]
  }
}
