/**
 * A consumer group as Kafka's coordinator runs it: members join; when a member comes or goes, all join again; a member
 * that is silent for longer than the session timeout is removed. Not simulated: assignment by a member (here the
 * coordinator assigns the partitions), static members, cooperative rebalances.
 */
import type { Clock, SimulatedProcess } from './clock.ts'
import type { Coverage } from './coverage.ts'

export type Joined = { readonly memberId: string; readonly generation: number; readonly partitions: readonly number[] }
export type Standing = 'member' | 'rebalancing' | 'unknown'

type Member = {
  readonly id: string
  readonly host: SimulatedProcess
  lastSeen: number
  partitions: readonly number[]
  /** Answers the pending join request. Set while the member waits for the others. */
  waiting: ((joined: Joined) => void) | undefined
}

/** Checks for silent members per session timeout, and session timeouts that a rebalance may take. */
const LOOKS = 10
const REBALANCE_SESSIONS = 2

export class Group {
  readonly committed = new Map<number, number>()
  readonly #partitions: number
  readonly #session: number
  readonly #expected = new Set<string>()
  readonly #clock: Clock
  readonly #coverage: Coverage
  readonly #onTaken: (partition: number, from: SimulatedProcess) => void
  readonly #members = new Map<string, Member>()
  readonly #owners = new Map<number, SimulatedProcess>()
  #generation = 0
  #ids = 0
  #rebalancingSince: number | undefined

  /**
   * @param session session timeout in milliseconds
   * @param onTaken called when a partition moves from one process to another
   */
  constructor(
    partitions: number,
    session: number,
    clock: Clock,
    coverage: Coverage,
    onTaken: (partition: number, from: SimulatedProcess) => void,
  ) {
    this.#partitions = partitions
    this.#session = session
    this.#clock = clock
    this.#coverage = coverage
    this.#onTaken = onTaken
    this.#look()
  }

  get size(): number {
    return this.#members.size
  }

  /** The partitions of each member; undefined while they are assigned anew. */
  get assignments(): readonly (readonly number[])[] | undefined {
    if (this.#rebalancingSince !== undefined) return undefined
    return [...this.#members.values()].map(({ partitions }) => partitions)
  }

  ownerOf(partition: number): SimulatedProcess | undefined {
    return this.#owners.get(partition)
  }

  /** Returns a member id, which a client needs to join. An id that is never used leaves nothing behind. */
  newMemberId(): string {
    const id = `member-${++this.#ids}`
    this.#expected.add(id)
    return id
  }

  /** Answers `unknown` if the member was removed meanwhile; otherwise answers when all members have joined. */
  join(host: SimulatedProcess, id: string, answer: (joined: Joined | 'unknown') => void): void {
    const known = this.#members.get(id)
    if (known === undefined && !this.#expected.delete(id)) {
      answer('unknown')
      return
    }
    const member = known ?? { id, host, lastSeen: 0, partitions: [], waiting: undefined }
    member.lastSeen = this.#clock.elapsed
    member.waiting = answer
    this.#members.set(id, member)
    this.rebalance()
    this.#completeIfAllJoined()
  }

  heartbeat(memberId: string, generation: number): Standing {
    const member = this.#members.get(memberId)
    if (member === undefined) return 'unknown'
    member.lastSeen = this.#clock.elapsed
    return this.#rebalancingSince === undefined && generation === this.#generation ? 'member' : 'rebalancing'
  }

  leave(memberId: string): void {
    if (!this.#members.delete(memberId)) return
    this.rebalance()
    this.#completeIfAllJoined()
  }

  commit(memberId: string, generation: number, partition: number, offset: number): Standing {
    const standing = this.heartbeat(memberId, generation)
    if (standing === 'member') this.committed.set(partition, offset)
    return standing
  }

  rebalance(): void {
    if (this.#rebalancingSince !== undefined) return
    this.#rebalancingSince = this.#clock.elapsed
    this.#coverage.count('rebalances')
  }

  #look(): void {
    const now = this.#clock.elapsed
    for (const member of this.#members.values()) {
      if (member.waiting !== undefined || now - member.lastSeen <= this.#session) continue
      this.#coverage.count('members that lost their session')
      if (member.host.isFrozen) this.#coverage.count('projectors frozen beyond their session')
      this.leave(member.id)
    }
    if (this.#rebalancingSince !== undefined && now - this.#rebalancingSince > REBALANCE_SESSIONS * this.#session) {
      for (const { id, waiting } of this.#members.values()) if (waiting === undefined) this.#members.delete(id)
      this.#completeIfAllJoined()
    }
    this.#clock.after(this.#session / LOOKS, () => this.#look())
  }

  #completeIfAllJoined(): void {
    const members = [...this.#members.values()]
    if (this.#rebalancingSince === undefined || members.some(({ waiting }) => waiting === undefined)) return
    this.#rebalancingSince = undefined
    this.#generation++
    for (const [place, member] of members.entries()) {
      const { id, waiting } = member
      const all = Array.from({ length: this.#partitions }, (_, partition) => partition)
      // Each rebalance assigns from another start, so that partitions move.
      member.partitions = all.filter(partition => (partition + this.#generation) % members.length === place)
      member.lastSeen = this.#clock.elapsed
      member.waiting = undefined
      for (const partition of member.partitions) this.#take(partition, member.host)
      waiting?.({ memberId: id, generation: this.#generation, partitions: member.partitions })
    }
  }

  #take(partition: number, host: SimulatedProcess): void {
    const before = this.#owners.get(partition)
    if (before !== undefined && before !== host) this.#onTaken(partition, before)
    this.#owners.set(partition, host)
  }
}
