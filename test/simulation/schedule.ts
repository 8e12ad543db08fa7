/**
 * Makes the schedule of a run from its seed: number of projectors, latencies, and which faults happen when. Each
 * schedule has only some of the faults, often or rarely: all together would hide the effect of each one.
 */
import { createRandom, type Random } from '../support/random.ts'
import { CALM, type Knobs } from './faults.ts'
import type { Step } from './link.ts'

/** An action on one projector, on a consumer group, or on a service. */
export type Action =
  | 'kill'
  | 'freeze'
  | 'stop'
  | 'rebalance'
  | 'crash a consumer'
  | 'a clock jumps'
  | 'change committed offsets'
  | 'Elasticsearch away'
  | 'Elasticsearch frozen'
  | 'block writing'
  | 'Kafka away'

/** Milliseconds. `length` is the duration, or the pause until the projector starts again. */
export type Happens = { readonly at: number; readonly action: Action; readonly length: number }

/** Kills a projector at its nth request of a step: before it is sent, while it is under way, or after its answer. */
export type Kill = {
  readonly step: Step
  readonly nth: number
  readonly moment: 'before' | 'during' | 'after'
  readonly restartAfter: number
}

export type Schedule = {
  readonly seed: number
  /** Neighbouring schedules share a history. */
  readonly historySeed: number
  readonly projectors: number
  /** Whether the faults begin only after everything has started. */
  readonly startsWell: boolean
  readonly knobs: Knobs
  /** Session timeout: shorter than the real one, so that more happens. */
  readonly session: number
  /** Duration of the faults. */
  readonly length: number
  readonly happens: readonly Happens[]
  readonly kills: readonly Kill[]
  /** A second generation beside the first; only some schedules have one. */
  readonly second: SecondGeneration | undefined
  readonly walkers: number
  /** Milliseconds between two requests of a walker. */
  readonly readPause: number
  readonly random: Random
}

/** It begins at `begin`. Then swaps and rollbacks alternate, with pauses. Each of these commands may be interrupted. */
export type SecondGeneration = {
  readonly rules: 'same' | 'other'
  readonly begin: number
  readonly pause: number
}

const FETCHES_ON = [0, 1]
const ENDS_LATE = [0, 0, 0.5]
const LEADER_BEHIND = [0, 0, 0.1]
const OLD_COPY = [0, 0, 0.05, 0.3]
const SCHEDULES_OF_A_HISTORY = 16

const actions: readonly Action[] = [
  'kill',
  'kill',
  'freeze',
  'freeze',
  'stop',
  'rebalance',
  'rebalance',
  'crash a consumer',
  'a clock jumps',
  'change committed offsets',
  'Elasticsearch away',
  'Elasticsearch frozen',
  'block writing',
  'Kafka away',
]

const steps: readonly Step[] = ['read', 'write', 'write', 'write', 'refresh', 'publish', 'publish', 'prepare']

export const scheduleOf = (seed: number): Schedule => {
  const random = createRandom(seed)
  const sometimes = (often: number): number => (random.chance(0.4) ? random.pick([0.02, 0.1, often]) : 0)
  const knobs: Knobs = {
    loseRequest: sometimes(0.2),
    loseAnswer: sometimes(0.3),
    twice: sometimes(0.5),
    late: sometimes(0.2),
    refuse: sometimes(0.3),
    itemRefused: sometimes(0.4),
    shardFails: sometimes(0.3),
    bulkDocuments: random.chance(0.2) ? random.pick([3, 10]) : 0,
    answerDocuments: random.chance(0.2) ? random.pick([1, 4, 12]) : 0,
    oldCopy: createRandom(seed ^ 0x1b873593).pick(OLD_COPY),
    slow: sometimes(0.2),
    kafkaFails: sometimes(0.2),
    misplace: sometimes(0.3),
    fetchesOn: createRandom(seed ^ 0x2c1b3c6d).pick(FETCHES_ON),
    endsLate: createRandom(seed ^ 0x3c6ef372).pick(ENDS_LATE),
    leaderBehind: createRandom(seed ^ 0x165667b1).pick(LEADER_BEHIND),
    readFails: sometimes(0.1),
    latency: random.pick([1, 5, 30]),
  }
  const session = random.pick([1_000, 3_000, 15_000])
  const usual = random.pick([1_000, 4_000, 12_000])
  const happens = Array.from({ length: random.below(random.pick([3, 8])) }, () => {
    const action = random.pick(actions)
    const longest = action === 'kill' || action === 'freeze' || action === 'stop' ? session : 3_000
    return {
      at: random.next() * usual,
      action,
      length: random.pick([50, 500, longest, longest]) * (0.5 + random.next()),
    }
  })
  const length = Math.max(usual, ...happens.map(happening => happening.at + happening.length))
  const kills = Array.from({ length: random.chance(0.7) ? 1 + random.below(4) : 0 }, () => ({
    step: random.pick(steps),
    nth: 1 + random.below(random.pick([3, 12, 40])),
    moment: random.pick(['before', 'during', 'after'] as const),
    restartAfter: random.pick([10, 1_000, 20_000]) * random.next(),
  }))
  return {
    seed,
    historySeed: Math.floor(seed / SCHEDULES_OF_A_HISTORY),
    projectors: 1 + random.below(3),
    session,
    startsWell: random.chance(0.8),
    knobs: random.chance(0.05) ? CALM : knobs,
    length,
    happens,
    kills,
    second: secondOf(createRandom(seed ^ 0x2545f491), length),
    walkers: 1 + random.below(3),
    readPause: length / random.pick([20, 40, 80]),
    random: createRandom(seed ^ 0x5bd1e995),
  }
}

const secondOf = (random: Random, length: number): SecondGeneration | undefined => {
  if (random.chance(0.8)) return undefined
  const begin = random.next() * length * random.pick([0.02, 0.5])
  return { rules: random.pick(['same', 'other']), begin, pause: length / random.pick([4, 15, 50]) }
}
