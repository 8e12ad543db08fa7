/** The live projection, from the control index: generation, source of each stream, indices, positions. */
import type { Admin } from 'kafkajs'
import { KEY_RULES_VERSION, RULES_VERSION } from '../core/ledger/index.ts'
import {
  assertSameSource,
  describeSource,
  endOfPartition,
  endsWithWritten,
  fetchEnds,
  type GenerationBody,
  type OpenThen,
  type Source,
  textOfOpen,
} from '../core/log/index.ts'
import { StopError, Unanswered } from '../core/runtime/index.ts'
import { assertSeesAll, getEach, knowsKeyRules, multiGet, type Send, type Sight } from '../core/store/index.ts'
import type { Stream } from '../schemas/events.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../schemas/stored/documents.ts'
import { controlAddress, type GenerationLayout, layoutOf } from '../schemas/stored/layout.ts'
import { withPlainNames } from '../schemas/stored/live-names.ts'
import type { ClusterContext } from './context.ts'
import { findUncompared } from './documents/shards.ts'
import { CommandError } from './failures.ts'
import { servedDocumentsOf, servedPositionsOf } from './generations/generations.ts'
import { OPEN_LOOK_MS, OPEN_LOOKS, POLL_MS } from './limits.ts'

export type LiveStream = {
  readonly stream: Stream
  readonly identity: GenerationBody
  readonly layout: GenerationLayout
  /** A recorded shard that could not be compared: it may have lost documents. */
  readonly unknownShard?: string | undefined
}
export type Live = Readonly<Record<Stream, LiveStream>>

/**
 * Returns the live projection, whose indices are its own.
 * @throws CommandError if nothing was projected under this prefix; StopError `index_missing`, `index_replaced`
 */
export const readLive = async (send: Send, prefix: string): Promise<Live> => {
  const compared = async (one: LiveStream): Promise<LiveStream> => {
    return { ...one, unknownShard: await findUncompared(one.identity, { send, prefix }) }
  }
  const { events, 'api-keys': keys } = await recordedLive(send, prefix)
  return { events: await compared(events), 'api-keys': await compared(keys) }
}

/** Returns a recorded shard of either stream that could not be compared when `readLive` read them. */
export const unknownShardIn = ({ events, 'api-keys': keys }: Live): string | undefined =>
  events.unknownShard ?? keys.unknownShard

/** As `assertSeesAll`. A proxy that answers in place of Elasticsearch tells nothing. */
export const readSight = async (indices: readonly string[], send: Send): Promise<Sight> => {
  try {
    return await assertSeesAll(indices, { request: send }, false)
  } catch (error) {
    if (error instanceof Unanswered && [400, 404].includes(error.status)) return 'not told'
    throw error
  }
}

/** As `refuseUncompared`: an administrator may give an API key a role that hides documents while it is used. */
export const refuseUnseen = (
  sight: Sight,
  refusal: string | undefined,
  { say }: { readonly say: (line: string) => void },
): void => {
  if (sight !== 'not told') return
  const what = 'Elasticsearch does not tell whether a role hides documents from this user or API key'
  const advice = 'a proxy may refuse GET /_security/_authenticate or GET /_security/api_key (docs/access.md)'
  if (refusal !== undefined) throw new CommandError(`${what}: ${advice}. ${refusal}`)
  say(`${what}: ${advice}`)
}

/** As `readLive`, if no partition of it is read again after a restore. @throws also as `servedPositionsOf` */
export const readServedLive = async (send: Send, prefix: string): Promise<Live> => {
  const live = await readLive(send, prefix)
  for (const { identity } of Object.values(live)) await servedPositionsOf(identity, { send, prefix })
  return live
}

/** The live projection, and the published positions of each stream. */
export type LiveProjection = {
  readonly live: Live
  readonly positions: Readonly<Record<Stream, readonly PositionDocument['body'][]>>
}

/** @throws as `readServedLive` */
export const readProjection = async (send: Send, prefix: string): Promise<LiveProjection> => {
  const live = await readLive(send, prefix)
  const [events, keys] = [live.events.identity, live['api-keys'].identity]
  const positions = {
    events: await servedDocumentsOf(events, { send, prefix }),
    'api-keys': await servedDocumentsOf(keys, { send, prefix }),
  }
  return { live, positions }
}

