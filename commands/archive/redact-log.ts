/**
 * In: an archive, and a rep. Out: the log of the archive without the texts of the rep that were published in the open,
 *   and a list of what differs.
 * Promises: the same archive and rep give the same bytes, so that a restore can continue. Offsets, times, keys and
 *   headers stay. The list has each record that differs, with its hashes before and after, and nothing of its content.
 */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isId } from '../../schemas/values.ts'
import { receiptFileOf } from '../api.ts'
import { CommandError } from '../failures.ts'
import { type LogReader, recordHash } from '../projector.ts'
import { completeReceipt, type ErasureReceipt, readReceipt, writeReceipt } from '../subjects/destroy-key.ts'
import { timeOf } from '../terminal.ts'
import { writeWhole } from '../whole-file.ts'
import type { ArchiveManifest } from './manifest.ts'
import { createRedactor } from './redact-record.ts'
import { addEntryToDigest, NO_RECORDS } from './segment.ts'

export type RedactOptions = {
  readonly org: string
  readonly rep: string
  /** The file of the list. */
  readonly changes: string
}

const REDACTION_FORMAT = 'commission-redaction-1'

/** The differences between an archive and the log that was restored from it. */
export type RedactionChanges = {
  readonly format: typeof REDACTION_FORMAT
  readonly organization: string
  readonly rep: string
  /** Of the sealed texts that were put in. Its receipt says that nobody has the key. */
  readonly key_id: string
  /** The source of the archive. */
  readonly cluster_id: string
  readonly topic: string
  /** The digests of all records of a partition, as in the manifest of an archive. */
  readonly partitions: readonly {
    readonly partition: number
    readonly end: number
    readonly before: string
    readonly after: string
  }[]
  readonly changes: readonly RedactionChange[]
}
export type RedactionChange = {
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
  readonly hashOf: (partition: number, offset: number) => string | undefined
  /** Reads the archive as the redacted log. */
  readonly reader: (archived: LogReader) => LogReader
}

const keyIdOf = ({ cluster_id, topic }: Pick<ArchiveManifest, 'cluster_id' | 'topic'>, org: string, rep: string) =>
  `redacted-${hash('sha256', `${cluster_id}\n${topic}\n${org}\n${rep}`).slice(0, 40)}`

/** Reads the whole archive of the events. @throws CommandError if the rep has no text in the open */
export const redactLog = async (
  archived: LogReader,
  manifest: ArchiveManifest,
  { org, rep }: Pick<RedactOptions, 'org' | 'rep'>,
  onDone: (offsets: number) => Promise<void>,
  signal: AbortSignal,
): Promise<Redaction> => {
  const { cluster_id, topic, stream, partitions } = manifest
  const keyId = keyIdOf(manifest, org, rep)
  const redactor = createRedactor({ org, rep, keyId })
  const values = partitions.map(() => new Map<number, Buffer>())
  const changes: RedactionChange[] = []
  const digests: string[] = []
  for (const { partition, end } of partitions) {
    const where = { stream, partition, partitions: partitions.length }
    let digest = NO_RECORDS
    for (let offset = 0; offset < end; ) {
      signal.throwIfAborted()
      const { entries } = await archived.read(partition, offset)
      for (const entry of entries) {
        const redacted = entry.kind === 'record' ? redactor.redact(entry, where) : undefined
        const after = redacted ? { ...entry, value: redacted.value } : entry
        digest = addEntryToDigest(digest, after)
        if (redacted === undefined) continue
        values[partition]?.set(entry.offset, redacted.value)
        const { fields } = redacted
        const change = { before: recordHash(entry), after: recordHash(after) }
        changes.push({ partition, offset: entry.offset, fields, ...change })
      }
      offset += entries.length
      await onDone(entries.length)
    }
    digests.push(digest)
  }
  if (changes.length === 0)
    throw new CommandError(`${rep} of ${org} has no text in the open: there is nothing to redact`)
  const compared = partitions.map(({ partition, end, digest: before }) => {
    return { partition, end, before, after: digests[partition] ?? before }
  })
  const hashes = new Map(changes.map(({ partition, offset, after }) => [`${partition}:${offset}`, after]))
  const named = { organization: org, rep, key_id: keyId, cluster_id, topic }
  return {
    list: { format: REDACTION_FORMAT, ...named, partitions: compared, changes },
    sealed: redactor.sealed(),
    hashOf: (partition, offset) => hashes.get(`${partition}:${offset}`),
    reader: log => ({
      topic: log.topic,
      read: async (partition, from) => {
        const { entries, end } = await log.read(partition, from)
        const replaced = values[partition]
        if (replaced === undefined || replaced.size === 0) return { entries, end }
        const redactedOf = (offset: number) => replaced.get(offset)
        return { entries: entries.map(entry => withValue(entry, redactedOf(entry.offset))), end }
      },
    }),
  }
}

