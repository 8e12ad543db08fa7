/**
 * `commission archive`: copies both topics into archives, every offset of every partition. In: Kafka, and targets:
 * directories, or addresses in S3. Out: one archive in each target. Promises: reads only up to the last stable offset;
 * a run that was stopped or killed continues where it was; each target is an archive of its own, which no other one
 * delays or damages. Can go wrong: a target fails: the others write what was read, and the run ends with the error.
 */
import kafkajs, { type Kafka } from 'kafkajs'
import {
  type AskedTopic,
  connectAdmin,
  describeSource,
  differingField,
  endsWithWritten,
  type LogCluster,
  type LogPart,
  type LogReader,
  type OpenThen,
  readLog,
  readUntilFound,
  type Source,
} from '../../core/log/index.ts'
import { StopError, Unanswered } from '../../core/runtime/index.ts'
import type { Stream } from '../../schemas/events.ts'
import type { LockSteps } from '../export/lock.ts'
import { CommandError, type ExitCode, exitCodes, isAbort } from '../failures.ts'
import { reportProgress } from '../generations/progress.ts'
import { ARCHIVE_FLUSH_MS, ARCHIVE_NEWS_MS, ARCHIVE_OPEN_MS, ARCHIVE_POLL_MS, OPEN_LOOKS } from '../limits.ts'
import { readSigningKey } from '../signing/signing-key.ts'
import { timeOf } from '../terminal.ts'
import { comparesWithLog } from './compare-with-log.ts'
import { archivedStreams } from './manifest.ts'
import type { OpenTarget } from './open-target.ts'
import { sayIfOpen, sayOpen } from './open-transactions.ts'
import { readManifests } from './read-archive.ts'
import { signingTarget, signStored } from './sign-target.ts'
import { createThrottle, fetchBytesAt, type MaxRate, type Throttle } from './throttle.ts'
import { namesUndecodable, openTopicArchive, type TopicArchive } from './topic-archive.ts'

export type ArchiveOptions = {
  readonly to: readonly string[]
  /** Goes on until it is stopped. */
  readonly follow: boolean
  /** Of all targets together. */
  readonly maxRate: MaxRate
  /** File of the key that signs the manifests. */
  readonly sign?: string | undefined
  readonly json: boolean
}
export type ArchiveSteps = LockSteps & {
  readonly out: (text: string) => void
  readonly draw: ((line: string) => void) | undefined
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  readonly signal: AbortSignal
  readonly kafka: Kafka
  readonly topics: Readonly<Record<Stream, string>>
  readonly openCluster: (topic: string) => Promise<LogCluster>
  readonly openTarget: OpenTarget
}

/** A topic, and its archive in one target. */
type TopicCopy = readonly [log: Log, archive: TopicArchive]
type Log = {
  readonly stream: Stream
  readonly source: Source
  readonly partitions: number
  readonly reader: LogReader
  readonly ends: readonly number[]
  readonly asked: AskedTopic
  readonly hidden: OpenThen
  /** The topic as Kafka describes it now. */
  readonly describe: () => Promise<Source>
}