/** All events up to this moment are included, in milliseconds since 1970. No projector publishes a time of API keys. */
export const includedUpTo = ({ positions }: LiveProjection): number =>
  Math.min(...positions.events.map(({ time }) => time))

/**
 * As `readProjection`, once it includes the events that were published up to this moment; after `waitMs` as it is then.
 * @throws as `readServedLive`
 */
export const readProjectionUpTo = async (
  moment: number,
  waitMs: number,
  { send, prefix, sleep, elapsed }: Omit<Waiting, 'advice'>,
): Promise<LiveProjection> => {
  for (const until = elapsed() + waitMs; ; await sleep(POLL_MS)) {
    const projection = await readProjection(send, prefix)
    if (includedUpTo(projection) >= moment || elapsed() >= until) return projection
  }
}

/**
 * Identifies the live copy of a stream. `adopt` and `rewind` change it: documents were missing, or in an earlier state,
 * until all was read again.
 */
export const copyIn = ({ live, positions }: LiveProjection, stream: Stream) => {
  const { indices, shards } = live[stream].identity
  return { indices, shards, takenBack: positions[stream].map(({ taken_back = 0 }) => taken_back) }
}

/** As `readLive`, also if its indices were restored. */
export const recordedLive = async (send: Send, prefix: string): Promise<Live> => {
  const control = controlIndexOf(prefix)
  const bodyOf = async <Document extends { body: unknown }>(id: string): Promise<Document['body']> => {
    const [found] = await multiGet<Document>(send, [controlAddress(prefix, id)]).catch((error: unknown) => {
      if (error instanceof StopError && error.code === 'index_missing') return []
      throw error
    })
    if (found?.found) return found._source.body
    throw new CommandError(
      `nothing is projected under ELASTICSEARCH_INDEX_PREFIX=${prefix}: ${control} has no document "${id}"`,
    )
  }
  const { generation } = withPlainNames(await bodyOf<LiveDocument>(LIVE_ID))
  return {
    events: eventsIn(await bodyOf<GenerationDocument>(generationId(generation)), prefix),
    'api-keys': streamOf('api-keys', await bodyOf<GenerationDocument>(generationId(API_KEYS_GENERATION)), prefix),
  }
}

/** The events of one generation. */
export const eventsIn = (identity: GenerationBody, prefix: string): LiveStream => streamOf('events', identity, prefix)

const streamOf = (stream: Stream, identity: GenerationBody, prefix: string): LiveStream => ({
  stream,
  identity,
  layout: layoutOf(prefix, identity),
})

/**
 * Checks that the projection has the topic, cluster and rules version of this program. Otherwise a record would get
 * another decision, or none.
 * @throws StopError `source_changed`, `rules_changed`, `topic_missing`
 */
export const assertSameSourceAndRules = async (
  { stream, identity }: LiveStream,
  { admin, topics }: { readonly admin: Admin; readonly topics: Readonly<Record<Stream, string>> },
): Promise<void> => {
  assertSameSource(identity, await describeSource(admin, topics[stream]))
  const ours = stream === 'events' ? RULES_VERSION : KEY_RULES_VERSION
  if (stream === 'events' ? identity.rules_version === ours : knowsKeyRules(identity)) return
  const detail = `the projection has version ${identity.rules_version}, this program ${ours}`
  throw new StopError('rules_changed', detail)
}

/**
 * The live generation decides what becomes of a record. This program cannot predict decisions of other rules.
 * @throws CommandError if a generation of other rules was made live meanwhile
 */
export const assertStillDecides = async (
  { stream, identity }: LiveStream,
  { send, prefix }: Pick<Waiting, 'send' | 'prefix'>,
): Promise<void> => {
  const { generation, rules_version } = (await readLive(send, prefix))[stream].identity
  if (rules_version === identity.rules_version) return
  const what = `${generation} was made live meanwhile, under rules version ${rules_version}`
  throw new CommandError(
    `${what}: check the outcome of the records, and run the same command with the program of that version`,
  )
}

