/** How much is measured: whole runs, whose result is kept, and quick ones for every day. */
import type { DatasetSize, PayoutShape } from './dataset.ts'

export type Sizes = {
  readonly replay: { readonly data: DatasetSize; readonly rounds: number }
  readonly freshness: {
    readonly organizations: number
    /** The processes and the JVM get warm: not counted, and longer than the time before each rate. */
    readonly jvmWarmUp: { readonly eventsPerSecond: number; readonly seconds: number }
    readonly rates: readonly FreshnessRate[]
    /** Of each rate, not counted. */
    readonly warmUpSeconds: number
    readonly rounds: number
    readonly secondsPerRound: number
    readonly plainSecondsPerRound: number
    readonly shape: PayoutShape
  }
  readonly api: {
    readonly data: DatasetSize
    /** Of every kind of request, at every number of connections. */
    readonly rounds: number
    /** Of every kind of request. */
    readonly warmUpSeconds: number
    readonly secondsPerRound: number
    readonly connections: readonly number[]
    /** Pages while events are projected. */
    readonly beside: { readonly eventsPerSecond: number; readonly rounds: number; readonly seconds: number }
  }
  readonly crowd: {
    readonly data: DatasetSize
    readonly rounds: number
    readonly warmUpSeconds: number
    readonly secondsPerRound: number
    readonly connections: number
    /** Reads of each kind. */
    readonly probes: number
  }
}

export type FreshnessRate = {
  readonly eventsPerSecond: number
  /** One event in so many is looked for. */
  readonly probeEvery: number
}

/** The share of payouts that replace an earlier one. */
const recalculated = 0.1
const shape = { lines: 3, steps: 3 }

export const wholeRun: Sizes = {
  replay: { data: { payouts: 300_000, organizations: 50, recalculated, ...shape }, rounds: 5 },
  freshness: {
    // No common factor with any `probeEvery`: probes are of every organization.
    organizations: 13,
    jvmWarmUp: { eventsPerSecond: 200, seconds: 20 },
    rates: [
      { eventsPerSecond: 20, probeEvery: 2 },
      { eventsPerSecond: 200, probeEvery: 20 },
      { eventsPerSecond: 2_000, probeEvery: 200 },
    ],
    warmUpSeconds: 5,
    rounds: 3,
    secondsPerRound: 20,
    plainSecondsPerRound: 10,
    shape,
  },
  api: {
    // The first organization, whose pages are read, has some 100,000 current ones; the others make it one among many.
    data: { payouts: 140_000, organizations: 50, firstShare: 0.8, recalculated, ...shape },
    // Many short rounds, so that whatever else the machine does meets both.
    rounds: 5,
    warmUpSeconds: 2,
    secondsPerRound: 2,
    connections: [1, 8, 32],
    beside: { eventsPerSecond: 200, rounds: 3, seconds: 5 },
  },
  crowd: {
    data: { payouts: 12_000, organizations: 10, recalculated, ...shape },
    rounds: 3,
    warmUpSeconds: 3,
    secondsPerRound: 15,
    connections: 4,
    probes: 4_000,
  },
}

export const quickRun: Sizes = {
  replay: { data: { ...wholeRun.replay.data, payouts: 20_000 }, rounds: 3 },
  freshness: {
    ...wholeRun.freshness,
    jvmWarmUp: { eventsPerSecond: 200, seconds: 3 },
    rates: [{ eventsPerSecond: 200, probeEvery: 20 }],
    warmUpSeconds: 1,
    rounds: 2,
    secondsPerRound: 4,
    plainSecondsPerRound: 4,
  },
  api: {
    ...wholeRun.api,
    data: { ...wholeRun.api.data, payouts: 12_000 },
    rounds: 2,
    warmUpSeconds: 0.5,
    secondsPerRound: 0.5,
    connections: [8],
    beside: { eventsPerSecond: 200, rounds: 2, seconds: 1 },
  },
  crowd: { ...wholeRun.crowd, rounds: 2, warmUpSeconds: 1, secondsPerRound: 2, probes: 400 },
}
