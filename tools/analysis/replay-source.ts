/**
 * The log that a replay reads: the topic in Kafka, or an archive of it. Both give the same sandbox, because an archive
 * stands for the topic that it was made from.
 */
import type { Admin } from 'kafkajs'
import {
  connectAdmin,
  describeSource,
  type Ends,
  fetchEnds,
  type GenerationBody,
  type KafkaAccess,
  readLog,
  type VerifiedLog,
} from '../../core/log/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { ArchiveManifest } from '../archive/manifest.ts'
import type { OpenTarget } from '../archive/open-target.ts'
import { readArchivedLog, type VerifiedChain, verifyChain } from '../archive/read-archive.ts'
import { findRedactions, warnOfRedaction } from '../archive/redaction/redaction-files.ts'
import type { Segment } from '../archive/segment.ts'
import { readSignedManifests } from '../archive/verify.ts'
import type { ClusterContext, KafkaContext } from '../context.ts'
import { CommandError, messageOf } from '../failures.ts'
import { type ProgressSteps, reportProgress } from '../generations/progress.ts'
import { sandboxGroupPrefix } from '../generations/sandboxes.ts'
import { waitUntilReadable } from '../live.ts'
import { assertOver, assertTimeArchived } from './replay-bounds.ts'
import { FirstLater, type WantedTime } from './until-time.ts'

export type ReplaySource = {
  readonly identity: Pick<GenerationBody, 'topic' | 'cluster_id' | 'partitions'>
  /** Ends at the start of the command: records that are appended later are not replayed. */
  readonly ends: Ends
  /** By partition, the first record that is later than the requested time; empty without such a time. */
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

type KafkaSteps = ProgressSteps &
  Pick<ClusterContext, 'kafka' | 'topics' | 'now' | 'say' | 'sleep' | 'openCluster'> &
  Pick<KafkaAccess, 'kafkaWithConnectHook' | 'openLog'> & {
    readonly groupId: string
    readonly signal: AbortSignal
  }

export const sourceInKafka =
  (steps: KafkaSteps): OpenSource =>
  async ({ org, time }, stack) => {
    const { topics, kafkaWithConnectHook, openLog, groupId, now } = steps
    const admin = await connectAdmin(steps.kafka, stack)
    const topic = topics.events
    const identity = await describeSource(admin, topic)
    const read = {
      identity,
      from: { kafkaWithConnectHook, openLog, admin },
      groupId: sandboxGroupPrefix(groupId),
    }
    if (time === undefined)
      return { ...read, ends: await fetchEnds(admin, topic), firstLater: NOTHING, assertOver: () => undefined }
    const found = await waitUntilReadable(identity, { ...steps, admin })
    const ends = found.ends.map((end, partition) => ({ partition, low: 0, end }))
    const firstLater = await findInKafka(admin, topic, ends, { time, org, now: now() }, steps)
    return {
      ...read,
      ends,
      firstLater,
      assertOver: () => assertOver(time, org, ends, firstLater, now(), found.hidden),
    }
  }

const NOTHING: ReadonlyMap<number, number> = new Map()

/**
 * Kafka knows the first entry with a later time, which may be no record, and nothing of the times after it. So the rest
 * of each partition is read.
 */
const findInKafka = async (
  admin: Admin,
  topic: string,
  ends: Ends,
  instant: WantedTime,
  steps: KafkaSteps,
): Promise<ReadonlyMap<number, number>> => {
  const starts = await admin.fetchTopicOffsetsByTimestamp(topic, instant.time + 1)
  const ours = instant.org === undefined ? undefined : partitionOf(instant.org, ends.length)
  const parts = ends.flatMap(({ partition, end }) => {
    const start = Number(starts.find(found => found.partition === partition)?.offset ?? end)
    return (ours === undefined || ours === partition) && start < end ? [{ partition, start, end }] : []
  })
  const firstLater = new Map<number, number>()
  if (parts.length === 0) return firstLater
  steps.say('looking for the first later record')
  await using stack = new AsyncDisposableStack()
  const cluster = await steps.openCluster(topic)
  stack.defer(cluster.disconnect)
  const log = readLog(cluster, topic)
  const report = reportProgress(steps)
  const total = parts.reduce((sum, { start, end }) => sum + end - start, 0)
  let done = 0
  for (const { partition, start, end } of parts) {
    const found = new FirstLater(partition, instant)
    for (let offset = start; offset < end; ) {
      steps.signal.throwIfAborted()
      const entries = (await log.read(partition, offset)).entries.slice(0, end - offset)
      if (entries.length === 0)
        throw new CommandError(`partition ${partition} ends at ${offset}: it had records up to ${end}`)
      found.add(entries)
      offset += entries.length
      done += entries.length
      report({ done, total })
    }
    if (found.offset !== undefined) firstLater.set(partition, found.offset)
  }
  return firstLater
}

type ArchiveSteps = Pick<KafkaContext, 'now'> &
  ProgressSteps & {
    readonly signal: AbortSignal
    readonly openTarget: OpenTarget
    /** SEAL_KEYS_DIR, which has the receipts of redactions. */
    readonly keysDirectory: () => string | undefined
  }

/**
 * Verifies the partitions that the replay reads, before anything is projected. While it reads, each segment must be the
 * one that was verified.
 * @param keys public keys, as texts: one of them must have signed
 * @throws ArchiveDamaged that names the first fault; EvidenceDiffers; CommandError if there is no archive
 */
export const sourceInArchive =
  (address: string, steps: ArchiveSteps, keys?: readonly string[]): OpenSource =>
  async ({ org, time }) => {
    const target = await steps.openTarget(address)
    const { manifests, signed } = await readSignedManifests(target, keys, steps.say)
    const manifest = manifests.events
    const { cluster_id, topic, partitions } = manifest
    await warnOfRedactions(manifest, org, steps)
    const ours = org === undefined ? undefined : partitionOf(org, partitions.length)
    const read = partitions.filter(({ partition }) => ours === undefined || partition === ours)
    steps.say(`verifying ${address}`)
    const report = reportProgress(steps)
    const total = read.reduce((sum, { end }) => sum + end, 0)
    let done = 0
    const chains = new Map<number, VerifiedChain>()
    const firstLater = new Map<number, number>()
    const now = steps.now()
    for (const archived of read) {
      const { partition } = archived
      const found = time === undefined ? undefined : new FirstLater(partition, { time, org, now })
      const onSegment = ({ header, entries }: Segment): void => {
        steps.signal.throwIfAborted()
        found?.add(entries)
        done += header.end - header.from
        report({ done, total })
      }
      const chain = await verifyChain(target, manifest, archived, onSegment, signed.events.partitions[partition])
      chains.set(partition, chain)
      if (found?.offset !== undefined) firstLater.set(partition, found.offset)
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

/** A replay needs no keys, so it goes on without receipts that it cannot read. */
const warnOfRedactions = async (
  manifest: ArchiveManifest,
  org: string | undefined,
  { keysDirectory, say }: Pick<ArchiveSteps, 'keysDirectory' | 'say'>,
): Promise<void> => {
  const directory = keysDirectory()
  if (directory === undefined) return
  try {
    for (const { receipt } of await findRedactions(directory, manifest)) {
      if (receipt.organization !== (org ?? receipt.organization)) continue
      say(`${warnOfRedaction(receipt)}. The sandbox gets them then: drop it, or use a newer archive`)
    }
  } catch (error) {
    say(`warning: it is not known which people of this log were redacted: ${messageOf(error)}`)
  }
}
