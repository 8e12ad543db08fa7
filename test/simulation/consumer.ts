/**
 * The consumer of the Kafka client, with the behaviour that `core/log/follow/consume.ts` depends on:
 * - it loops: fetch, handle, heartbeat, and learns of a rebalance only from a heartbeat;
 * - pauses and seeks survive a rebalance, but not a crash;
 * - a seek or a pause discards fetched batches, except the one that is being handled;
 * - outside of the group it refuses every call.
 *
 * A fault makes it fetch from another offset.
 */
import kafkajs, { type EachBatchPayload } from 'kafkajs'
import { FETCH_WAIT_MS } from '../../core/log/limits.ts'
import type { Broker } from './broker.ts'
import type { Call } from './call.ts'
import type { SimulatedProcess } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { Faults } from './faults.ts'
import { batchOf, type Fetched, fetchFrom } from './fetch.ts'
import type { Group, Joined } from './group.ts'

/** Heartbeats per session timeout. */
const HEARTBEATS = 5

/** Consecutive failures after which the client crashes and starts again. */
const RETRIES = 5

type Handlers = Record<string, ((event: { payload: Record<string, unknown> }) => void)[]>
type EachBatch = (payload: EachBatchPayload) => Promise<void>

/** The state of one membership, from a start to a crash or the end. */
type Stay = {
  isRunning: boolean
  hasJoined: boolean
  memberId: string | undefined
  generation: number
  assigned: readonly number[]
  readonly paused: Set<number>
  readonly seeks: Map<number, number>
  next: Map<number, number>
  lastHeartbeat: number
  ended: Promise<void>
}

export class Consumer {
  readonly events = {
    GROUP_JOIN: 'consumer.group_join',
    REBALANCING: 'consumer.rebalancing',
    CRASH: 'consumer.crash',
  }
  readonly #host: SimulatedProcess
  readonly #broker: Broker
  readonly #faults: Faults
  readonly #coverage: Coverage
  readonly #call: Call
  readonly #groupId: string
  readonly #topicId: string | undefined
  readonly #handlers: Handlers = {}
  #topic = ''
  #eachBatch: EachBatch | undefined
  #stay: Stay | undefined
  #isDisconnected = false

  /** @param topicId if given, it fetches by the id of the topic */
  constructor(
    host: SimulatedProcess,
    broker: Broker,
    faults: Faults,
    coverage: Coverage,
    call: Call,
    groupId: string,
    topicId: string | undefined,
  ) {
    this.#topicId = topicId
    this.#host = host
    this.#broker = broker
    this.#faults = faults
    this.#coverage = coverage
    this.#call = call
    this.#groupId = groupId
  }

  on(event: string, handler: Handlers[string][number]): void {
    this.#handlers[event] = [...(this.#handlers[event] ?? []), handler]
  }

  connect(): Promise<void> {
    return this.#call(() => undefined)
  }

  subscribe({ topics }: { readonly topics: readonly string[] }): Promise<void> {
    this.#topic = topics[0] ?? ''
    return this.#call(() => void this.#broker.topic(this.#topic))
  }

  async run({ eachBatch }: { readonly eachBatch: EachBatch }): Promise<void> {
    this.#eachBatch = eachBatch
    await this.#start()
  }

  seek({ partition, offset }: { readonly partition: number; readonly offset: string }): void {
    this.#joined().seeks.set(partition, Number(offset))
  }

  pause([{ partitions }]: [{ readonly partitions: readonly number[] }]): void {
    const { paused } = this.#joined()
    for (const partition of partitions) paused.add(partition)
  }

  resume([{ partitions }]: [{ readonly partitions: readonly number[] }]): void {
    const { paused } = this.#joined()
    for (const partition of partitions) paused.delete(partition)
  }

