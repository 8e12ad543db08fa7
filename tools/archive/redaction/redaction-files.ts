/**
 * The files of a redaction: the list of what differs, and the receipt, which makes the API answer `erased`.
 * Promises: a list is checked, never believed: the redaction is made again from the archive. A list or a receipt that
 *   is there is never replaced by another one.
 */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { receiptFileOf } from '../../../core/reading/index.ts'
import { isId } from '../../../schemas/values.ts'
import { CommandError } from '../../failures.ts'
import {
  completeReceipt,
  type ErasureReceipt,
  isOfRedaction,
  readReceipt,
  writeReceipt,
} from '../../subjects/destroy-key.ts'
import { timeOf } from '../../terminal.ts'
import { writeWhole } from '../../whole-file.ts'
import type { ArchiveManifest } from '../manifest.ts'
import type { ArchivedLogs } from '../read-archive.ts'
import {
  REDACTION_FORMAT,
  type Redaction,
  type RedactionChanges,
  type RedactOptions,
  redactLogs,
} from './redact-log.ts'
import { RedactionRefused } from './redact-record.ts'

/**
 * Makes the redaction of a list again, from the archive that it was made from.
 * @throws CommandError if the list is of another archive, or was changed
 */
export const readRedaction = async (file: string, logs: ArchivedLogs, signal: AbortSignal): Promise<Redaction> => {
  const list = await readList(file)
  const { organization: org, rep, also = [] } = list
  if (list.format !== REDACTION_FORMAT || !isId('org', org) || !isId('rep', rep)) {
    throw new CommandError(`${file}: expected a list of ${REDACTION_FORMAT}`)
  }
  const redaction = await redactLogs(logs, { org, rep, also }, SILENT, signal).catch(error => {
    if (!(error instanceof RedactionRefused)) throw error
    throw new CommandError(`${error.message}. Is ${file} the list of this archive? Nothing is changed`)
  })
  if (isDeepStrictEqual(list, redaction.list)) return redaction
  throw new CommandError(`${file} is not the list of this archive and ${rep} of ${org}. Nothing is changed`)
}

const SILENT = { onDone: async () => undefined, startAgain: () => undefined }

/** @throws CommandError if the file cannot be read, or is no JSON */
const readList = async (file: string): Promise<Partial<RedactionChanges>> => {
  try {
    const list: Partial<RedactionChanges> | null = JSON.parse(await readFile(file, 'utf8'))
    return list ?? {}
  } catch {
    throw new CommandError(`${file}: expected a list of ${REDACTION_FORMAT}, as restore --redact writes it`)
  }
}

/** The receipt of a redaction. It names the log, so that other archives of it know of the redaction. */
type RedactionReceipt = ErasureReceipt & {
  readonly cluster_id?: string
  readonly topic?: string
  /** Of the topic with the redacted log. Absent until that is compared, and if the brokers have no topic ids. */
  readonly topic_id?: string
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
  const { organization, rep, key_id, cluster_id, topics } = list
  const text = `${JSON.stringify(list, null, 1)}\n`
  const before = await readFile(changes, 'utf8').catch(ifMissing)
  if (before !== undefined && before !== text) {
    throw new CommandError(`${changes} is there, and it is another list: name another file. Nothing is changed`)
  }
  const receipt: RedactionReceipt = {
    ...{
      version: 1,
      state: 'begun',
      erased_at: timeOf(now),
      organization,
      rep,
      key_id,
      cluster_id,
      topic: topics.events,
    },
    ...{ sealed_texts: sealed.length, sealed_sha256: hash('sha256', sealed.map(text => `${text}\n`).join('')) },
  }
  await writeReceipt(join(keysDirectory, receiptFileOf(key_id)), receipt)
  if (before === undefined) await writeWhole(changes, text)
}

/**
 * To call once the topics were compared with the redacted log.
 * @param topicId of the topic of events
 */
export const completeRedaction = (
  { list }: Redaction,
  keysDirectory: string,
  now: number,
  topicId: string | undefined,
): Promise<void> => {
  const found: Partial<RedactionReceipt> = {
    erased_at: timeOf(now),
    ...(topicId !== undefined && { topic_id: topicId }),
  }
  return completeReceipt(join(keysDirectory, receiptFileOf(list.key_id)), found)
}

/**
 * Lists the redactions of a log, by their receipts, without those that made the topic where this archive began.
 * @throws CommandError if the directory cannot be read, or a receipt is damaged
 */
export const findRedactions = async (
  keysDirectory: string,
  { cluster_id, topic, begun_topic_id }: Pick<ArchiveManifest, 'cluster_id' | 'topic' | 'begun_topic_id'>,
): Promise<{ readonly receipt: ErasureReceipt; readonly file: string }[]> => {
  const names = await readdir(keysDirectory).catch(() => {
    throw new CommandError(`SEAL_KEYS_DIR: ${keysDirectory} cannot be read`)
  })
  const found = []
  for (const name of names.sort()) {
    const keyId = name.slice(0, -receiptFileOf('').length)
    if (name !== receiptFileOf(keyId) || !isOfRedaction(keyId)) continue
    const file = join(keysDirectory, name)
    const receipt: RedactionReceipt = await readReceipt(file)
    const isOfLog =
      receipt.cluster_id === undefined
        ? name === receiptFileOf(firstKeyIdOf(cluster_id, topic, receipt))
        : receipt.cluster_id === cluster_id && receipt.topic === topic
    const isRedacted = begun_topic_id !== undefined && receipt.topic_id === begun_topic_id
    if (isOfLog && !isRedacted) found.push({ receipt, file })
  }
  return found
}

/** The warning about a redaction, before an archive of its log is used. */
export const warnOfRedaction = ({ organization: org, rep, erased_at: at }: ErasureReceipt): string =>
  `warning: ${rep} of ${org} was redacted at ${at}: an archive from before has its texts, and this may be one`

/** The key id of a redaction by an earlier version, which did not write the log into the receipt. */
const firstKeyIdOf = (cluster: string, topic: string, { organization, rep }: ErasureReceipt): string =>
  `redacted-${hash('sha256', [cluster, topic, organization, rep].join('\n')).slice(0, 40)}`

const ifMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error
  return undefined
}