export const archive = async (
  { to, follow, maxRate, sign, json }: ArchiveOptions,
  steps: ArchiveSteps,
): Promise<ExitCode> => {
  await using stack = new AsyncDisposableStack()
  const key = await readSigningKey(sign)
  /** Whether the topics were verified, and every stored manifest was signed. */
  let isCompared = false
  const targets = (await Promise.all(to.map(steps.openTarget))).map(target =>
    signingTarget(target, key, () => isCompared),
  )
  const logs = await openLogs(steps, maxRate, follow ? 1 : OPEN_LOOKS, stack)
  const copies: TopicCopy[][] = []
  for (const target of targets) {
    const lock = await target.lock(steps)
    stack.defer(lock.release)
    const copy: TopicCopy[] = []
    for (const log of logs) {
      const { cluster_id, topic, topic_id } = log.source
      const source = { stream: log.stream, cluster_id, topic }
      copy.push([log, await openTopicArchive(target, source, log.partitions, lock.assertHeld, topic_id)])
    }
    copies.push(copy)
  }
  // Of all targets, before anything is archived in any of them.
  await verifyTopics(copies.flat(), steps).catch(error => {
    throw withEnds(error, to, copies)
  })
  // A stream that somebody moved here from another archive: `restore` would refuse what is added to it.
  for (const target of targets) await readManifests(target)
  const throttle = createThrottle(maxRate, steps)
  const compare = comparesWithLog({
    readerOf: stream => logs.find(log => log.stream === stream)?.reader,
    throttle,
    ...steps,
  })
  for (const [index, target] of steps.signal.aborted ? [] : targets.entries()) {
    const manifests = (copies[index] ?? []).map(([, topic]) => topic.manifest())
    await signStored(target, key, manifests, { compare, say: steps.say }).catch(error => {
      if (!isAbort(error, steps.signal)) throw withEnds(error, to, copies)
    })
  }
  isCompared = !steps.signal.aborted
  const total = sumOf(logs.map(({ ends }) => sumOf(ends)))
  const report = reportProgress(steps, maxRate)
  let hasCaughtUp = false
  // Of the target that is behind.
  const doneOf = (): number => Math.min(...copies.map(copy => sumOf(copy.map(([log, topic]) => reachedOf(log, topic)))))
  const onProgress = (): void => {
    if (hasCaughtUp) return
    const done = doneOf()
    report({ done, total })
    hasCaughtUp = follow && done >= total
  }
  // If one target fails, the others write what was read, and end.
  const failure = new AbortController()
  const signal = AbortSignal.any([steps.signal, failure.signal])
  const onFirst = sayOpen(
    logs.map(({ asked }) => asked),
    ARCHIVE_OPEN_MS,
    steps,
  )
  const copying = copies.map((copy, index) => {
    const sayNew = sayWhatIsNew(to[index] ?? '', copy, steps)
    const onRound = async (): Promise<void> => {
      if (!follow) return
      sayNew()
      if (index === 0) await onFirst()
    }
    const hooks = { onProgress, onRound, throttle }
    return copyLogs(copy, follow, hooks, { ...steps, signal }).catch((error: unknown) => {
      failure.abort(error)
      throw error
    })
  })
  await Promise.allSettled(copying)
  await Promise.all(copying).catch(() => {
    throw withEnds(failure.signal.reason, to, copies)
  })
  const stopped = !isCompared || (steps.signal.aborted && doneOf() < total)
  for (const [index, copy] of copies.entries()) {
    const manifests = copy.map(([, topic]) => topic.manifest())
    const records = manifests.flatMap(({ partitions }) => partitions).reduce((sum, part) => sum + part.records, 0)
    const offsets = manifests.flatMap(({ partitions }) => partitions).reduce((sum, part) => sum + part.end, 0)
    const address = to[index]
    if (json) steps.out(`${JSON.stringify({ directory: address, records, offsets, topics: manifests })}\n`)
    steps.say(`${address}: ${records} records, ${offsets} offsets${stopped ? '; stopped' : ''}`)
  }
  if (stopped) steps.say('the same command continues')
  const isOpen = !follow && sayIfOpen(logs, steps.say)
  return stopped || isOpen ? exitCodes.failed : exitCodes.done
}

const openLogs = async (
  { kafka, topics, openCluster, sleep, signal }: ArchiveSteps,
  maxRate: MaxRate,
  looks: number,
  stack: AsyncDisposableStack,
): Promise<Log[]> => {
  const admin = await connectAdmin(kafka, stack)
  const logs: Log[] = []
  for (const stream of archivedStreams) {
    const topic = topics[stream]
    const describe = (): Promise<Source> => describeSource(admin, topic)
    const source = await describe()
    const cluster = await openCluster(topic)
    stack.defer(cluster.disconnect)
    const { partitions } = source
    const asked = { cluster, admin, topic, partitions }
    const pause = async (): Promise<boolean> => {
      if (!signal.aborted) await sleep(ARCHIVE_POLL_MS)
      return !signal.aborted
    }
    const found = await endsWithWritten(asked, looks, pause)
    const reader = readLog(cluster, topic, fetchBytesAt(maxRate), undefined, sleep)
    logs.push({ stream, source, partitions, reader, ...found, asked, describe })
  }
  return logs
}

/** Says now and then that a target has more records. */
const sayWhatIsNew = (address: string, copy: readonly TopicCopy[], { say, elapsed }: ArchiveSteps) => {
  let said = recordsOf(copy)
  let saidAt = Number.NEGATIVE_INFINITY
  return (): void => {
    const records = recordsOf(copy)
    const end = endOf(copy)
    if (records === said || end === undefined || elapsed() - saidAt < ARCHIVE_NEWS_MS) return
    say(`${address}: archived up to ${end}, ${records - said} records more`)
    said = records
    saidAt = elapsed()
  }
}

