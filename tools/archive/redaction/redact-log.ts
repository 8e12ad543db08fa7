/**
 * In: an archive, and a rep. Out: both logs of the archive without the texts of the rep that were published in the
 *   open, and a list of what differs.
 * Promises: the same archive and rep give the same bytes, so that a restore can continue. Every record is decided as
 *   before. Offsets and times stay. The list has each record that differs, with its hashes before and after, and
 *   nothing of its content.
 */
import { hash } from 'node:crypto'
import { type RawRecord, recordHash } from '../../../core/ledger/index.ts'
import type { LogReader } from '../../../core/log/index.ts'
import type { Stream } from '../../../schemas/events.ts'
import { partsOf, searchFor, type TextSearch } from '../../subjects/person-in-bytes.ts'
import { type ArchiveManifest, archivedStreams } from '../manifest.ts'
import type { ArchivedLogs, Manifests } from '../read-archive.ts'
import { addEntryToDigest, NO_RECORDS } from '../segment.ts'
import { compareDecisions } from './compare-decisions.ts'
import { createRedactor, RedactionRefused } from './redact-record.ts'

export type RedactOptions = {
  readonly org: string
  readonly rep: string
  /** The file of the list. */
  readonly changes: string
  /** Positions of records that are replaced, too, as far as no decision reads them: TOPIC:PARTITION:OFFSET. */
  readonly also: readonly string[]
  /** Leaves records that may concern the rep, and that nobody can read. */
  readonly keepUnclear: boolean
}

/** The archive is read twice. */
export type Passes = {
  /** Called with the number of offsets that are done, and awaited. */
  readonly onDone: (offsets: number) => Promise<void>
  readonly startAgain: () => void
}

export const REDACTION_FORMAT = 'commission-redaction-3'

/** The differences between an archive and the logs that were restored from it. */
export type RedactionChanges = {
  readonly format: typeof REDACTION_FORMAT
  readonly organization: string
  readonly rep: string
  /** Of the sealed texts that were put in. Its receipt says that nobody has the key. */
  readonly key_id: string
  /** The source of the archive. */
  readonly cluster_id: string
  readonly topics: Readonly<Record<Stream, string>>
  /** The digests of all records of a partition, as in the manifest of an archive. */
  readonly partitions: readonly {
    readonly stream: Stream
    readonly partition: number
    readonly end: number
    readonly before: string
    readonly after: string
  }[]
  /** The positions that the operator has named. */
  readonly also: readonly string[]
  readonly changes: readonly RedactionChange[]
  /** Records that stay, and that nobody can read: they may concern the rep. */
  readonly unclear: readonly string[]
  /** Records that have a name or e-mail address of the rep in a place that stays, such as a description. */
  readonly mentions: readonly string[]
  /** The number of names and e-mail addresses that were too short to be searched for. */
  readonly unsearched: number
}
export type RedactionChange = {
  readonly stream: Stream
  readonly partition: number
  readonly offset: number
  /** `data` or `record` if all of it was replaced, `unknown` for members that no schema has. */
  readonly fields: readonly string[]
  /** SHA-256 of time, key, value and headers, as the projection keeps it of the last record. */
  readonly before: string
  readonly after: string
}

export type Redaction = {
  readonly list: RedactionChanges
  /** Different sealed texts that were put in. */
  readonly sealed: readonly string[]
  /** The hash that a record has in the redacted log; undefined if it is as before. */
  readonly hashOf: (stream: Stream, partition: number, offset: number) => string | undefined
  /** Reads the archive as the redacted log. */
  readonly reader: (stream: Stream, archived: LogReader) => LogReader
}

/**
 * The key id of the sealed texts: another one for each archive. The texts of a key are numbered from 1 on, so a later
 * redaction of the same rep must have another key: its texts would be equal to those of the first one.
 */
const keyIdOf = (manifests: Manifests, org: string, rep: string): string => {
  const { cluster_id, topic } = manifests.events
  const logs = archivedStreams.flatMap(stream =>
    manifests[stream].partitions.map(({ end, digest }) => `${end} ${digest}`),
  )
  return `redacted-${hash('sha256', [cluster_id, topic, org, rep, ...logs].join('\n')).slice(0, 40)}`
}

