/**
 * `commission restore`: makes both topics anew from an archive. In: an archive, and topics that are empty or that an
 * earlier run has begun to restore. Out: every record at its offset with its time, compared record by record.
 * With `--redact`, personal texts of one rep are replaced, and the topics are compared with the redacted log.
 * Promises: no record is written before the whole archive was verified and the topics were compared with it. Before
 * the comparison, only a transaction that an earlier run left open is ended: Kafka appends an abort marker. A run that
 * was stopped or killed continues where it was, and nothing is there twice: `test/flow/archive-killed.long.test.ts`.
 */
import type { Admin } from 'kafkajs'
import {
  appendLog,
  checkTopicConfiguration,
  connectAdmin,
  describeSource,
  fetchEnds,
  type LogReader,
  readLog,
  TIMES_OF_PUBLISHERS,
} from '../../core/log/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { CommandError, type ExitCode, exitCodes, isAbort, messageOf } from '../failures.ts'
import { reportProgress } from '../generations/progress.ts'
import { REDACTED_SHOWN, TIMES_KEPT_WAIT_MS } from '../limits.ts'
import type { ArchiveSteps } from './archive.ts'
import { type ArchiveManifest, archivedStreams } from './manifest.ts'
import { type ArchivedLogs, type Manifests, offsetsIn, sayUnnamed, verifyArchive } from './read-archive.ts'
import { keepTimes, putTimesBack } from './record-times.ts'
import { type Passes, type Redaction, type RedactOptions, redactLogs } from './redaction/redact-log.ts'
import { completeRedaction, findRedactions, warnOfRedaction, writeRedaction } from './redaction/redaction-files.ts'
import {
  appendFrom,
  compareWithArchive,
  DiffersFromArchive,
  LongerThanArchive,
  type PartitionRestore,
} from './restore-partition.ts'
import { batchRecordsAt, createThrottle, fetchBytesAt, type MaxRate } from './throttle.ts'
import { readSignedManifests } from './verify.ts'

export type RestoreOptions = {
  readonly from: string
  /** Public keys, as texts: one of them must have signed. */
  readonly keys?: readonly string[] | undefined
  /** Restores the log without the texts of a rep that were published in the open. */
  readonly redact?: RedactOptions | undefined
  readonly maxRate: MaxRate
  readonly json: boolean
}
export type RestoreSteps = Pick<
  ArchiveSteps,
  'out' | 'say' | 'draw' | 'elapsed' | 'sleep' | 'signal' | 'kafka' | 'topics' | 'openCluster' | 'openTarget'
> & {
  readonly now: () => number
  /** SEAL_KEYS_DIR, for the receipt of a redaction. */
  readonly keysDirectory: () => string | undefined
}

/**
 * @throws ArchiveDamaged; EvidenceDiffers; CommandError for a topic that is not empty and not a part of this archive
 */
export const restore = async (options: RestoreOptions, steps: RestoreSteps): Promise<ExitCode> => {
  try {
    return await restoreTopics(options, steps)
  } catch (error) {
    if (!steps.signal.aborted) throw error
    if (!isAbort(error, steps.signal)) steps.say(messageOf(error))
    steps.say('stopped; the same command continues')
    return exitCodes.failed
  }
}

