/** An archive in memory, and all decisions on its events, made by the rules from the first record on. */

import { Cache } from '../../../../core/ledger/decide/cache.ts'
import { batchOfOne, decideBatch, outcomeOf, readNothing } from '../../../../core/ledger/decide/decide-batch.ts'
import { decode } from '../../../../core/ledger/event/decode.ts'
import { builtInRules } from '../../../../core/ledger/rules/rules.ts'
import { encodeHeaders } from '../../../../core/log/kafka/encoded-headers.ts'
import type { LogEntry } from '../../../../core/log/records/read-log.ts'
import type { Stream } from '../../../../schemas/events.ts'
import { newManifest } from '../../../../tools/archive/manifest.ts'
import type { ArchivedLogs, Manifests } from '../../../../tools/archive/read-archive.ts'
import type { Redaction } from '../../../../tools/archive/redaction/redact-log.ts'
import { addEntryToDigest, NO_RECORDS } from '../../../../tools/archive/segment.ts'
import type { Outgoing } from '../../../support/events.ts'

/** One partition of each topic. */
export type Entries = Readonly<Record<Stream, readonly LogEntry[]>>

export const entryOf = ({ key, headers, value }: Outgoing, offset = 0): LogEntry => ({
  kind: 'record',
  offset,
  timestamp: 1 + offset,
  key: key === null ? null : Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
  headers: encodeHeaders(Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))] as const)),
})
export const entriesOf = (events: readonly Outgoing[], from = 0): LogEntry[] =>
  events.map((event, index) => entryOf(event, from + index))

export const archiveOf = (entries: Entries): ArchivedLogs => {
  const manifestOf = (stream: Stream) => {
    const manifest = newManifest({ stream, cluster_id: 'cluster', topic: `topic.${stream}` }, 1)
    const digest = entries[stream].reduce((sum, entry) => addEntryToDigest(sum, entry), NO_RECORDS)
    const { length: end } = entries[stream]
    return { ...manifest, partitions: manifest.partitions.map(part => ({ ...part, end, records: end, digest })) }
  }
  const manifests: Manifests = { events: manifestOf('events'), 'api-keys': manifestOf('api-keys') }
  return {
    manifests,
    archived: stream => ({
      topic: manifests[stream].topic,
      read: async (_, from) => ({ entries: entries[stream].slice(from, from + 3), end: entries[stream].length }),
    }),
  }
}

export const redactedEntries = async (entries: Entries, redaction: Redaction): Promise<Entries> => {
  const read = async (stream: Stream): Promise<LogEntry[]> => {
    const log = redaction.reader(stream, archiveOf(entries).archived(stream))
    const all: LogEntry[] = []
    while (all.length < entries[stream].length) all.push(...(await log.read(0, all.length)).entries)
    return all
  }
  return { events: await read('events'), 'api-keys': await read('api-keys') }
}

/** The outcome or code of each record, and the documents that it makes or changes. */
export const decisionsOn = async (stream: Stream, entries: readonly LogEntry[]): Promise<string[]> => {
  const source = { stream, topic: stream, partition: 0, partitions: 1 }
  const cache = new Cache({ fromFirstRecord: true })
  const decisions: string[] = []
  for (const record of entries) {
    const decided = await decideBatch(batchOfOne(record), { decode, source, rules: builtInRules }, cache, readNothing)
    const { documents } = decided
    // Never acknowledged: all documents stay in the cache.
    cache.addDecided(documents)
    decisions.push([outcomeOf(decided), ...documents.map(({ key, version }) => `${key} ${version}`)].join('\n'))
  }
  return decisions
}
