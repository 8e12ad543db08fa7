/** Counts what happened in the schedules: a simulation without faults proves nothing. */

export const happenings = [
  'schedules',
  'events of the clock',
  'records published',
  'records applied',
  'records parked',
  'duplicates',
  'payouts superseded',
  'records aborted',
  'records of batches that nobody reads',
  'records of aborted batches that nobody reads',
  'transactions left open for a while',
  'projectors started',
  'projectors killed',
  'projectors killed before a write was sent',
  'projectors killed with a bulk request under way',
  'projectors killed between write and refresh',
  'projectors killed between refresh and publish',
  'projectors killed between publish and commit',
  'projectors frozen beyond their session',
  'projectors stopped',
  'writes of an owner that had lost its partition',
  'writes applied after their process was dead',
  'partitions taken over with writes under way',
  'requests lost',
  'answers lost after the effect',
  'requests applied twice',
  'requests applied after they were given up',
  'requests refused',
  'bulk requests too large',
  'answers longer than was asked for',
  'bulk requests',
  'bulk requests of which some items failed',
  'bulk items refused for now',
  'bulk items of an older or equal version',
  'refreshes',
  'refreshes that failed on a shard',
  'refreshes that missed a shard',
  'refreshes during which something was written',
  'searches of projectors',
  'balances stored',
  'position conflicts',
  'positions published',
  'times of partitions that stand still published',
  'reads without an answer of a shard',
  'documents read from an old copy',
  'Elasticsearch away',
  'Elasticsearch frozen',
  'writing blocked',
  'Kafka away',
  'generations begun under the same rules',
  'generations begun under other rules',
  'commands cut short',
  'swaps',
  'rollbacks',
  'generations dropped beside an idle API process',
  'records that other rules would apply and that stayed parked',
  'rebalances',
  'members that lost their session',
  'members that fetched on while they joined again',
  'consumers that crashed and started again',
  'clocks that jumped',
  'committed offsets changed',
  'batches',
  'batches from before the expected offset',
  'batches with a gap',
  'batches of control or aborted records only',
  'API processes started again',
  'walks',
  'walks during which the list changed',
  'pages',
  'pages compared with the model',
  'walks as of a moment',
  'instants compared with the model',
  'instants that times do not decide',
  'changes after a sequence compared with the model',
  'walks from an old cursor',
  'walks with a filter',
  'walks with a deal',
  'walks from a replaced record',
  'totals compared with the model',
  'totals of one rep compared with the model',
  'totals of a deal compared with the model',
  'reads by id',
  'checkpoints compared with the model',
  'checkpoints signed again',
  'copies proved with a checkpoint',
  'copies proved after a swap',
  'records by ids compared with the model',
  'keys looked up',
  'reads answered unavailable',
] as const
/** Counted while clients attack an API process. */
export const attacks = [
  'attacks',
  'clients that read slowly',
  'clients that left',
  'requests of a flood',
  'pipelines',
  'unknown keys',
  'waits that lost their client',
  'bytes that are no request',
  'Elasticsearch frozen during an attack',
  'answers that were cut off',
  'answers to clients that behave',
  'refusals of clients that behave',
] as const
export type Happening = (typeof happenings | typeof attacks)[number]

export class Coverage {
  readonly #counts: Map<Happening, number>
  /** Longest time from the end of the faults until everything was caught up, in virtual milliseconds. */
  slowestRecovery = 0

  constructor(names: readonly Happening[] = happenings) {
    this.#counts = new Map(names.map(name => [name, 0]))
  }

  count(name: Happening, times = 1): void {
    this.#counts.set(name, this.of(name) + times)
  }

  of(name: Happening): number {
    return this.#counts.get(name) ?? 0
  }

  missing(): Happening[] {
    return [...this.#counts].flatMap(([name, count]) => (count === 0 ? [name] : []))
  }

  add(other: Coverage): void {
    for (const [name, count] of other.#counts) this.count(name, count)
    this.slowestRecovery = Math.max(this.slowestRecovery, other.slowestRecovery)
  }

  toString(): string {
    const lines = [...this.#counts].map(([name, count]) => `  ${name.padEnd(60)} ${count.toLocaleString('en')}`)
    return [...lines, `  slowest recovery (virtual seconds) ${(this.slowestRecovery / 1000).toFixed(1)}`].join('\n')
  }
}