const restoreTopics = async (
  { from, keys, redact, maxRate, json }: RestoreOptions,
  steps: RestoreSteps,
): Promise<ExitCode> => {
  const { say, out, signal, topics } = steps
  const keysDirectory = steps.keysDirectory()
  if (redact && keysDirectory === undefined) {
    throw new CommandError('SEAL_KEYS_DIR is not set: the receipt of the redaction is written there')
  }
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(steps.kafka, stack)
  const target = await steps.openTarget(from)
  say(`verifying ${from}`)
  const verified = await verifyArchive(
    target,
    {
      report: reportProgress(steps, maxRate),
      throttle: createThrottle(maxRate, steps),
      onUnnamed: segment => say(sayUnnamed(target.name, segment)),
    },
    signal,
    await readSignedManifests(target, keys, say),
  )
  const { manifests } = verified
  const total = offsetsIn(manifests)
  if (keysDirectory !== undefined) await checkRedactions(keysDirectory, manifests, redact, say)

  const counted = countOffsets(total, maxRate, steps)
  const redaction = redact && (await redactTopics(verified, redact, counted, steps))
  if (redaction) counted.startAgain()
  const parts: PartitionRestore[] = []
  for (const stream of archivedStreams) {
    const topic = topics[stream]
    await assertFits(admin, topic, manifests[stream])
    // A restore that was stopped has left the times of the publishers. In the end they are Kafka's again.
    const warnings = (await checkTopicConfiguration(admin, topic)).filter(one => one !== TIMES_OF_PUBLISHERS)
    for (const warning of warnings) say(`${topic}: ${warning}`)
    const archived = verified.archived(stream)
    const log = redaction?.reader(stream, archived) ?? archived
    parts.push(...(await openParts(stream, manifests[stream], log, { maxRate, onDone: counted.onDone }, steps, stack)))
  }
  // Each partition is compared with the archive before the first record is appended anywhere.
  say('comparing what is in the topics')
  const begun = await Promise.all(
    parts.map(async part => compareWithArchive(part, await stableEndOf(part)).catch(withAdvice)),
  )
  if (redaction && redact && keysDirectory) await writeRedaction(redaction, redact, keysDirectory, steps.now())
  if (begun.some((position, index) => position < (parts[index]?.end ?? 0))) {
    say('appending')
    try {
      for (const stream of archivedStreams) await keepTimes(admin, topics[stream])
      // A broker uses the new setting shortly after it shows it. An append that is too early is noticed and refused.
      await steps.sleep(TIMES_KEPT_WAIT_MS)
      await appendAll(parts, begun, signal)
    } catch (error) {
      await putAllBack(admin, topics).catch((failed: unknown) => say(`${SETTINGS_LEFT}: ${messageOf(failed)}`))
      throw error
    }
  }
  // Also what a run that was killed has left.
  await putAllBack(admin, topics)
  say('comparing every record')
  counted.startAgain()
  for (const part of parts) {
    await compareWithArchive(part, part.end)
  }
  if (redaction && keysDirectory) {
    const { topic_id } = await describeSource(admin, topics.events)
    await completeRedaction(redaction, keysDirectory, steps.now(), topic_id)
  }
  const records = archivedStreams
    .flatMap(stream => manifests[stream].partitions)
    .reduce((sum, archived) => sum + archived.records, 0)
  const redacted = redaction?.list.changes.length
  if (json) {
    const names = Object.values(topics)
    out(`${JSON.stringify({ from, topics: names, records, offsets: total, ...(redacted && { redacted }) })}\n`)
  }
  if (redact) say(`redacted records of ${redact.rep}: ${redacted}; ${redact.changes} has the list`)
  const none = redact ? '' : '; no text was redacted'
  say(`restored and compared: ${records} records, ${total} offsets, in ${Object.values(topics).join(' and ')}${none}`)
  return exitCodes.done
}

const SETTINGS_LEFT =
  'the settings message.timestamp.* of the topics could not be put back; the same command does it when it continues'

const putAllBack = async (admin: Admin, topics: RestoreSteps['topics']): Promise<void> => {
  for (const stream of archivedStreams) await putTimesBack(admin, topics[stream])
}

/**
 * Appends all partitions at once. After the first failure no other partition begins another batch, and this ends when
 * none is under way: a batch that is appended later would get the time of the broker.
 */
const appendAll = async (
  parts: readonly PartitionRestore[],
  begun: readonly number[],
  stopped: AbortSignal,
): Promise<void> => {
  const failed = new AbortController()
  const signal = AbortSignal.any([stopped, failed.signal])
  const appending = parts.map((part, index) =>
    appendFrom({ ...part, signal }, begun[index] ?? 0).catch((error: unknown) => {
      failed.abort(error)
      throw error
    }),
  )
  await Promise.allSettled(appending)
  await Promise.all(appending)
}

const HAS_MORE =
  'Do not delete the topic: it may have records that this archive does not have. To restore this archive, choose other topics'

/** Nothing is appended to a topic that has something else. An archive that cannot be read says nothing of the topic. */
const withAdvice = (error: unknown): never => {
  if (error instanceof LongerThanArchive) throw new CommandError(`${error.message}. ${HAS_MORE}. Nothing is changed`)
  if (!(error instanceof DiffersFromArchive)) throw error
  throw new CommandError(`${error.message}: delete and create the topics first. Nothing is changed`)
}

