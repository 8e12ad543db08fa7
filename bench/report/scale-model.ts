/**
 * A model of installations of any size: from the figures of the bench and the number of payouts to nodes, cores, disks
 * and days. `npm run bench -- --render` writes its table into docs/scale.md, which explains each formula.
 *
 * In: measured figures of one machine. Out: a table for 10 million, 1 billion and 10 billion payouts.
 * It assumes that all grows with the number of payouts: twice as many take twice the cores, disk and time.
 */

/** Measured. Times are in milliseconds of CPU. */
export type MeasuredFigures = {
  /** Payouts a second of one projector in a replay. */
  readonly replayRate: number
  /** Payouts a second of one partition. */
  readonly partitionRate: number
  /** Of a payout in a replay. */
  readonly projectorTime: number
  readonly elasticsearchTime: number
  /** Of Elasticsearch for a replica, as a share of its time without replicas. */
  readonly replicaShare: number
  /** Of a page of 200. */
  readonly apiTime: number
  readonly pageTime: number
  /** Milliseconds of a page of 200, beside seven other clients. */
  readonly pageP50: number
  readonly pageP99: number
}

/** Measured by hand, once: bytes of a payout of 6 lines and 8 steps. */
const KAFKA_BYTES = 3_100
const DOCUMENT_BYTES = 1_750
const LARGEST_INDEX_BYTES = 1_150

/** The assumptions of the table. docs/scale.md names them. */
const PAGES_PER_SECOND = 100
const REPLICAS = 1
const KAFKA_REPLICAS = 3
const BUSY_MAX = 0.7
/** A month of five years is published within an hour. */
const BUSIEST_SECONDS = 60 * 3_600
const MERGE_ROOM = 1.3
const SHARD_BYTES_MAX = 50e9
/** Of a node of Elasticsearch. */
const NODE_CORES = 8
const NODE_BYTES = 4e12
const NODES_MIN = 3
const PARTITIONS_MIN = 6
/** A slow shard answers so much later than the others. */
const SLOWER = 10

export type ModelledInstallation = {
  readonly eventsPerSecond: number
  readonly projectorCores: number
  readonly partitions: number
  readonly elasticsearchCores: number
  readonly shards: number
  readonly shardsInAll: number
  readonly elasticsearchBytes: number
  readonly nodes: number
  readonly kafkaBytes: number
  readonly rebuildSeconds: number
  readonly apiCores: number
  /** Of a page of 200 while one shard is slow. */
  readonly pageP99: number
}

/** @param generations that projectors keep up: one, and two from a rebuild until one is dropped */
export const installationFor = (
  payouts: number,
  generations: number,
  figures: MeasuredFigures,
): ModelledInstallation => {
  const eventsPerSecond = payouts / BUSIEST_SECONDS
  const coresFor = (time: number): number => time / (1_000 * BUSY_MAX)
  const projecting = coresFor(eventsPerSecond * figures.projectorTime)
  const writing = coresFor(eventsPerSecond * figures.elasticsearchTime * (1 + REPLICAS * figures.replicaShare))
  const elasticsearchCores = Math.ceil(generations * writing + coresFor(PAGES_PER_SECOND * figures.pageTime))
  const shards = Math.ceil((payouts * LARGEST_INDEX_BYTES) / SHARD_BYTES_MAX)
  const elasticsearchBytes = payouts * DOCUMENT_BYTES * (1 + REPLICAS) * generations * MERGE_ROOM
  // Three indices have these shards, two have one each.
  const shardsInAll = (3 * shards + 2) * (1 + REPLICAS) * generations
  return {
    eventsPerSecond,
    projectorCores: Math.ceil(generations * projecting),
    // Each generation has its own consumers. The fullest partition has about twice the share of the others.
    partitions: Math.max(
      PARTITIONS_MIN,
      2 * Math.ceil(projecting),
      Math.ceil((2 * eventsPerSecond) / figures.partitionRate),
    ),
    elasticsearchCores,
    shards,
    shardsInAll,
    elasticsearchBytes,
    nodes: Math.max(
      NODES_MIN,
      Math.ceil(elasticsearchCores / NODE_CORES),
      Math.ceil(elasticsearchBytes / NODE_BYTES),
      Math.ceil(shardsInAll / 1_000),
    ),
    kafkaBytes: payouts * KAFKA_BYTES * KAFKA_REPLICAS,
    rebuildSeconds: payouts / figures.replayRate,
    apiCores: Math.ceil(coresFor(PAGES_PER_SECOND * figures.apiTime)),
    pageP99: pageP99(figures, 1 / shards),
  }
}