const withValue = <Entry extends { readonly value: Buffer | null }>(entry: Entry, value: Buffer | undefined): Entry =>
  value === undefined ? entry : { ...entry, value }

/**
 * Makes the redaction of a list again, from the archive that it was made from.
 * @throws CommandError if the list is of another archive, or was changed
 */
export const readRedaction = async (
  file: string,
  archived: LogReader,
  manifest: ArchiveManifest,
  signal: AbortSignal,
): Promise<Redaction> => {
  const list = await readList(file)
  const { organization: org, rep } = list
  if (list.format !== REDACTION_FORMAT || !isId('org', org) || !isId('rep', rep)) {
    throw new CommandError(`${file}: expected a list of ${REDACTION_FORMAT}`)
  }
  const redaction = await redactLog(archived, manifest, { org, rep }, async () => undefined, signal).catch(error => {
    if (!(error instanceof CommandError)) throw error
    throw new CommandError(`${error.message}. Is ${file} the list of this archive? Nothing is changed`)
  })
  if (isDeepStrictEqual(list, redaction.list)) return redaction
  throw new CommandError(`${file} is not the list of this archive and ${rep} of ${org}. Nothing is changed`)
}

/** @throws CommandError if the file cannot be read, or is no JSON */
const readList = async (file: string): Promise<Partial<RedactionChanges>> => {
  try {
    const list: Partial<RedactionChanges> | null = JSON.parse(await readFile(file, 'utf8'))
    return list ?? {}
  } catch {
    throw new CommandError(`${file}: expected a list of ${REDACTION_FORMAT}, as restore --redact writes it`)
  }
}

/**
 * Writes the list, and the receipt, as begun: it makes the API answer `erased`. A receipt that is there stays as it is.
 * @throws CommandError if the file of the list has something else: it may be the list of another rep
 */
export const writeRedaction = async (
  { list, sealed }: Redaction,
  { changes }: Pick<RedactOptions, 'changes'>,
  keysDirectory: string,
  now: number,
): Promise<void> => {
  const { organization, rep, key_id } = list
  const text = `${JSON.stringify(list, null, 1)}\n`
  const before = await readFile(changes, 'utf8').catch(ifMissing)
  if (before !== undefined && before !== text) {
    throw new CommandError(`${changes} is there, and it is another list: name another file. Nothing is changed`)
  }
  await writeReceipt(join(keysDirectory, receiptFileOf(key_id)), {
    ...{ version: 1, state: 'begun', erased_at: timeOf(now), organization, rep, key_id },
    ...{ sealed_texts: sealed.length, sealed_sha256: hash('sha256', sealed.map(text => `${text}\n`).join('')) },
  })
  if (before === undefined) await writeWhole(changes, text)
}

/** To call once the topics were compared with the redacted log. */
export const completeRedaction = ({ list }: Redaction, keysDirectory: string, now: number): Promise<void> =>
  completeReceipt(join(keysDirectory, receiptFileOf(list.key_id)), timeOf(now))

/**
 * Lists the redactions of a log, by their receipts.
 * @throws CommandError if the directory cannot be read
 */
export const findRedactions = async (
  keysDirectory: string,
  manifest: Pick<ArchiveManifest, 'cluster_id' | 'topic'>,
): Promise<{ readonly receipt: ErasureReceipt; readonly file: string }[]> => {
  const names = await readdir(keysDirectory).catch(() => {
    throw new CommandError(`SEAL_KEYS_DIR: ${keysDirectory} cannot be read`)
  })
  const found = []
  for (const name of names.filter(one => /^redacted-[0-9a-f]{40}\.erased\.json$/.test(one)).sort()) {
    const file = join(keysDirectory, name)
    const receipt = await readReceipt(file)
    if (name === receiptFileOf(keyIdOf(manifest, receipt.organization, receipt.rep))) found.push({ receipt, file })
  }
  return found
}

const ifMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error
  return undefined
}