/** An error of Kafka, with the ends of the archives: records after them are in no archive. */
const withEnds = (error: unknown, to: readonly string[], copies: readonly (readonly TopicCopy[])[]): unknown => {
  const isOfKafka = error instanceof Unanswered && error.of === 'kafka'
  if (!isOfKafka && !(error instanceof kafkajs.KafkaJSError)) return error
  const ends = copies.map((copy, index) => `the archive in ${to[index]} ends at ${endOf(copy) ?? NO_END}`)
  const why = isOfKafka ? error.message : `Kafka does not answer (${error.name})`
  const what = [why, ...ends, 'the same command continues']
  return new CommandError(what.join('; '))
}

const recordsOf = (copy: readonly TopicCopy[]): number =>
  sumOf(copy.flatMap(([, topic]) => topic.manifest().partitions.map(({ records }) => records)))

/**
 * The time up to which a target has everything: of the last record in the partition that is furthest behind, or of the
 * latest record if none is behind. Undefined if it has nothing of a partition.
 */
const endOf = (copy: readonly TopicCopy[]): string | undefined => {
  const all = copy.flatMap(([, topic]) => topic.reached())
  const behind = all.filter(({ isBehind }) => isBehind)
  if (behind.length === 0) {
    const times = all.flatMap(({ time }) => time ?? [])
    return times.length === 0 ? undefined : timeOf(Math.max(...times))
  }
  const times = behind.flatMap(({ time }) => time ?? [])
  return times.length < behind.length ? undefined : timeOf(Math.min(...times))
}

const NO_END = 'its beginning: it has no record of a partition'

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)
const reachedOf = ({ ends }: Log, topic: TopicArchive): number =>
  sumOf(topic.positions().map((position, partition) => Math.min(position, ends[partition] ?? 0)))

type Waits = Pick<ArchiveSteps, 'sleep' | 'signal'>

/**
 * Compares the last archived entry of every partition with its log, then notes the topic ids.
 * @throws StopError if a topic is not the archived one
 */
const verifyTopics = async (all: readonly TopicCopy[], waits: Waits): Promise<void> => {
  for (const one of all) await verifyRecords(one, waits)
  // After the records, which were of a topic with this id: an id never comes back.
  for (const [log] of all) await verifyId(log)
  for (const [{ source, stream }, topic] of waits.signal.aborted ? [] : all) {
    const other = all.find(([log]) => log.stream !== stream)?.[0].source
    if (other === undefined) throw new Error('an archive of one topic')
    const { topic: name, topic_id } = other
    await topic.noteTopics(source.topic_id, { topic: name, ...(topic_id !== undefined && { topic_id }) })
  }
}

const verifyRecords = async ([{ reader }, topic]: TopicCopy, waits: Waits): Promise<void> => {
  for (const [partition, position] of topic.positions().entries()) {
    if (position === 0 || waits.signal.aborted) continue
    const { entries } = await readLast(reader, partition, topic.readFrom(partition), waits)
    topic.compareLast(partition, entries[0])
  }
}

const verifyId = async ({ source, describe }: Log): Promise<void> => {
  const now = await describe()
  const field = differingField(source, now)
  if (field === undefined) return
  const { topic } = source
  const what = `${topic} was made anew meanwhile: ${field}: expected ${source[field]}, got ${now[field]}`
  throw new StopError('source_changed', what, { topic })
}

/**
 * Everything that was read before is of the archived topic. Without topic ids, its last records tell.
 * @throws StopError
 */
const verifyTopic = async (copy: TopicCopy, waits: Waits): Promise<void> => {
  const [log] = copy
  await verifyId(log)
  if (log.source.topic_id === undefined) await verifyRecords(copy, waits)
}

/**
 * Reads on from the last archived entry.
 * HAZARD: a fetch brings the whole batch of that entry, and nothing else if the batch is as large as a fetch.
 */