/** Reads the whole archive. @throws RedactionRefused if the rep has no text in the open, or a decision would differ */
export const redactLogs = async (
  { manifests, archived }: ArchivedLogs,
  { org, rep, also }: Pick<RedactOptions, 'org' | 'rep' | 'also'>,
  { onDone, startAgain }: Passes,
  signal: AbortSignal,
): Promise<Redaction> => {
  assertThere(also, manifests)
  const keyId = keyIdOf(manifests, org, rep)
  const redactor = createRedactor({ org, rep, keyId })
  const redacted = new Map<string, <Entry extends RawRecord>(entry: Entry) => Entry>()
  const changes: RedactionChange[] = []
  const unclear: string[] = []
  const compared: RedactionChanges['partitions'][number][] = []
  for (const { stream, topic, partition, partitions, end, digest: before } of partitionsOf(manifests)) {
    const log = archived(stream)
    const where = { stream, topic, partition, partitions }
    const decisions = compareDecisions(where, org)
    let digest = NO_RECORDS
    for (let offset = 0; offset < end; ) {
      signal.throwIfAborted()
      const { entries } = await log.read(partition, offset)
      for (const entry of entries) {
        const isNamed = also.includes(namedPosition(topic, partition, entry.offset))
        const found = entry.kind === 'record' ? redactor.redact(entry, where, isNamed) : undefined
        if (found === 'unclear') unclear.push(namedPosition(topic, partition, entry.offset))
        const change = found === 'unclear' ? undefined : found
        if (isNamed && change === undefined) refuseNamed(topic, partition, entry.offset)
        const after = change?.redacted(entry) ?? entry
        if (entry.kind === 'record') decisions.next(entry, after)
        digest = addEntryToDigest(digest, after)
        if (change === undefined) continue
        redacted.set(positionOf(stream, partition, entry.offset), change.redacted)
        const hashes = { before: recordHash(entry), after: recordHash(after) }
        changes.push({ stream, partition, offset: entry.offset, fields: change.fields, ...hashes })
      }
      offset += entries.length
      await onDone(entries.length)
    }
    compared.push({ stream, partition, end, before, after: digest })
  }
  if (changes.length === 0)
    throw new RedactionRefused(`${rep} of ${org} has no text in the open: there is nothing to redact`)
  const hashes = new Map(
    changes.map(({ stream, partition, offset, after }) => [positionOf(stream, partition, offset), after]),
  )
  const topics = { events: manifests.events.topic, 'api-keys': manifests['api-keys'].topic }
  const named = { organization: org, rep, key_id: keyId, cluster_id: manifests.events.cluster_id, topics }
  const reader: Redaction['reader'] = (stream, log) => ({
    topic: log.topic,
    read: async (partition, from) => {
      const { entries, end } = await log.read(partition, from)
      const all = entries.map(entry => redacted.get(positionOf(stream, partition, entry.offset))?.(entry) ?? entry)
      return { entries: all, end }
    },
  })
  const redactedLogs = { manifests, archived: (stream: Stream) => reader(stream, archived(stream)) }
  startAgain()
  const search = searchFor(redactor.replaced())
  const mentions = await findMentions(redactedLogs, search, onDone, signal)
  const { unsearched } = search
  const found = { partitions: compared, also: [...also], changes, unclear, mentions, unsearched }
  const list: RedactionChanges = { format: REDACTION_FORMAT, ...named, ...found }
  return {
    list,
    sealed: redactor.sealed(),
    hashOf: (stream, partition, offset) => hashes.get(positionOf(stream, partition, offset)),
    reader,
  }
}

/** @throws RedactionRefused for a position that the archive does not have */
const assertThere = (also: readonly string[], manifests: Manifests): void => {
  for (const position of also) {
    const [topic, partition, offset, ...more] = position.split(':')
    const manifest = archivedStreams.map(stream => manifests[stream]).find(one => one.topic === topic)
    const { end = 0 } = manifest?.partitions[Number(partition)] ?? {}
    if (more.length === 0 && /^[0-9]+$/.test(offset ?? '') && Number(offset) < end) continue
    throw new RedactionRefused(`--also ${position}: the archive has no such record. Nothing is changed`)
  }
}

const refuseNamed = (topic: string, partition: number, offset: number): never => {
  const what = `--also ${namedPosition(topic, partition, offset)}: nothing of this record can be replaced`
  throw new RedactionRefused(
    `${what}: it is no record, was redacted before, or a decision reads all of it. Nothing is changed`,
  )
}

/**
 * Searches the redacted logs for names and e-mail addresses of the rep.
 * @returns positions of records that have one: in a text that decisions read, or as another person of this name
 */
const findMentions = async (
  { manifests, archived }: ArchivedLogs,
  { isIn, searched }: TextSearch,
  onDone: (offsets: number) => Promise<void>,
  signal: AbortSignal,
): Promise<string[]> => {
  const found: string[] = []
  for (const { stream, topic, partition, end } of searched === 0 ? [] : partitionsOf(manifests)) {
    const log = archived(stream)
    for (let offset = 0; offset < end; ) {
      signal.throwIfAborted()
      const { entries } = await log.read(partition, offset)
      for (const entry of entries) {
        if (entry.kind === 'record' && partsOf(entry).some(isIn))
          found.push(namedPosition(topic, partition, entry.offset))
      }
      offset += entries.length
      await onDone(entries.length)
    }
  }
  return found
}

/** As `commission parked` names a record. */
const namedPosition = (topic: string, partition: number, offset: number): string => `${topic}:${partition}:${offset}`

const positionOf = (stream: Stream, partition: number, offset: number): string => `${stream}:${partition}:${offset}`

const partitionsOf = (manifests: Manifests) =>
  archivedStreams.flatMap(stream => {
    const { topic, partitions }: ArchiveManifest = manifests[stream]
    return partitions.map(archived => ({ stream, topic, ...archived, partitions: partitions.length }))
  })
