/** Starts, kills, freezes and stops the projectors of a schedule, and disturbs Kafka and Elasticsearch. */
import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import type { Random } from '../support/random.ts'
import type { SimulatedProcess } from './clock.ts'
import type { Group } from './group.ts'
import { EVENTS } from './history.ts'
import type { Step, Watcher } from './link.ts'
import { OTHER_RULES, Projector, type Services } from './projector.ts'
import { SECOND_GENERATION } from './promises.ts'
import type { Action, Happens, Kill, Schedule } from './schedule.ts'

type Parts = Omit<Services, 'watcher'>

export class Crew {
  readonly #parts: Parts
  readonly #random: Random
  readonly #onStopped: (error: unknown) => void
  readonly #watcher: Watcher
  #projectors: Projector[] = []
  #kills: readonly Kill[] = []
  readonly #steps = new Map<Step, number>()
  #names = 0
  #others = 0
  #isHealed = false

  constructor(parts: Parts, random: Random, onStopped: (error: unknown) => void) {
    this.#parts = parts
    this.#random = random
    this.#onStopped = onStopped
    this.#watcher = {
      onSend: (host, step) => this.#onSend(host, step),
      onDone: (host, step) => this.#onDone(host, step),
      onWritten: (host, id) => this.#onWritten(host, id),
    }
  }

  start(count: number): void {
    for (let number = 0; number < count; number++) this.#startOne()
  }

  /** Starts a projector with other rules. `heal` then keeps one running. */
  startOther(): void {
    if (this.#others++ === 0) this.#startOne(OTHER_RULES)
  }

  startOneByOne(count: number): void {
    this.start(1)
    for (let number = 1; number < count; number++) {
      this.#startAfter(this.#random.next() * this.#random.pick([10, 5_000]))
    }
  }

  /** Starts the actions and kills of a schedule. */
  follow({ happens, kills }: Schedule): void {
    this.#kills = kills
    this.#steps.clear()
    for (const happening of happens) {
      this.#parts.clock.after(happening.at, () => this.#isHealed || this.#act(happening))
    }
  }

  /** Ends all disturbances: thaws frozen projectors and starts missing ones. */
  heal(count: number): void {
    this.#isHealed = true
    for (const projector of this.#projectors) {
      projector.host.thaw()
      projector.skew = 0
    }
    const living = (version: number): number => this.#living().filter(one => one.version === version).length
    for (let missing = count - living(RULES_VERSION); missing > 0; missing--) this.#startOne()
    if (this.#others > 0 && living(OTHER_RULES) === 0) this.#startOne(OTHER_RULES)
  }

  onTaken(from: SimulatedProcess): void {
    const writing = this.#projectors.some(({ host, link }) => host === from && link.writing() > 0)
    if (writing) this.#parts.coverage.count('partitions taken over with writes under way')
  }

  #living(): Projector[] {
    return this.#projectors.filter(({ host }) => !host.isDead)
  }

  #startOne(version = RULES_VERSION): void {
    const services = { ...this.#parts, watcher: this.#watcher }
    this.#projectors.push(new Projector(`projector-${++this.#names}`, version, services, this.#onStopped))
  }

  #startAfter(milliseconds: number, version = RULES_VERSION): void {
    this.#parts.clock.after(milliseconds, () => this.#isHealed || this.#startOne(version))
  }

  #act({ action, length }: Happens): void {
    const projector = this.#living()[this.#random.below(this.#living().length)]
    if (projector !== undefined) this.#actOn(projector, action, length)
    this.#disturb(action, length)
  }

  #actOn(projector: Projector, action: Action, length: number): void {
    const { clock, coverage } = this.#parts
    if (action === 'kill') {
      projector.kill()
      this.#startAfter(length, projector.version)
    }
    if (action === 'freeze') {
      projector.host.freeze()
      clock.after(length, () => projector.host.thaw())
    }
    if (action === 'stop') {
      projector.stop()
      this.#startAfter(length, projector.version)
    }
    if (action === 'a clock jumps') {
      coverage.count('clocks that jumped')
      projector.skew = this.#random.pick([-86_400_000, -60_000, 60_000, 86_400_000])
    }
    if (action === 'crash a consumer') {
      const consumers = projector.consumers
      if (consumers.length > 0) projector.host.deliver(() => this.#random.pick(consumers).crash())
    }
  }

  #disturb(action: Action, length: number): void {
    const { clock, faults, coverage } = this.#parts
    const group = this.#groups()[this.#random.below(this.#groups().length)]
    if (action === 'rebalance') group?.rebalance()
    if (action === 'change committed offsets') this.#changeCommitted(group)
    if (action === 'Elasticsearch away' || action === 'Elasticsearch frozen') {
      coverage.count(action)
      faults.elasticsearch = action === 'Elasticsearch away' ? 'away' : 'frozen'
      clock.after(length, () => {
        faults.elasticsearch = 'well'
      })
    }
    if (action === 'block writing') {
      coverage.count('writing blocked')
      faults.isBlocked = true
      clock.after(length, () => {
        faults.isBlocked = false
      })
    }
    if (action === 'Kafka away') {
      coverage.count(action)
      faults.kafkaIsAway = true
      clock.after(length, () => {
        faults.kafkaIsAway = false
      })
    }
  }

  #groups(): Group[] {
    return this.#parts.broker.groups()
  }

  /** Deletes committed offsets, or sets them to the end or anywhere. The projector must ignore them. */
  #changeCommitted(group: Group | undefined): void {
    if (group === undefined) return
    this.#parts.coverage.count('committed offsets changed')
    const place = this.#random.next()
    for (const [partition, { end }] of this.#parts.broker.topic(EVENTS).partitions.entries()) {
      if (place < 0.3) group.committed.delete(partition)
      else group.committed.set(partition, place < 0.6 ? end : this.#random.below(end + 1))
    }
  }

  #onSend(host: SimulatedProcess, step: Step): void {
    const count = (this.#steps.get(step) ?? 0) + 1
    this.#steps.set(step, count)
    const kill = this.#due(step, count)
    if (kill === undefined || kill.moment === 'after') return
    if (kill.moment === 'before') this.#kill(host, kill)
    else
      this.#parts.clock.after(this.#random.next() * 2 * this.#parts.faults.knobs.latency, () => this.#kill(host, kill))
  }

  #onDone(host: SimulatedProcess, step: Step): void {
    const kill = this.#due(step, this.#steps.get(step) ?? 0)
    if (kill?.moment === 'after') this.#kill(host, kill)
  }

  #due(step: Step, count: number): Kill | undefined {
    if (this.#isHealed) return undefined
    return this.#kills.find(({ step: of, nth }) => of === step && nth === count)
  }

  #kill(host: SimulatedProcess, kill: Kill): void {
    const projector = this.#living().find(living => living.host === host)
    if (projector === undefined || this.#isHealed) return
    const { coverage } = this.#parts
    const where = `${kill.moment} ${kill.step}`
    if (where === 'before write') coverage.count('projectors killed before a write was sent')
    if (where === 'before refresh') coverage.count('projectors killed between write and refresh')
    if (where === 'before publish') coverage.count('projectors killed between refresh and publish')
    if (where === 'after publish') coverage.count('projectors killed between publish and commit')
    projector.kill()
    this.#startAfter(kill.restartAfter, projector.version)
  }

  #onWritten(host: SimulatedProcess, id: string): void {
    const { broker, history, coverage } = this.#parts
    const org = id.split(':')[0] ?? ''
    const partition = history.partitionOf(org)
    const isOwner = [FIRST_GENERATION, SECOND_GENERATION].some(
      generation => broker.groupOf(generation)?.ownerOf(partition) === host,
    )
    if (partition !== -1 && !isOwner) coverage.count('writes of an owner that had lost its partition')
  }
}
