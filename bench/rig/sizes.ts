/** Sizes of measurements: whole runs, whose results are stored, and quick runs for every day. */
import type { DatasetSize, PayoutShape } from './dataset.ts'

export type Sizes = {
  readonly replay: {
    readonly data: DatasetSize
    /** At most. */
    readonly warmUpRounds: number
    readonly rounds: number
    /** Each process on a core of its own. */
    readonly separateRounds: number
    /** One organization has half of the payouts. */
    readonly half: { readonly data: DatasetSize; readonly rounds: number }
  }
  readonly partitions: { readonly data: DatasetSize; readonly rounds: number }
  readonly growth: {
    /** Payouts of one organization; each size is projected and read, the smallest first. */
    readonly payouts: readonly number[]
    readonly shape: PayoutShape
    readonly recalculated: number
    readonly pages: { readonly rounds: number; readonly secondsPerRound: number }
    /** Payouts published one by one, each requested until it is visible. */
    readonly probes: number
    readonly restarts: number
    readonly chains: { readonly lengths: readonly number[]; readonly data: DatasetSize; readonly rounds: number }
  }
  readonly shards: {
    /** Of each index; the first is the one that the others are compared with. */
    readonly counts: readonly number[]
    readonly data: DatasetSize
    readonly rounds: number
    readonly pageSeconds: number
    readonly rate: FreshnessRate
    readonly rateSeconds: number
  }
  /** The same installation on one server of each, and on three. */
  readonly nodes: {
    /** Of each index. */
    readonly shards: number
    readonly data: DatasetSize
    /** At most. */
    readonly warmUpSeconds: number
    readonly rounds: number
    readonly pageSeconds: number
    readonly rate: FreshnessRate
    readonly rateSeconds: number
    readonly rebuilds: {
      readonly data: DatasetSize
      /** Numbers of processes that run at the same time. */
      readonly processes: readonly number[]
      /** Records a second, of each process. */
      readonly maxRate: number
      /** Seconds after the first records of each process, not measured. */
      readonly settleSeconds: number
      readonly seconds: number
    }
  }
  readonly totals: {
    /** Payouts of one organization, the smallest size first. */
    readonly payouts: readonly number[]
    readonly shape: PayoutShape
    readonly recalculated: number
    /** Requests of each kind. */
    readonly moments: number
    /** Payouts that a deal has in the mean, replaced ones too. */
    readonly payoutsOfDeal: number
    readonly pages: { readonly rounds: number; readonly secondsPerRound: number }
  }
  readonly freshness: {
    readonly organizations: number
    /** Share of the payouts that replace an earlier one. */
    readonly recalculated: number
    /** Warms processes and JVM up, not counted: until the compilers of the JVMs are quiet, these seconds at most. */
    readonly jvmWarmUp: { readonly eventsPerSecond: number; readonly seconds: number }
    readonly rates: readonly FreshnessRate[]
    /** For each rate, not counted. */
    readonly warmUpSeconds: number
    readonly rounds: number
    readonly secondsPerRound: number
    readonly plainSecondsPerRound: number
    /** The bare loop: seconds of each rate, after `warmUpSeconds`. */
    readonly bareSeconds: number
    /** Seconds without events: what the installation costs at rest. */
    readonly idleSeconds: number
    readonly shape: PayoutShape
  }
  /** Freshness with many payouts, and for minutes. The other numbers are those of `freshness`. */
  readonly corrections: {
    /** Replays without corrections, and with this share of them. */
    readonly replay: { readonly data: DatasetSize; readonly recalculated: number; readonly rounds: number }
    readonly payouts: number
    readonly rates: readonly FreshnessRate[]
    readonly constant: { readonly rate: FreshnessRate; readonly rounds: number; readonly secondsPerRound: number }
  }
  readonly archive: {
    /** Records of the log that is archived and restored, besides reps and periods. */
    readonly payouts: number
    readonly shape: PayoutShape
    /** For archive and restore, in records a second; undefined for no limit. */
    readonly maxRate: number | undefined
    readonly rate: FreshnessRate
    readonly warmUpSeconds: number
    /** Seconds of the same rate without archive and restore. */
    readonly aloneSeconds: number
  }
  readonly api: {
    readonly data: DatasetSize
    /** For every kind of request and number of connections. */
    readonly rounds: number
    /** For every kind of request, through the API and straight to Elasticsearch. */
    readonly warmUpSeconds: number
    readonly secondsPerRound: number
    readonly connections: readonly number[]
    /** Pages during projection. */
    readonly whileProjecting: { readonly eventsPerSecond: number; readonly rounds: number; readonly seconds: number }
  }
  readonly connectionLoad: {
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
  /** One of this many payouts is a probe. */
  readonly probeEvery: number
  /** The events: by default a mix of all kinds. */
  readonly stream?: 'payouts'
  /** Another process takes one core meanwhile. On a machine that is nearly full, events must not wait ever longer. */
  readonly coreTaken?: true
}

/** Share of payouts that replace an earlier one. */
const recalculated = 0.1
const shape = { lines: 3, steps: 3 }
const large = { lines: 6, steps: 8 }

/** Sizes of a run whose results are stored. */
export const wholeRun: Sizes = {
  replay: {
    data: { payouts: 300_000, organizations: 50, recalculated, ...large },
    warmUpRounds: 3,
    rounds: 3,
    separateRounds: 2,
    half: { data: { payouts: 150_000, organizations: 50, firstShare: 0.5, recalculated, ...large }, rounds: 3 },
  },
  partitions: { data: { payouts: 100_000, organizations: 50, recalculated, ...large }, rounds: 3 },
  growth: {
    payouts: [10_000, 100_000, 1_000_000],
    shape: large,
    recalculated,
    pages: { rounds: 3, secondsPerRound: 1.5 },
    probes: 100,
    restarts: 3,
    chains: {
      lengths: [1, 10, 100],
      data: { payouts: 50_000, organizations: 50, recalculated: 0, ...large },
      rounds: 3,
    },
  },
  shards: {
    counts: [1, 24, 96],
    data: { payouts: 100_000, organizations: 200, recalculated, ...large },
    rounds: 2,
    pageSeconds: 5,
    rate: { eventsPerSecond: 200, probeEvery: 20 },
    rateSeconds: 20,
  },
  nodes: {
    shards: 24,
    data: { payouts: 20_000, organizations: 40, recalculated, ...large },
    warmUpSeconds: 60,
    rounds: 3,
    pageSeconds: 3,
    rate: { eventsPerSecond: 200, probeEvery: 5 },
    rateSeconds: 12,
    rebuilds: {
      data: { payouts: 40_000, organizations: 40, recalculated, ...large },
      processes: [2, 4, 6],
      maxRate: 300,
      settleSeconds: 3,
      seconds: 15,
    },
  },
  totals: {
    payouts: [100_000, 1_000_000],
    shape: { lines: 1, steps: 0 },
    recalculated: 0.1,
    moments: 300,
    payoutsOfDeal: 100,
    pages: { rounds: 5, secondsPerRound: 2 },
  },
  freshness: {
    // No common factor with any `probeEvery`, so that every organization gets probes.
    organizations: 41,
    recalculated: 0.8,
    jvmWarmUp: { eventsPerSecond: 500, seconds: 300 },
    rates: [
      { eventsPerSecond: 20, probeEvery: 2 },
      { eventsPerSecond: 200, probeEvery: 20 },
      { eventsPerSecond: 1_000, probeEvery: 50 },
      { eventsPerSecond: 2_000, probeEvery: 100 },
      { eventsPerSecond: 200, probeEvery: 20, stream: 'payouts' },
      { eventsPerSecond: 1_000, probeEvery: 50, stream: 'payouts' },
      { eventsPerSecond: 200, probeEvery: 20, coreTaken: true },
      { eventsPerSecond: 1_000, probeEvery: 50, coreTaken: true },
    ],
    warmUpSeconds: 5,
    rounds: 3,
    secondsPerRound: 15,
    plainSecondsPerRound: 8,
    bareSeconds: 12,
    idleSeconds: 20,
    shape,
  },
  corrections: {
    replay: {
      data: { payouts: 100_000, organizations: 50, recalculated: 0, ...large },
      recalculated: 0.5,
      rounds: 3,
    },
    payouts: 1_000_000,
    rates: [
      { eventsPerSecond: 200, probeEvery: 20, stream: 'payouts' },
      { eventsPerSecond: 1_000, probeEvery: 50, stream: 'payouts' },
    ],
    constant: { rate: { eventsPerSecond: 2_000, probeEvery: 100, stream: 'payouts' }, rounds: 5, secondsPerRound: 60 },
  },
  archive: {
    payouts: 240_000,
    shape: { lines: 1, steps: 0 },
    // The target is 20,000 records/s, and a limit is never exceeded.
    maxRate: 21_000,
    rate: { eventsPerSecond: 200, probeEvery: 5, stream: 'payouts' },
    warmUpSeconds: 5,
    aloneSeconds: 20,
  },
  api: {
    // Pages are read of the first organization: some 100,000 current payouts. The others make it one among many.
    data: { payouts: 140_000, organizations: 50, firstShare: 0.8, recalculated, ...shape },
    // Many short rounds: other load on the machine then meets both alternatives.
    rounds: 5,
    // Thousands of pages: with fewer, much of the API's CPU is the compilation of its code, on the same cores.
    warmUpSeconds: 10,
    secondsPerRound: 2,
    connections: [1, 8, 32],
    whileProjecting: { eventsPerSecond: 200, rounds: 3, seconds: 5 },
  },
  connectionLoad: {
    data: { payouts: 12_000, organizations: 10, recalculated, ...shape },
    rounds: 3,
    warmUpSeconds: 3,
    secondsPerRound: 15,
    connections: 4,
    probes: 4_000,
  },
}

/** Sizes of a run that takes under five minutes. */
export const quickRun: Sizes = {
  replay: {
    data: { ...wholeRun.replay.data, payouts: 10_000 },
    warmUpRounds: 1,
    rounds: 1,
    separateRounds: 1,
    half: { data: { ...wholeRun.replay.half.data, payouts: 6_000 }, rounds: 1 },
  },
  partitions: { data: { ...wholeRun.partitions.data, payouts: 6_000 }, rounds: 1 },
  growth: {
    ...wholeRun.growth,
    payouts: [1_000, 10_000],
    pages: { rounds: 1, secondsPerRound: 0.5 },
    probes: 20,
    restarts: 1,
    chains: {
      lengths: [1, 100],
      data: { ...wholeRun.growth.chains.data, payouts: 3_000, organizations: 6 },
      rounds: 1,
    },
  },
  shards: {
    ...wholeRun.shards,
    counts: [1, 24],
    data: { ...wholeRun.shards.data, payouts: 10_000, organizations: 20 },
    rounds: 1,
    pageSeconds: 1,
    rateSeconds: 3,
  },
  nodes: {
    ...wholeRun.nodes,
    data: { ...wholeRun.nodes.data, payouts: 1_000, organizations: 2 },
    warmUpSeconds: 1,
    rounds: 1,
    pageSeconds: 0.5,
    rateSeconds: 2,
    rebuilds: {
      ...wholeRun.nodes.rebuilds,
      data: { ...wholeRun.nodes.rebuilds.data, payouts: 6_000 },
      processes: [2],
      settleSeconds: 1,
      seconds: 3,
    },
  },
  totals: {
    ...wholeRun.totals,
    payouts: [1_000, 10_000],
    moments: 20,
    pages: { rounds: 2, secondsPerRound: 0.5 },
  },
  freshness: {
    ...wholeRun.freshness,
    jvmWarmUp: { eventsPerSecond: 200, seconds: 3 },
    rates: [
      { eventsPerSecond: 200, probeEvery: 20 },
      { eventsPerSecond: 200, probeEvery: 20, coreTaken: true },
    ],
    warmUpSeconds: 1,
    rounds: 2,
    secondsPerRound: 3,
    plainSecondsPerRound: 3,
    bareSeconds: 3,
    idleSeconds: 3,
  },
  corrections: {
    replay: {
      ...wholeRun.corrections.replay,
      data: { ...wholeRun.corrections.replay.data, payouts: 3_000 },
      rounds: 1,
    },
    payouts: 5_000,
    rates: [{ eventsPerSecond: 200, probeEvery: 20, stream: 'payouts' }],
    constant: { rate: { eventsPerSecond: 500, probeEvery: 50, stream: 'payouts' }, rounds: 2, secondsPerRound: 2 },
  },
  archive: { ...wholeRun.archive, payouts: 20_000, warmUpSeconds: 1, aloneSeconds: 3 },
  api: {
    ...wholeRun.api,
    data: { ...wholeRun.api.data, payouts: 12_000 },
    rounds: 2,
    warmUpSeconds: 0.5,
    secondsPerRound: 0.5,
    connections: [8],
    whileProjecting: { eventsPerSecond: 200, rounds: 2, seconds: 1 },
  },
  connectionLoad: { ...wholeRun.connectionLoad, rounds: 2, warmUpSeconds: 1, secondsPerRound: 2, probes: 300 },
}