/**
 * @param share the part of the pages that ask the slow shard
 * @returns milliseconds that 99 of 100 pages do not exceed, with times between the measured p50 and p99 on a line
 */
const pageP99 = ({ pageP50, pageP99: usual }: MeasuredFigures, share: number): number => {
  if (share <= 0.01) return usual
  // Of the pages of the slow shard, this part may take longer.
  const over = 0.01 / share
  const at = (0.5 - Math.min(0.5, over)) / 0.49
  return SLOWER * (pageP50 + Math.min(1, at) * (usual - pageP50))
}

type Row = readonly [what: string, text: (kept: ModelledInstallation, rebuilt: ModelledInstallation) => string]

/** @param text of a number that a second generation changes */
const keptAndRebuilt = (text: (installation: ModelledInstallation) => string): Row[1] => {
  return (kept, rebuilt) => `${text(kept)}; ${text(rebuilt)}`
}

const rows: readonly Row[] = [
  ['events/s at the busiest', ({ eventsPerSecond }) => twoDigits(eventsPerSecond)],
  ['projector cores: kept; while rebuilt', keptAndRebuilt(({ projectorCores }) => twoDigits(projectorCores))],
  ['partitions', ({ partitions }) => String(partitions)],
  ['Elasticsearch cores', keptAndRebuilt(({ elasticsearchCores }) => twoDigits(elasticsearchCores))],
  ['shards of each index', ({ shards }) => String(shards)],
  ['shards in all', keptAndRebuilt(({ shardsInAll }) => whole(shardsInAll))],
  ['Elasticsearch disk', keptAndRebuilt(({ elasticsearchBytes }) => bytes(elasticsearchBytes))],
  ['Elasticsearch nodes of 8 cores and 4 TB', (_, { nodes }) => String(nodes)],
  ['Kafka disk', ({ kafkaBytes }) => bytes(kafkaBytes)],
  ['a rebuild by one process, at least', ({ rebuildSeconds }) => duration(rebuildSeconds)],
  ['API cores', ({ apiCores }) => String(apiCores)],
  ['p99 of a page of 200, one shard ten times slower', ({ pageP99 }) => `${twoDigits(pageP99)} ms`],
]

const SIZES: readonly (readonly [title: string, payouts: number])[] = [
  ['10 million', 10e6],
  ['1 billion', 1e9],
  ['10 billion in one', 10e9],
  ['10 billion in 20 groups, each', 500e6],
]

/** Returns the table in Markdown. */
export const scaleTable = (figures: MeasuredFigures): string => {
  const installations = SIZES.map(([, payouts]) => {
    return [installationFor(payouts, 1, figures), installationFor(payouts, 2, figures)] as const
  })
  const lines = rows.map(([what, text]) => [what, ...installations.map(([kept, rebuilt]) => text(kept, rebuilt))])
  return [['', ...SIZES.map(([title]) => title)], SIZES.map(() => '---').concat('---'), ...lines]
    .map(cells => `| ${cells.join(' | ')} |\n`.replace('|  |', '| |'))
    .join('')
}

const whole = (value: number): string => value.toLocaleString('en-US')
const twoDigits = (value: number): string => whole(Number(value.toPrecision(2)))

const bytes = (value: number): string =>
  value >= 1e12 ? `${twoDigits(value / 1e12)} TB` : `${twoDigits(value / 1e9)} GB`

const duration = (seconds: number): string => {
  if (seconds >= 2 * 86_400) return `${twoDigits(seconds / 86_400)} days`
  return seconds >= 7_200 ? `${twoDigits(seconds / 3_600)} hours` : `${twoDigits(seconds / 60)} minutes`
}