  async commitOffsets([offsets]: [{ readonly partition: number; readonly offset: string }]): Promise<void> {
    const stay = this.#joined()
    if (!stay.isRunning) return
    const { partition, offset } = offsets
    const standing = await this.#call(() =>
      this.#group().commit(stay.memberId ?? '', stay.generation, partition, Number(offset)),
    )
    if (standing !== 'member') throw new kafkajs.KafkaJSError(standing)
  }

  /** Leaves the group after the loop has ended. Does not leave while it is still joining. */
  async disconnect(): Promise<void> {
    this.#isDisconnected = true
    const stay = this.#stay
    if (!stay?.hasJoined) return
    stay.isRunning = false
    await stay.ended
    this.#stay = undefined
    const { memberId } = stay
    if (memberId !== undefined) await this.#call(() => this.#group().leave(memberId)).catch(() => undefined)
  }

  /** Crashes like the client with lost connections: leaves, emits CRASH and starts again. */
  crash(): void {
    if (this.#stay?.isRunning && this.#stay.hasJoined) this.#crash(this.#stay)
  }

  #crash(stay: Stay): void {
    stay.isRunning = false
    this.#stay = undefined
    this.#coverage.count('consumers that crashed and started again')
    const { memberId } = stay
    if (memberId !== undefined) void this.#call(() => this.#group().leave(memberId)).catch(() => undefined)
    this.#emit(this.events.CRASH, { error: new kafkajs.KafkaJSError('retries exceeded'), restart: true })
    this.#host.after(200 + this.#faults.random.next() * 1_800, () => {
      if (!this.#isDisconnected) void this.#start()
    })
  }

  #joined(): Stay {
    if (this.#stay === undefined) throw new kafkajs.KafkaJSNonRetriableError('the consumer group was not initialized')
    return this.#stay
  }

  #group(): Group {
    return this.#broker.group(this.#groupId, this.#topic)
  }

  #emit(event: string, payload: Record<string, unknown>): void {
    for (const handler of this.#handlers[event] ?? []) handler({ payload })
  }

  async #start(): Promise<void> {
    const stay: Stay = {
      isRunning: true,
      hasJoined: false,
      memberId: undefined,
      generation: 0,
      assigned: [],
      paused: new Set(),
      seeks: new Map(),
      next: new Map(),
      lastHeartbeat: 0,
      ended: Promise.resolve(),
    }
    this.#stay = stay
    if (!(await this.#join(stay))) return
    stay.hasJoined = true
    stay.ended = this.#loop(stay)
  }

  /**
   * @param late milliseconds until it takes note that it has joined: the others know their partitions by then
   * @returns whether it has joined the group; otherwise it has crashed or was stopped
   */
  async #join(stay: Stay, late = 0): Promise<boolean> {
    for (let failures = 0; stay.isRunning; ) {
      try {
        stay.memberId ??= await this.#call(() => this.#group().newMemberId())
        const { memberId } = stay
        const joined = await this.#call<Joined | 'unknown'>((answer: (joined: Joined | 'unknown') => void) =>
          this.#group().join(this.#host, memberId, answer),
        )
        if (joined === 'unknown') {
          stay.memberId = undefined
          continue
        }
        if (late > 0) await this.#host.sleep(late, new AbortController().signal)
        if (!stay.isRunning && stay.hasJoined) return true
        stay.generation = joined.generation
        stay.assigned = joined.partitions
        stay.next = new Map()
        stay.lastHeartbeat = this.#host.clock.elapsed
        this.#emit(this.events.GROUP_JOIN, { memberAssignment: { [this.#topic]: [...joined.partitions] } })
        return true
      } catch {
        if (++failures > RETRIES) {
          this.#crash(stay)
          return false
        }
        await this.#pause(failures)
      }
    }
    return false
  }

  async #loop(stay: Stay): Promise<void> {
    let failures = 0
    while (stay.isRunning) {
      try {
        await this.#fetchAndHandle(stay)
        failures = 0
      } catch (error) {
        if (!stay.isRunning) return
        if (error instanceof LostPlace) {
          if (error.standing === 'unknown') stay.memberId = undefined
          else this.#emit(this.events.REBALANCING, {})
          const fetchesOn = error.standing === 'rebalancing' && this.#faults.happens('fetchesOn')
          const joining = this.#join(stay, fetchesOn ? this.#faults.random.next() * this.#broker.session : 0)
          if (fetchesOn) void this.#fetchOn(stay, joining)
          if (!(await joining)) return
        } else if (++failures > RETRIES) return this.#crash(stay)
        else await this.#pause(failures)
      }
    }
  }

  /** Fetches on until it has joined again: a new owner of its partitions may have been told before. */
  async #fetchOn(stay: Stay, joining: Promise<boolean>): Promise<void> {
    let isJoining = true
    void joining.then(() => {
      isJoining = false
    })
    const isOurs = (): boolean => isJoining && stay.isRunning
    this.#coverage.count('members that fetched on while they joined again')
    try {
      while (isOurs()) await this.#fetchAndHandle(stay, isOurs)
    } catch {
      // The client fetches again when it has joined.
    }
  }

  #pause(failures: number): Promise<void> {
    return this.#host.sleep(100 * 2 ** failures, new AbortController().signal)
  }

  /** @param isOurs whether a batch is still taken; without it, the client sends heartbeats */
  async #fetchAndHandle(stay: Stay, isOurs?: () => boolean): Promise<void> {
    const heartbeat = async (): Promise<void> => (isOurs ? undefined : this.#heartbeat(stay))
    for (const partition of stay.assigned) {
      const sought = stay.seeks.get(partition)
      if (sought !== undefined) stay.next.set(partition, sought)
      stay.seeks.delete(partition)
    }
    const active = stay.assigned.filter(partition => !stay.paused.has(partition))
    if (active.length === 0) {
      await this.#host.sleep(FETCH_WAIT_MS, new AbortController().signal)
      return heartbeat()
    }
    const unknown = active.filter(partition => !stay.next.has(partition))
    if (unknown.length > 0) {
      const { committed } = this.#group()
      const found = await this.#call(() =>
        unknown.map(partition => [partition, committed.get(partition) ?? 0] as const),
      )
      for (const [partition, offset] of found) if (!stay.next.has(partition)) stay.next.set(partition, offset)
    }

    const asked = active.map(partition => [partition, this.#placeOf(stay.next.get(partition) ?? 0, partition)] as const)
    const answers = await this.#call<Fetched[]>((answer: (fetched: Fetched[]) => void) => {
      this.#broker.assertFetched(this.#topic, this.#topicId)
      fetchFrom(this.#broker.topic(this.#topic), asked, this.#host.clock, this.#faults.random, answer)
    })
    const batches = answers.filter(({ partition }) => !stay.seeks.has(partition) && !stay.paused.has(partition))
    for (const batch of batches) {
      if (!stay.isRunning || isOurs?.() === false) return
      await this.#handle(stay, batch)
      await heartbeat()
    }
    if (batches.length === 0) await heartbeat()
  }

  /** Returns the offset to fetch from: the expected one, or another one by the fault `misplace`. */
  #placeOf(offset: number, partition: number): number {
    if (!this.#faults.happens('misplace')) return offset
    const { end } = this.#broker.topic(this.#topic).partitions[partition] ?? { end: 0 }
    const place = this.#faults.random.below(end + 1)
    if (place < offset) this.#coverage.count('batches from before the expected offset')
    if (place > offset) this.#coverage.count('batches with a gap')
    return place
  }

  async #handle(stay: Stay, fetched: Fetched): Promise<void> {
    const { partition, entries } = fetched
    if (entries === undefined) {
      // Out of range: the client starts from the beginning, as configured.
      stay.next.set(partition, 0)
      return
    }
    const last = entries.at(-1)
    if (last === undefined) return
    this.#coverage.count('batches')
    if (entries.every(({ kind }) => kind !== 'record'))
      this.#coverage.count('batches of control or aborted records only')
    const batch = batchOf(this.#topic, fetched)
    const resolveOffset = (offset: string): void => void stay.next.set(partition, Number(offset) + 1)
    await this.#eachBatch?.({ batch, resolveOffset } as unknown as EachBatchPayload)
  }

  async #heartbeat(stay: Stay): Promise<void> {
    const { clock } = this.#host
    if (clock.elapsed - stay.lastHeartbeat < this.#broker.session / HEARTBEATS) return
    const standing = await this.#call(() => this.#group().heartbeat(stay.memberId ?? '', stay.generation))
    if (standing !== 'member') throw new LostPlace(standing)
    stay.lastHeartbeat = clock.elapsed
  }
}

class LostPlace extends Error {
  readonly standing: 'rebalancing' | 'unknown'
  constructor(standing: 'rebalancing' | 'unknown') {
    super(standing)
    this.standing = standing
  }
}