const readNext = async (reader: LogReader, partition: number, topic: TopicArchive, waits: Waits): Promise<LogPart> => {
  const from = topic.readFrom(partition)
  const isArchived = (topic.positions()[partition] ?? 0) > 0
  const { entries, end } = await (isArchived ? readLast(reader, partition, from, waits) : reader.read(partition, from))
  const next = from + entries.length
  if (entries.length !== 1 || next >= end) return { entries, end }
  const more = await reader.read(partition, next)
  return { entries: [...entries, ...more.entries], end: more.end }
}

/** Reads the last archived entry of a partition, and what its fetch brings with it. */
const readLast = (reader: LogReader, partition: number, offset: number, { sleep, signal }: Waits): Promise<LogPart> =>
  readUntilFound(reader, partition, offset, async () => {
    await sleep(ARCHIVE_POLL_MS)
    signal.throwIfAborted()
  })

/** @throws CommandError that names the first partition of which something is not archived */
const assertReached = (copy: readonly TopicCopy[], { aborted }: AbortSignal): void => {
  for (const [{ ends, reader }, topic] of aborted ? [] : copy) {
    const partition = topic.positions().findIndex((position, index) => position < (ends[index] ?? 0))
    if (partition === -1) continue
    const what = `partition ${partition} of ${reader.topic} ends at offset ${ends[partition]}`
    throw new CommandError(`${what}, and is archived to ${topic.positions()[partition]}: run the same again`)
  }
}

type CopyHooks = {
  readonly onProgress: () => void
  /** Called after each look at all partitions. */
  readonly onRound: () => Promise<void>
  readonly throttle: Throttle
}

/** Copies the logs into one target. Ends at the ends of the logs; with `follow` only at the signal. */
const copyLogs = async (
  copy: readonly TopicCopy[],
  follow: boolean,
  { onProgress, onRound, throttle }: CopyHooks,
  { elapsed, ...waits }: ArchiveSteps,
): Promise<void> => {
  const { signal, sleep } = waits
  const nameUndecodable = namesUndecodable({ say: waits.say, elapsed })
  // Segments are written while the next entries are read. At most one write runs; the next `cut` waits for it.
  let writing: Promise<void> = Promise.resolve()
  const cut = async (olderThan: number, isVerified = false): Promise<void> => {
    await writing
    // Once more: the broker that told the id may have been behind the one that was read.
    for (const [log, topic] of copy) if (!isVerified && topic.isDue(olderThan)) await verifyId(log)
    writing = (async () => {
      for (const [, topic] of copy) await topic.cut(olderThan)
    })()
    // Awaited before the next segments: the error is thrown there.
    writing.catch(() => undefined)
  }
  const copyAll = async (): Promise<void> => {
    while (!signal.aborted) {
      let moved = false
      for (const one of copy) {
        const [log, topic] = one
        for (let partition = 0; partition < log.partitions && !signal.aborted; partition++) {
          const position = topic.positions()[partition] ?? 0
          const known = log.ends[partition] ?? 0
          if (!follow && position >= known) {
            topic.see(partition, known)
            continue
          }
          const { entries, end } = await readNext(log.reader, partition, topic, waits).catch(unlessStopped)
          if (signal.aborted) break
          // Before the entries count: a topic that was made anew may have some in a partition that was empty.
          if ((entries.at(-1)?.offset ?? 0) >= position) await verifyTopic(one, waits)
          for (const entry of entries) if (entry.offset >= position) nameUndecodable(entry, partition, topic)
          topic.add(partition, entries, elapsed())
          topic.see(partition, end)
          moved ||= (topic.positions()[partition] ?? 0) > position
          await cut(follow ? elapsed() - ARCHIVE_FLUSH_MS : Number.NEGATIVE_INFINITY)
          onProgress()
          await throttle(entries.length)
        }
      }
      await onRound()
      if (!follow && !moved) return assertReached(copy, signal)
      if (follow && !moved) await sleep(ARCHIVE_POLL_MS)
    }
  }
  const finish = async (): Promise<void> => {
    // All entries were verified when they were read. Kafka may be gone now.
    await cut(Number.POSITIVE_INFINITY, true)
    await writing
  }
  try {
    await copyAll()
  } catch (error) {
    // The log may be gone now, so the entries that were read of it are written first.
    await finish().catch(() => undefined)
    throw error
  }
  await finish()

  function unlessStopped(error: unknown): LogPart {
    if (!signal.aborted) throw error
    return { entries: [], end: 0 }
  }
}
