/**
 * The log that a replay reads: the topic in Kafka, or an archive of it. Both give the same sandbox, because an archive
 * stands for the topic that it was made from.
 */
import { partitionOf } from '../../schemas/partition.ts'
import type { OpenTarget } from '../archive/open-target.ts'
import { readArchivedLog, readManifests, type VerifiedChain, verifyChain } from '../archive/read-archive.ts'
import type { KafkaContext } from '../context.ts'
import { type ProgressSteps, reportProgress } from '../generations/progress.ts'
import { sandboxGroupPrefix } from '../generations/sandboxes.ts'
import { connectAdmin } from '../kafka.ts'
import {
  describeSource,
  type Ends,
  fetchEnds,
  type GenerationBody,
  type KafkaAccess,
  type VerifiedLog,
} from '../projector.ts'
import { assertOver, assertTimeArchived } from './replay-bounds.ts'

export type ReplaySource = {
  readonly identity: Pick<GenerationBody, 'topic' | 'cluster_id' | 'partitions'>
  /** Ends at the start of the command: records that are appended later are not replayed. */
  readonly ends: Ends
  /** By partition, the first offset whose record is later than the requested time; empty without such a time. */
  readonly firstLater: ReadonlyMap<number, number>
  /** @throws CommandError if the log can have more records of that time */
  readonly assertOver: () => void
  readonly from: KafkaAccess | VerifiedLog
  /** Of the consumer group in Kafka. */
  readonly groupId: string
}

/** @param time the end of the replay, in milliseconds since 1970, if it has a time as its end */
export type OpenSource = (
  wanted: { readonly org: string | undefined; readonly time: number | undefined },
  stack: AsyncDisposableStack,
) => Promise<ReplaySource>

type KafkaSteps = Pick<KafkaContext, 'kafka' | 'topics' | 'now'> &
  Pick<KafkaAccess, 'kafkaWithConnectHook'> & { readonly groupId: string }

export const sourceInKafka =
  ({ kafka, topics, kafkaWithConnectHook, groupId, now }: KafkaSteps): OpenSource =>
  async ({ org, time }, stack) => {
    const admin = await connectAdmin(kafka, stack)
    const topic = topics.events
    const identity = await describeSource(admin, topic)
    const ends = await fetchEnds(admin, topic)
    const offsets = time === undefined ? [] : await admin.fetchTopicOffsetsByTimestamp(topic, time + 1)
    const firstLater = new Map(offsets.map(({ partition, offset }) => [partition, Number(offset)]))
    return {
      identity,
      ends,
      firstLater,
      assertOver: () => time !== undefined && assertOver(time, org, ends, firstLater, now()),
      from: { kafkaWithConnectHook, admin },
      groupId: sandboxGroupPrefix(groupId),
    }
  }

type ArchiveSteps = ProgressSteps & { readonly signal: AbortSignal; readonly openTarget: OpenTarget }

/**
 * Verifies the partitions that the replay reads, before anything is projected. While it reads, each segment must be the
 * one that was verified.
 * @throws ArchiveDamaged that names the first fault; CommandError if there is no archive
 */
export const sourceInArchive =
  (address: string, steps: ArchiveSteps): OpenSource =>
  async ({ org, time }) => {
    const target = await steps.openTarget(address)
    const { events: manifest } = await readManifests(target)
    const { cluster_id, topic, partitions } = manifest
    const ours = org === undefined ? undefined : partitionOf(org, partitions.length)
    const read = partitions.filter(({ partition }) => ours === undefined || partition === ours)
    steps.say(`verifying ${address}`)
    const report = reportProgress(steps)
    const total = read.reduce((sum, { end }) => sum + end, 0)
    let done = 0
    const chains = new Map<number, VerifiedChain>()
    const firstLater = new Map<number, number>()
    for (const archived of read) {
      const { partition } = archived
      const chain = await verifyChain(target, manifest, archived, ({ header, entries }) => {
        steps.signal.throwIfAborted()
        // Also at a hole (control or aborted record): Kafka counts them, too.
        const later = time === undefined ? undefined : entries.find(({ timestamp }) => timestamp > time)
        if (later !== undefined && !firstLater.has(partition)) firstLater.set(partition, later.offset)
        done += header.end - header.from
        report({ done, total })
      })
      chains.set(partition, chain)
    }
    // A partition that was not verified is never read.
    const ends = partitions.map(({ partition, end }) => ({ partition, low: 0, end: chains.has(partition) ? end : 0 }))
    return {
      identity: { topic, cluster_id, partitions: partitions.length },
      ends,
      firstLater,
      assertOver: () =>
        time !== undefined &&
        assertTimeArchived(
          read.map(({ partition }) => partition),
          firstLater,
        ),
      from: { reader: readArchivedLog(target, manifest, chains), archivedEnds: ends },
      groupId: '',
    }
  }
