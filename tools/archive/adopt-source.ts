/**
 * `commission projection adopt --archive DIR`: makes another cluster the source of a projection, after a restore or for
 * a mirror with equal offsets.
 *
 * In: a projection, an archive of the log that it was made from, and topics on another cluster. Out: the projection
 *   names the other cluster. Documents, positions and ids stay as they are.
 * Promises: nothing is changed before all of this is checked: the archive is whole, and is of the cluster, topics and
 *   partitions that the projection names; it reaches each position, and has there the record that the projection read
 *   last; the topics have every record of the archive at its offset with its time, and no more. With the list of
 *   a redaction, they have the redacted records instead, the positions get their hashes, and parked documents of API
 *   keys get these records. A projector that still runs on the old cluster stops at its next position: each position
 *   changes with the source.
 *   A generation that has this source already is compared with the ends of the topics and with its last record.
 *   Documents at and after the positions are removed, because the topics may have other records there (`leftovers/`).
 * Can go wrong: the first difference is named with its partition and offset. An interrupted run can be repeated.
 */
import type { Admin } from 'kafkajs'
import {
  checkTopicConfiguration,
  connectAdmin,
  describeSource,
  differingField,
  endOfPartition,
  fetchEnds,
  type LogReader,
  readLog,
  type Source,
} from '../../core/log/index.ts'
import { type DocumentAnswer, formerTopicsIn } from '../../core/store/index.ts'
import type { Stream } from '../../schemas/events.ts'
import {
  API_KEYS_GENERATION,
  type GenerationDocument,
  generationId,
  type PositionDocument,
  positionId,
} from '../../schemas/stored/documents.ts'
import type { KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { assertArchived, assertInTopic } from '../generations/compare-positions.ts'
import { waitUntilNobodyWrites } from '../generations/drop.ts'
import {
  expectStored,
  forgetPastPositions,
  namesOf,
  readAll,
  replaceUnchanged,
  sayWaits,
  skipBadSpare,
  writableOf,
} from '../generations/generations.ts'
import { reportProgress } from '../generations/progress.ts'
import { hasLeftovers, type Removal, removeLeftovers } from '../leftovers/remove-leftovers.ts'
import type { ArchiveSteps } from './archive.ts'
import { archivedStreams } from './manifest.ts'
import { type Manifests, offsetsIn, verifyArchive } from './read-archive.ts'
import type { Redaction } from './redaction/redact-log.ts'
import { redactParkedKeys } from './redaction/redact-parked.ts'
import { readRedaction } from './redaction/redaction-files.ts'
import { compareWithArchive, DiffersFromArchive } from './restore-partition.ts'
import { readSignedManifests } from './verify.ts'

export type AdoptSourceOptions = {
  readonly archive: string
  /** Public keys, as texts: one of them must have signed. */
  readonly keys?: readonly string[] | undefined
  /** The list of `restore --redact`: the topics have the redacted log. */
  readonly redacted?: string | undefined
  readonly json: boolean
}
export type AdoptSourceSteps = KafkaContext &
  Pick<ArchiveSteps, 'draw' | 'elapsed' | 'signal' | 'openCluster' | 'openTarget'>

type ControlSteps = Pick<KafkaContext, 'send' | 'prefix' | 'say'>

type Sources = Readonly<Record<Stream, Source>>
/** A generation that names the old source, with its positions in order. Each has the version that was read. */
type Adopted = {
  readonly stream: Stream
  readonly generation: DocumentAnswer<GenerationDocument>
  readonly positions: readonly DocumentAnswer<PositionDocument>[]
}

/** @throws ArchiveDamaged; EvidenceDiffers; CommandError that names the first difference */
export const adoptSource = async (
  { archive, keys, redacted, json }: AdoptSourceOptions,
  steps: AdoptSourceSteps,
  groupId: string,
): Promise<ExitCode> => {
  const { say, out, topics, signal } = steps
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(steps.kafka, stack)
  const sources: Sources = {
    events: await describeSource(admin, topics.events),
    'api-keys': await describeSource(admin, topics['api-keys']),
  }
  for (const { topic } of Object.values(sources)) {
    for (const warning of await checkTopicConfiguration(admin, topic)) say(`${topic}: ${warning}`)
  }
  const target = await steps.openTarget(archive)
  const generations = await readAll(steps)
  const all = await writableOf([API_KEYS_GENERATION, ...namesOf(generations)], generations.live, steps)
  const vouched = await readSignedManifests(target, keys, say)
  const isRedacted = redacted !== undefined
  const { names, unchanged } = await divideNames(all, generations.live, vouched.manifests, sources, isRedacted, steps)
  const stay = await checkUnchanged(unchanged, generations.live, sources, admin, steps, stack)
  const changed: string[] = []
  if (names.length > 0) {
    // They are changed last, and nothing may be changed before a refusal.
    await cleanUnchanged('wait', stay, generations.live, sources, admin, steps, groupId)
    say(`verifying ${archive}`)
    const verified = await verifyArchive(target, { report: reportProgress(steps) }, signal, vouched)
    const { manifests, archived } = verified
    const redaction = redacted === undefined ? undefined : await readRedaction(redacted, verified, signal)
    // After what can be refused at once, and before what projectors change.
    await waitUntilProjectorsStopped(names, sources, admin, steps, groupId)
    const logs: Logs = { archived, redaction }
    const checked = await readAllAdopted(names, generations.live, sources, logs, steps)
    await compareTopics(checked, logs, manifests, admin, steps, stack)
    const adopted = await removeAllLeftovers(checked, generations.live, steps)
    // After a signal no source is changed.
    signal.throwIfAborted()
    if (redaction !== undefined) await redactParkedKeys(redaction, archived('api-keys'), steps)
    // The events last: commands look at the source of the live generation.
    for (const one of adopted)
      changed.push(await changeSource(one, sources[one.stream], manifests[one.stream], redaction, steps))
  }
  // After all checks: a refusal has changed nothing.
  await cleanUnchanged('remove', stay, generations.live, sources, admin, steps, groupId)
  for (const { topic } of isRedacted ? formerTopicsIn(generations) : []) {
    say(`warning: ${topic}, a topic before grow, has the texts if it is still there: delete it, and its archives`)
  }
  if (changed.length === 0) say('the projection has this source already: nothing is changed')
  await sayWaits(generations.live, await fetchEnds(admin, topics.events), steps)
  if (json) out(`${JSON.stringify({ adopted: changed, sources })}\n`)
  return exitCodes.done
}

/** The archived logs, and the redaction that the topics have. */
type Logs = { readonly archived: (stream: Stream) => LogReader; readonly redaction: Redaction | undefined }

/** The hash that a record has in the redacted log; undefined if it is as before. */
const redactedHash = ({ redaction }: Pick<Logs, 'redaction'>, stream: Stream, partition: number, offset: number) =>
  redaction?.hashOf(stream, partition, offset)

const waitUntilProjectorsStopped = async (
  names: readonly string[],
  sources: Sources,
  admin: Admin,
  steps: AdoptSourceSteps,
  groupId: string,
): Promise<void> => {
  const wait = (name: string): Promise<void> => {
    const group = `${groupId}-${name}`
    return waitUntilNobodyWrites(name, sources[streamOf(name)].partitions, group, admin, steps, 'adopt again')
  }
  await Promise.all(names.map(wait))
}

/** Reads the sources and positions of the generations. */
const readAllAdopted = async (
  names: readonly string[],
  live: string,
  sources: Sources,
  { archived, redaction }: Logs,
  steps: AdoptSourceSteps,
): Promise<Adopted[]> => {
  const adopted: Adopted[] = []
  for (const name of names) {
    const stream = streamOf(name)
    const check = async (): Promise<Adopted> => {
      const found = await readAdopted(name, sources[stream].partitions, steps)
      await assertArchived(found, archived(stream), (partition, offset) =>
        redactedHash({ redaction }, stream, partition, offset),
      )
      return found
    }
    const found = await skipBadSpare(name, live, check, steps)
    if (found !== undefined) adopted.push(found)
  }
  return adopted
}

/** Removes the documents at and after the positions: the archive may have other records there, or none. */
const removeAllLeftovers = async (
  checked: readonly Adopted[],
  live: string,
  steps: AdoptSourceSteps,
): Promise<Adopted[]> => {
  const adopted: Adopted[] = []
  for (const one of checked) {
    const { body } = one.generation._source
    const name = body.generation
    const partitions = one.positions.length
    const remove = async (): Promise<Adopted> => {
      if (!(await removeLeftovers({ ...body, partitions, from }, steps))) return one
      const now = await readAdopted(name, partitions, steps)
      const isAsChecked = now.positions.every(
        ({ _source }, partition) => _source.body.position === one.positions[partition]?._source.body.position,
      )
      if (isAsChecked) return now
      throw new CommandError(`positions of ${name} were changed meanwhile: stop all projectors, and run the same again`)
    }
    const found = await skipBadSpare(name, live, remove, steps)
    if (found !== undefined) adopted.push(found)
  }
  return adopted
}

const from: Removal['from'] = async positions => positions.map(({ position }) => position)

/** @returns the generations that have the source already, and with which a projector is able to go on */
const checkUnchanged = async (
  names: readonly string[],
  live: string,
  sources: Sources,
  admin: Admin,
  steps: AdoptSourceSteps,
  stack: AsyncDisposableStack,
): Promise<readonly string[]> => {
  const checked: string[] = []
  for (const name of names) {
    const { topic, partitions } = sources[streamOf(name)]
    const cluster = await steps.openCluster(topic)
    stack.defer(cluster.disconnect)
    const check = async (): Promise<void> => {
      // Before the ends, which may grow.
      const found = await readAdopted(name, partitions, steps)
      await assertInTopic(found, readLog(cluster, topic), await fetchEnds(admin, topic), steps.sleep)
      checked.push(name)
    }
    await skipBadSpare(name, live, check, steps)
  }
  return checked
}

/**
 * Waits until nobody writes the generations that have leftovers, or removes these.
 * @throws CommandError if somebody writes one of them
 */
const cleanUnchanged = async (
  act: 'wait' | 'remove',
  names: readonly string[],
  live: string,
  sources: Sources,
  admin: Admin,
  steps: AdoptSourceSteps,
  groupId: string,
): Promise<void> => {
  for (const name of names) {
    const { partitions } = sources[streamOf(name)]
    const waitUntilNobodyWrites = () => waitUntilProjectorsStopped([name], sources, admin, steps, groupId)
    const clean = async (): Promise<void> => {
      const { body } = (await readAdopted(name, partitions, steps)).generation._source
      const removal = { ...body, partitions, from, keepsWritten: true, waitUntilNobodyWrites } as const
      if (act === 'remove') await removeLeftovers(removal, steps)
      else if (await hasLeftovers(removal, steps)) await waitUntilNobodyWrites()
    }
    await skipBadSpare(name, live, clean, steps)
  }
}

/** Compares each topic that a generation will have as its source with the archive. */
const compareTopics = async (
  adopted: readonly Adopted[],
  { archived: archivedOf, redaction }: Logs,
  manifests: Manifests,
  admin: Admin,
  steps: AdoptSourceSteps,
  stack: AsyncDisposableStack,
): Promise<void> => {
  const { say, topics, openCluster, signal } = steps
  if (adopted.length > 0) say('comparing every record')
  const report = reportProgress(steps)
  const total = offsetsIn(manifests)
  let done = 0
  const onDone = async (offsets: number): Promise<void> => {
    done += offsets
    report({ done, total })
  }
  for (const stream of archivedStreams.filter(name => adopted.some(one => one.stream === name))) {
    const topic = topics[stream]
    const cluster = await openCluster(topic)
    stack.defer(cluster.disconnect)
    const unchanged = archivedOf(stream)
    const archived = redaction?.reader(stream, unchanged) ?? unchanged
    const log = readLog(cluster, topic)
    const ends = await fetchEnds(admin, topic)
    for (const { partition, end } of manifests[stream].partitions) {
      const upTo = endOfPartition(partition, ends)
      const compared = compareWithArchive({ archived, log, partition, end, onDone, signal }, upTo)
      const reached = await compared.catch(error => {
        if (redaction !== undefined || !(error instanceof DiffersFromArchive)) throw error
        throw new CommandError(`${error.message}: was the log redacted? Add --redacted FILE. Nothing is changed`)
      })
      if (reached === end) continue
      const what = `partition ${partition} of ${topic} ends at offset ${reached}, the archive at ${end}`
      throw new CommandError(`${what}. Nothing is changed`)
    }
  }
}

const streamOf = (generation: string): Stream => (generation === API_KEYS_GENERATION ? 'api-keys' : 'events')

/**
 * Divides the generations: `names` have another source; with a redaction, also those of the archived topics.
 * @throws CommandError unless the archive is of that source
 */
export const divideNames = async (
  all: readonly string[],
  live: string,
  manifests: Manifests,
  sources: Sources,
  isRedacted: boolean,
  steps: ControlSteps,
): Promise<{ readonly names: readonly string[]; readonly unchanged: readonly string[] }> => {
  const isToAdopt = async (name: string): Promise<boolean> => {
    const { body } = (await expectStored<GenerationDocument>(generationId(name), steps))._source
    const [wanted, archived] = [sources[streamOf(name)], manifests[streamOf(name)]]
    if (body.topic !== wanted.topic) {
      const what = `${name} was made from topic ${body.topic}, not ${wanted.topic}`
      throw new CommandError(`${what}: parked records have the name of their topic. Use a topic of the same name`)
    }
    assertEqual(`partitions of ${wanted.topic}`, body.partitions, wanted.partitions)
    const isOfArchive = body.cluster_id === archived.cluster_id
    if (differingField(body, wanted) === undefined && !(isRedacted && isOfArchive)) return false
    assertEqual(`cluster of ${name} and of the archive`, body.cluster_id, archived.cluster_id)
    assertEqual(`topic of ${name} and of the archive`, body.topic, archived.topic)
    assertEqual(`partitions of ${name} and of the archive`, body.partitions, archived.partitions.length)
    return true
  }
  const [names, unchanged]: [string[], string[]] = [[], []]
  for (const name of all) {
    const found = await skipBadSpare(name, live, () => isToAdopt(name), steps)
    if (found !== undefined) (found ? names : unchanged).push(name)
  }
  return { names, unchanged }
}

const assertEqual = (what: string, expected: string | number, got: string | number): void => {
  if (expected !== got) throw new CommandError(`${what}: expected ${expected}, got ${got}`)
}

const readAdopted = async (name: string, partitions: number, steps: AdoptSourceSteps): Promise<Adopted> => {
  const generation = await expectStored<GenerationDocument>(generationId(name), steps)
  const positions: DocumentAnswer<PositionDocument>[] = []
  for (let partition = 0; partition < partitions; partition++)
    positions.push(await expectStored<PositionDocument>(positionId(name, partition), steps))
  return { stream: streamOf(name), generation, positions }
}

/** Changes the positions first, so that a projector of the old source stops at its next one. */
const changeSource = async (
  { generation, positions }: Adopted,
  { cluster_id, topic_id }: Source,
  { partitions }: Manifests[Stream],
  redaction: Redaction | undefined,
  steps: AdoptSourceSteps,
): Promise<string> => {
  const { topic_id: _, ...identity } = generation._source.body
  const known = topic_id === undefined ? {} : { topic_id }
  const source = [cluster_id, ...Object.values(known)].join('/')
  const stream = streamOf(identity.generation)
  for (const [partition, position] of positions.entries()) {
    const { last, serve_from: before } = position._source.body
    const sha256 = redactedHash({ redaction }, stream, partition, last?.offset ?? -1) ?? last?.sha256
    const changed = last && sha256 !== undefined ? { ...last, sha256 } : last
    // Readers of events may have seen more than the archive has. Each start of a projector sets the offset of API keys.
    const serve_from = stream === 'events' ? before : Math.min(before, partitions[partition]?.end ?? 0)
    const body = { ...position._source.body, last: changed, serve_from, source }
    const document: PositionDocument = { kind: 'position', body }
    await replaceUnchanged(positionId(identity.generation, partition), position, document, steps)
  }
  const ends = redaction?.list.partitions.filter(one => one.stream === stream).map(({ end }) => end)
  const redactedTo = ends === undefined ? {} : { redacted_to: ends }
  // Past positions have hashes of records before the redaction, and lead to snapshots that have the texts.
  if (redaction !== undefined) await forgetPastPositions(identity.generation, steps)
  const document: GenerationDocument = {
    kind: 'generation',
    body: { ...identity, cluster_id, ...known, ...redactedTo },
  }
  await replaceUnchanged(generationId(identity.generation), generation, document, steps)
  const log = redaction ? 'the redacted log of cluster' : 'cluster'
  const before = identity.cluster_id === cluster_id ? 'another topic of this name' : identity.cluster_id
  steps.say(`${identity.generation} has ${log} ${cluster_id} as its source now; it had ${before}`)
  return identity.generation
}
