/**
 * In: an archive, and a rep. Out: both logs of the archive without the texts of the rep that were published in the
 *   open, and a list of what differs.
 * Promises: the same archive and rep give the same bytes, so that a restore can continue. Every record is decided as
 *   before. Offsets and times stay. The list has each record that differs, with its hashes before and after, and
 *   nothing of its content.
 */
import { hash } from 'node:crypto'
import type { Stream } from '../../../schemas/events.ts'
import { CommandError } from '../../failures.ts'
import { type LogReader, type RawRecord, recordHash } from '../../projector.ts'
import { type ArchiveManifest, archivedStreams } from '../manifest.ts'
import type { Manifests } from '../read-archive.ts'
import { addEntryToDigest, NO_RECORDS } from '../segment.ts'
import { compareDecisions } from './compare-decisions.ts'
import { createRedactor } from './redact-record.ts'

export type RedactOptions = {
  readonly org: string
  readonly rep: string
  /** The file of the list. */
  readonly changes: string
}

/** An archive that was verified. */
export type ArchivedLogs = { readonly manifests: Manifests; readonly archived: (stream: Stream) => LogReader }

export const REDACTION_FORMAT = 'commission-redaction-2'

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
  readonly changes: readonly RedactionChange[]
}
export type RedactionChange = {
  readonly stream: Stream
  readonly partition: number
  readonly offset: number
  /** `value` if the whole value was replaced. */
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

/** Reads the whole archive. @throws CommandError if the rep has no text in the open, or a decision would differ */
export const redactLogs = async (
  { manifests, archived }: ArchivedLogs,
  { org, rep }: Pick<RedactOptions, 'org' | 'rep'>,
  onDone: (offsets: number) => Promise<void>,
  signal: AbortSignal,
): Promise<Redaction> => {
  const keyId = keyIdOf(manifests, org, rep)
  const redactor = createRedactor({ org, rep, keyId })
  const redacted = new Map<string, <Entry extends RawRecord>(entry: Entry) => Entry>()
  const changes: RedactionChange[] = []
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
        const change = entry.kind === 'record' ? redactor.redact(entry, where) : undefined
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
    throw new CommandError(`${rep} of ${org} has no text in the open: there is nothing to redact`)
  const hashes = new Map(
    changes.map(({ stream, partition, offset, after }) => [positionOf(stream, partition, offset), after]),
  )
  const topics = { events: manifests.events.topic, 'api-keys': manifests['api-keys'].topic }
  const named = { organization: org, rep, key_id: keyId, cluster_id: manifests.events.cluster_id, topics }
  return {
    list: { format: REDACTION_FORMAT, ...named, partitions: compared, changes },
    sealed: redactor.sealed(),
    hashOf: (stream, partition, offset) => hashes.get(positionOf(stream, partition, offset)),
    reader: (stream, log) => ({
      topic: log.topic,
      read: async (partition, from) => {
        const { entries, end } = await log.read(partition, from)
        const all = entries.map(entry => redacted.get(positionOf(stream, partition, entry.offset))?.(entry) ?? entry)
        return { entries: all, end }
      },
    }),
  }
}

const positionOf = (stream: Stream, partition: number, offset: number): string => `${stream}:${partition}:${offset}`

const partitionsOf = (manifests: Manifests) =>
  archivedStreams.flatMap(stream => {
    const { topic, partitions }: ArchiveManifest = manifests[stream]
    return partitions.map(archived => ({ stream, topic, ...archived, partitions: partitions.length }))
  })