/**
 * Returns the stable ends of a topic, as soon as they include everything that was written at the call, or after some
 * seconds; and where records stay hidden. Transactions that end soon only delay it.
 */
export const waitUntilReadable = async (
  { topic, partitions }: Pick<Source, 'topic' | 'partitions'>,
  { admin, openCluster, sleep }: Pick<ClusterContext, 'openCluster' | 'sleep'> & { readonly admin: Admin },
): Promise<{ readonly ends: number[]; readonly hidden: OpenThen }> => {
  const cluster = await openCluster(topic)
  try {
    return await endsWithWritten({ cluster, admin, topic, partitions }, OPEN_LOOKS, async () => {
      await sleep(OPEN_LOOK_MS)
      return true
    })
  } finally {
    await cluster.disconnect()
  }
}

/**
 * Kafka puts a new record at or after each end that was told before. Before it, the topic has lost records since, or is
 * another one: a projector that has read further does not read the record.
 * @param end was read before the record was sent
 * @throws CommandError
 */
export const assertAppended = (topic: string, partition: number, offset: number, end: number): void => {
  if (offset >= end) return
  const what = `Kafka put a record at offset ${offset} of partition ${partition} of ${topic}, which had ended at ${end}`
  throw new CommandError(
    `${what}: it has lost records, or is another topic, and no projector reads this record. ` +
      'docs/operating.md, records_deleted, says what to do',
  )
}

type Waiting = {
  readonly send: Send
  readonly prefix: string
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly elapsed: () => number
  /** With it, the timeout error tells whether open transactions hide the records. */
  readonly admin?: Admin
  /** Advice of the timeout error; by default to run the same command again. */
  readonly advice?: string
}

/**
 * Waits until the projector has published a stream up to these positions, also while Elasticsearch is unavailable.
 * @param wanted next offsets by partition
 * @throws CommandError after `waitSeconds`
 */
export const waitUntilPublished = async (
  { identity: { generation, topic } }: LiveStream,
  wanted: ReadonlyMap<number, number>,
  waitSeconds: number,
  { send, prefix, sleep, elapsed, admin, advice = AGAIN }: Waiting,
): Promise<void> => {
  const docs = [...wanted.keys()].map(partition => controlAddress(prefix, positionId(generation, partition)))
  if (docs.length === 0) return
  const readLag = async (): Promise<number> => {
    const documents = await getEach(docs, part => multiGet<PositionDocument>(send, part))
    const positions = documents.map(found => {
      if (found.found) return found._source.body.position
      throw new CommandError(`generation ${generation} was dropped meanwhile: run the same command again`)
    })
    return lagOf([...wanted.values()], positions)
  }
  for (const until = elapsed() + waitSeconds * 1000; ; await sleep(POLL_MS)) {
    const lag = await readLag().catch((error: unknown) => {
      if (error instanceof Unanswered) return error
      throw error
    })
    if (lag === 0) return
    if (elapsed() <= until) continue
    if (lag instanceof Unanswered) {
      const what = `it is not known how far the projector is on ${topic} after ${waitSeconds} s`
      throw new CommandError(`${what}: ${lag.message}. ${advice}`)
    }
    const what = `the projector is ${lag} records behind on ${topic} after ${waitSeconds} s`
    const open = admin === undefined ? [] : await findHidden(topic, wanted, admin).catch(() => [])
    const why = open.length > 0 ? `end the ${textOfOpen(topic, open)}, which hide records.` : 'is it running?'
    throw new CommandError(`${what}: ${why} ${advice}`)
  }
}

/** Returns the partitions that have records before these offsets which nobody can read yet. */
const findHidden = async (topic: string, wanted: ReadonlyMap<number, number>, admin: Admin): Promise<number[]> => {
  const ends = await fetchEnds(admin, topic)
  return [...wanted].flatMap(([partition, end]) => (endOfPartition(partition, ends) < end ? [partition] : []))
}

/** Returns the number of records between these positions and the wanted ones. */
export const lagOf = (wanted: readonly number[], positions: readonly number[]): number =>
  wanted.reduce((sum, end, index) => sum + Math.max(0, end - (positions[index] ?? 0)), 0)

const AGAIN = 'Run the same command again later: it sends nothing twice'