/** @throws CommandError if the redaction of another rep was begun: its texts would be in the topics again */
const checkRedactions = async (
  keysDirectory: string,
  { events }: Manifests,
  redact: RedactOptions | undefined,
  say: RestoreSteps['say'],
): Promise<void> => {
  for (const { receipt, file } of await findRedactions(keysDirectory, events)) {
    const { organization: org, rep, state } = receipt
    if (redact?.org === org && redact.rep === rep) continue
    if (state === 'begun') {
      const what = `the redaction of ${rep} of ${org} was begun and not ended: this would restore its texts`
      const next = `Repeat it with --redact ${org} ${rep} --changes FILE. To give it up, remove ${file}`
      throw new CommandError(`${what}. ${next}. Nothing is changed`)
    }
    say(`${warnOfRedaction(receipt)}. The texts are restored then`)
  }
}

const redactTopics = async (
  verified: ArchivedLogs,
  redact: RedactOptions,
  passes: Passes,
  { say, signal }: RestoreSteps,
): Promise<Redaction> => {
  say(`looking for texts of ${redact.rep} of ${redact.org}`)
  const redaction = await redactLogs(verified, redact, passes, signal)
  const { changes, unclear, mentions, unsearched } = redaction.list
  say(`${changes.length} ${changes.length === 1 ? 'record has' : 'records have'} texts in the open`)
  if (mentions.length > 0) {
    const what = `records that have a name or e-mail address of ${redact.rep} in another place, which stays`
    say(`warning: ${what}: ${shown(mentions)}`)
  }
  if (unsearched > 0) {
    const what = `${unsearched} of the names and e-mail addresses of ${redact.rep}, of one character`
    say(`warning: no other place was searched for ${what}`)
  }
  if (unclear.length === 0) return redaction
  const what = `records that nobody can read, and that may concern ${redact.rep}: ${shown(unclear)}`
  if (!redact.keepUnclear) {
    const next =
      'Look at them (npx commission parked show POSITION). Replace them with --also POSITION, or leave the others with --keep-unclear'
    throw new CommandError(`${what}. ${next}. Nothing is changed`)
  }
  say(`warning: ${what}: they stay`)
  return redaction
}

/** The first of some positions, and how many more there are. */
const shown = (positions: readonly string[]): string => {
  const more = positions.length - REDACTED_SHOWN
  return `${positions.slice(0, REDACTED_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Shows the progress of one pass over all offsets, and keeps to the limit of the rate. */
const countOffsets = (total: number, maxRate: MaxRate, steps: RestoreSteps) => {
  const throttle = createThrottle(maxRate, steps)
  let done = 0
  let report = reportProgress(steps, maxRate)
  return {
    onDone: async (offsets: number): Promise<void> => {
      done += offsets
      report({ done, total })
      await throttle(offsets)
    },
    startAgain: (): void => {
      done = 0
      report = reportProgress(steps, maxRate)
    },
  }
}

/** @throws CommandError for another number of partitions; StopError for a topic that lost its beginning */
const assertFits = async (admin: Admin, topic: string, { partitions: archived }: ArchiveManifest): Promise<void> => {
  const { partitions } = await describeSource(admin, topic)
  await fetchEnds(admin, topic)
  if (partitions === archived.length) return
  const expected = `expected ${archived.length} partitions, as in the archive, got ${partitions}`
  throw new CommandError(`${topic}: ${expected}. Nothing is changed`)
}

const openParts = async (
  stream: Stream,
  manifest: ArchiveManifest,
  archived: LogReader,
  { maxRate, onDone }: Pick<RestoreOptions, 'maxRate'> & Pick<PartitionRestore, 'onDone'>,
  { topics, openCluster, signal }: RestoreSteps,
  stack: AsyncDisposableStack,
): Promise<PartitionRestore[]> => {
  const topic = topics[stream]
  const cluster = await openCluster(topic)
  stack.defer(cluster.disconnect)
  const fetchBytes = fetchBytesAt(maxRate, manifest.partitions.length)
  const [log, appender] = [readLog(cluster, topic, fetchBytes), appendLog(cluster, topic)]
  return manifest.partitions.map(({ partition, end }) => {
    return { archived, log, appender, partition, end, batchRecords: batchRecordsAt(maxRate), onDone, signal }
  })
}

/** @throws CommandError if another producer has an open transaction */
const stableEndOf = async ({ appender, log, partition, end: archived }: PartitionRestore): Promise<number> => {
  const { stable, end } = await appender.endOpenTransaction(partition)
  if (stable >= end) return stable
  const what = `partition ${partition} of ${log.topic} has an open transaction of somebody else: stop all publishers`
  if (end > archived) throw new CommandError(`${what}. ${HAS_MORE}`)
  throw new CommandError(`${what}, delete and create the topic, and run the same again`)
}
