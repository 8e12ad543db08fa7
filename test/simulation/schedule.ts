/**
 * What happens in a run, made from its seed: how many projectors, how fast everything is, which faults there are and
 * when. Each schedule has some of the faults only, often or seldom: all of them at once would hide what one of them
 * does alone.
 */
import { createRandom, type Random } from '../support/random.ts'
import { CALM, type Knobs } from './faults.ts'
import type { Step } from './link.ts'

/** What is done at a moment to all, or to one of the projectors. */
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

/** `length` is how long it lasts, or until a projector is started again; milliseconds, like all times here. */
export type Happens = { readonly at: number; readonly action: Action; readonly length: number }

/**
 * A projector is killed when it does a step for the nth time: before it sends it, while it is under way, or when it is
 * done.
 */
export type Kill = {
  readonly step: Step
  readonly nth: number
  readonly moment: 'before' | 'during' | 'after'
  readonly restartAfter: number
}

export type Schedule = {
  readonly seed: number
  /** Schedules next to each other publish the same. */
  readonly historySeed: number
  readonly projectors: number
  /** Whether the faults begin only when everything has started. */
  readonly startsWell: boolean
  readonly knobs: Knobs
  /** After how long a silent process loses its partitions: shorter than the real one, so that more happens. */
  readonly session: number
  /** How long things go wrong. */
  readonly length: number
  readonly happens: readonly Happens[]
  readonly kills: readonly Kill[]
  /** A second generation beside the first, in some of the schedules. */
  readonly second: SecondGeneration | undefined
  readonly walkers: number
  /** Milliseconds between two requests of a walker. */
  readonly readPause: number
  /** For everything that is decided on the way. */
  readonly random: Random
}

/**
 * It is begun at a moment; swaps and rollbacks follow, in turn, with pauses; any of these commands may be cut short.
 */
export type SecondGeneration = {
  readonly rules: 'same' | 'other'
  readonly begin: number
  readonly pause: number
}

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
    slow: sometimes(0.2),
    kafkaFails: sometimes(0.2),
    misplace: sometimes(0.3),
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
