/**
 * Makes the plan of a run from its seed: which topic is lost, how and when, what comes in its place, and how it is
 * brought back.
 */
import { createRandom, type Random } from '../../support/random.ts'
import { API_KEYS, EVENTS } from '../history.ts'

/**
 * - `made anew`: the topic is deleted and created, and later restored from an archive of everything;
 * - `lost tail`: the same, and the archive lacks the last records;
 * - `cut`: the topic keeps its id and loses its last records, and publishers go on at the end.
 */
export const kinds = ['made anew', 'lost tail', 'cut'] as const
export type Kind = (typeof kinds)[number]

export type Plan = {
  readonly seed: number
  readonly kind: Kind
  readonly topics: readonly string[]
  readonly projectors: number
  /** A second generation that was found equal, and is kept up. */
  readonly hasSpare: boolean
  /** The loss comes at this request of the projectors, after the tail began; a moment before, during or after it. */
  readonly request: number
  readonly moment: 'before' | 'during' | 'after'
  /** Which projectors are killed with the loss. */
  readonly killed: 'none' | 'one' | 'all'
  /** Milliseconds until the service manager starts a projector that ended; `Infinity` for never. */
  readonly restartAfter: number
  /** Milliseconds between the deletion and the creation of the topic. */
  readonly gone: number
  readonly stranger: 'none' | 'little' | 'much'
  /** Milliseconds until the operator acts. */
  readonly noticedAfter: number
  /** Whether all projectors are stopped before the topics are restored. */
  readonly stopsProjectors: boolean
  /** Whether the operator first restores into the topic of the stranger. */
  readonly forgetsToDelete: boolean
  /** Whether the topics are restored on another cluster. */
  readonly otherCluster: boolean
  readonly hasTopicIds: boolean
  /** A snapshot of Elasticsearch from before the loss is restored, too. */
  readonly snapshot: 'none' | 'all' | 'some'
  /** The number of the request at which the first attempt of each command is killed; 0 for no kill. */
  readonly killCommandAt: number
  readonly latency: number
  /** After a cut: whether the operator runs `adopt` before any projector starts. */
  readonly adoptsFirst: boolean
  readonly random: Random
}

export const planOf = (seed: number, only?: Partial<Plan>): Plan => {
  const random = createRandom(seed)
  const kind = random.pick(['made anew', 'made anew', 'lost tail', 'lost tail', 'cut'] as const)
  const plan: Plan = {
    seed,
    kind,
    topics: random.pick([[EVENTS, API_KEYS], [EVENTS, API_KEYS], [EVENTS], [API_KEYS]]),
    projectors: 1 + random.below(3),
    hasSpare: random.chance(0.25),
    request: random.below(random.pick([10, 40, 120, 400])),
    moment: random.pick(['before', 'during', 'after']),
    killed: random.pick(['none', 'one', 'all']),
    restartAfter: random.pick([100, 2_000, 10_000, Number.POSITIVE_INFINITY]),
    gone: random.pick([0, 0, 50, 3_000]),
    stranger: random.pick(['none', 'little', 'little', 'much']),
    noticedAfter: random.pick([100, 4_000, 30_000, 90_000]),
    stopsProjectors: random.chance(0.7),
    forgetsToDelete: random.chance(0.2),
    otherCluster: random.chance(0.2),
    hasTopicIds: random.chance(0.8),
    snapshot: random.pick(['none', 'none', 'none', 'all', 'some']),
    killCommandAt: random.chance(0.3) ? 1 + random.below(random.pick([5, 30, 120])) : 0,
    latency: random.pick([1, 5, 30]),
    adoptsFirst: random.chance(0.3),
    random: createRandom(seed ^ 0x5bd1e995),
    ...only,
  }
  // Without topic ids, a projector that goes on reading sees a topic made anew only in its next periodic check.
  return plan.hasTopicIds || plan.kind === 'cut' ? plan : { ...plan, killed: 'all' }
}
