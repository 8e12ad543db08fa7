/**
 * `commission close`: one folder with everything about a period of an organization, as of one change, for an auditor.
 * In: an organization, a period, a moment, perhaps a signing key and an audit log. Out: a folder with records, tables,
 * controls, a page and a manifest.
 * Promises: the same change and positions give the same bytes; the folder is there whole or not at all; it fails unless
 *   the records reconcile to the totals of the projection; nothing of another organization is in it, and no secret.
 */

import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Moment, momentOf } from '../../core/reading/index.ts'
import type { SigningKey } from '../../core/runtime/index.ts'
import { KEYS_PARTITION } from '../../schemas/partition.ts'
import { instantOf } from '../../schemas/values.ts'
import type { CommandContext } from '../context.ts'
import { writeCsv } from '../export/csv.ts'
import type { ExportSteps } from '../export/export.ts'
import { describeFiles, describeTables, type FileDescription, refuseUnknownShard } from '../export/manifest.ts'
import { ofOneCopy, refuseUnknown } from '../export/readers.ts'
import { writeTables } from '../export/tables.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { findKeyEvents } from '../keys/keys.ts'
import { type Live, readProjection, unknownShardIn } from '../live.ts'
import { findParked, type RecordPosition } from '../parked/find.ts'
import { MANIFEST_FILE, signFolder } from '../signing/sign-manifest.ts'
import { readSigningKey } from '../signing/signing-key.ts'
import { AS_USUAL, syncDirectory, syncFiles, writeWhole } from '../whole-file.ts'
import { type AuditReads, readAuditLog } from './close-audit.ts'
import {
  type ChangeToCount,
  createControls,
  type PayoutToCount,
  type PayrollToCount,
  type ReplacedPayout,
} from './close-controls.ts'
import type { CloseHead, CloseManifest, KeyRow, ParkedRow } from './close-manifest.ts'
import { closePage } from './close-page.ts'
import { objectsIn, writeObjects, writeRecords } from './close-records.ts'
import { assertSameProjection, parkedEndsOf } from './close-source.ts'
import { closeTables } from './close-tables.ts'

export type CloseOptions = {
  readonly org: string
  readonly period: string
  /** By default the last change. */
  readonly asOf: Moment | undefined
  /** Keys as of this offset of the topic of API keys; by default all that are known. */
  readonly keysUntil: number | undefined
  /** Parked records before these offsets; by default all that are known. */
  readonly parkedUntil: readonly RecordPosition[] | undefined
  readonly out: string
  /** File of the key that signs the manifest. */
  readonly sign: string | undefined
  /** File of the audit log. */
  readonly audit: string | undefined
  readonly json: boolean
}
export type CloseSteps = ExportSteps & Pick<CommandContext, 'send' | 'prefix'>

/** In the order of writing. */
const FILES = [
  'periods',
  'changes',
  'payouts',
  'statements',
  'payroll_files',
  'reps',
  'replacements',
  'control_totals',
  'reconciliation',
  'parked',
  'keys',
]
const PAGE_FILE = 'report.html'

export const closePeriod = async (options: CloseOptions, steps: CloseSteps): Promise<ExitCode> => {
  const { org, period, json } = options
  const out = options.out.replace(/(?<=.)\/+$/, '')
  const key = await readSigningKey(options.sign)
  const reads = options.audit === undefined ? undefined : await readAuditLog(options.audit, org, steps.signal)
  if ((await readdir(out).catch(() => [])).length > 0) {
    throw new CommandError(`${out} is not empty: choose another directory. A close is never written over`)
  }
  const directory = `${out}.${randomUUID()}.new`
  // Pay: the folder stays closed to other users of the machine until somebody opens it.
  await mkdir(directory, { mode: 0o700 })
  try {
    const manifest = await writeClose(directory, options, steps, reads, key)
    await rename(directory, out)
    await syncDirectory(dirname(out))
    if (json) steps.out(`${JSON.stringify(manifest)}\n`)
    steps.say(`closed ${period} of ${org} as of ${manifest.as_of} into ${out}`)
    return exitCodes.done
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const writeClose = async (
  directory: string,
  options: CloseOptions,
  given: CloseSteps,
  reads: AuditReads | undefined,
  key: SigningKey | undefined,
): Promise<CloseManifest> => {
  const { org, period, asOf, keysUntil, parkedUntil } = options
  const steps = ofOneCopy(given, 'close again. Nothing is written')
  const { send, prefix, say, signal } = steps
  // The positions are read before the searches, which also find what is not published, while some before it is missing.
  const before = await readProjection(send, prefix)
  const { live, positions } = before
  const { topic: keysTopic, rules_version: key_rules_version } = live['api-keys'].identity
  const { totals, last, position: read } = await steps.readTotals(org, asOf)
  if (!last) {
    await refuseUnknown(org, steps)
    throw new CommandError('--as-of: nothing was recorded then')
  }
  const { name: generation } = read.generation
  const source = await steps.sourceOf(generation, org)
  // Of both streams: `keys` is read from the indices of API keys.
  refuseUnknownShard({ ...source, unknownShard: source.unknownShard ?? unknownShardIn(live) }, options, steps)
  const { topic, partition, rules_version } = source
  // Before long work.
  const keysEnd = positions['api-keys'][KEYS_PARTITION]?.position ?? 0
  if (keysUntil !== undefined && keysUntil > keysEnd) {
    throw new CommandError(
      `--keys-until: ${keysTopic} is projected to ${keysEnd}: expected at most that, got ${keysUntil}`,
    )
  }
  const position = { topic, partition, offset: last.seq + 1 }
  const published = positions.events.map(one => one.position)
  const parkedEnds = parkedEndsOf(published, position, parkedUntil)
  await writeRecords({ org, period, change: last.id, directory, signal }, steps)

  const controls = createControls()
  const replacements: ReplacedPayout[] = []
  for await (const change of objectsIn<ChangeToCount>(directory, 'changes')) {
    const replacement = controls.addChange(change)
    if (replacement) replacements.push(replacement)
  }
  for await (const payout of objectsIn<PayoutToCount>(directory, 'payouts')) controls.addPayout(payout)
  for await (const record of objectsIn<PayrollToCount>(directory, 'payroll_files')) controls.addPayroll(record)
  const { totals: control_totals, reconciled } = controls.reconcile(
    totals.totals.filter(({ period_id }) => period_id === period),
  )
  await writeObjects(directory, 'replacements', replacements)
  await writeObjects(directory, 'control_totals', control_totals)
  await writeObjects(directory, 'reconciliation', reconciled)

  const { parked, parked_positions, later } = await parkedBefore(org, parkedEnds, position, live, send)
  const end = parkedUntil ? '--parked-until' : 'what is published'
  if (later > 0) say(`records parked after ${end}, and in no file: ${later}`)
  await writeObjects(directory, 'parked', parked)
  const { keys, keysPosition } = await keysOf(org, keysUntil, keysEnd, steps)
  await writeObjects(directory, 'keys', keys)
  if (reads !== undefined) await writeObjects(directory, 'reads', reads)

  const head: CloseHead = {
    format: 'commission-close-1',
    organization: org,
    period,
    as_of: last.id,
    published_at: instantOf(last.at),
    position,
    rules_version,
    key_rules_version,
    keys_position: { topic: keysTopic, offset: keysPosition },
    parked_positions,
    control_totals,
  }
  const tables = closeTables.filter(({ from }) => from !== 'reads' || reads !== undefined)
  const { files, digest } = await describeFiles([...FILES, ...(reads ? ['reads'] : [])], directory, signal)
  assertStatements(files)
  const made = [
    ...(await writeTables(directory, say, signal, tables)),
    ...(await writeCsv(directory, say, signal, tables)),
  ]
  const [{ name: periodName = period } = {}] = await Array.fromAsync(objectsIn<{ name?: string }>(directory, 'periods'))
  const page = closePage({ head, periodName, replacements, reconciled, parked, keys, reads, files, digest })
  await writeFile(join(directory, PAGE_FILE), page)
  // Read again: another generation may have become live meanwhile, also one from which texts of people were redacted.
  const after = await steps.readTotals(org, momentOf(last.id))
  const then = await readProjection(send, prefix)
  assertSameProjection(before, then)
  const now = await steps.sourceOf(after.position.generation.name, org)
  refuseUnknownShard({ ...now, unknownShard: now.unknownShard ?? unknownShardIn(then.live) }, options, steps)
  const isSameSource = now.topic === topic && now.rules_version === rules_version
  if (!isSameSource || after.last?.seq !== last.seq) {
    throw new CommandError('another projection was made live meanwhile: close again. Nothing is written')
  }
  const manifest: CloseManifest = {
    ...head,
    files,
    tables: await describeTables([...made, PAGE_FILE].sort(), directory),
    digest,
  }
  // On disk before the manifest and its signature say that it is there.
  await syncFiles(directory, await readdir(directory))
  await writeWhole(join(directory, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`, AS_USUAL)
  if (key) await signFolder(directory, key)
  return manifest
}

const assertStatements = ({ payouts, statements }: Readonly<Record<string, FileDescription>>): void => {
  if (payouts?.records === statements?.records) return
  throw new CommandError(`${payouts?.records} payouts have ${statements?.records} statements. Nothing is written`)
}

/**
 * All parked records of the organization before the ends of the partitions, in the order of the log, and the number of
 * later ones. `parked_positions` depends on these records only: closes with the same ones have the same bytes.
 */
const parkedBefore = async (
  org: string,
  ends: readonly number[],
  { topic, partition: own, offset: end }: CloseManifest['position'],
  live: Live,
  send: CommandContext['send'],
): Promise<Pick<CloseManifest, 'parked_positions'> & { readonly parked: ParkedRow[]; readonly later: number }> => {
  // All of them, in any order: they are sorted below.
  const wanted = { filter: { org, topic }, order: 'oldest', now: 0 } as const
  const { records } = await findParked(send, live, wanted, Number.MAX_SAFE_INTEGER)
  const before = records
    .filter(({ partition, offset }) => offset < (ends[partition] ?? 0))
    .sort((a, b) => a.partition - b.partition || a.offset - b.offset)
  const parked = before.map(({ partition, offset, at, code, type = null, event_id = null }) => {
    return { position: `${topic}:${partition}:${offset}`, published_at: instantOf(at), code, type, event_id }
  })
  const after = new Map(before.map(({ partition, offset }) => [partition, offset + 1]))
  if ((after.get(own) ?? 0) <= end) after.delete(own)
  const parked_positions = Array.from(after, ([partition, offset]) => ({ topic, partition, offset }))
  return { parked, parked_positions, later: records.length - parked.length }
}

/**
 * The keys of the organization as of an offset of their topic; by default those that are published, as of the last
 * event of one of them.
 * @param published the end of what is published
 */
const keysOf = async (
  org: string,
  until: number | undefined,
  published: number,
  steps: Pick<CommandContext, 'send' | 'prefix'>,
): Promise<{ readonly keys: KeyRow[]; readonly keysPosition: number }> => {
  const end = until ?? published
  const isKnown = (offset: number | null): boolean => offset !== null && offset < end
  const found = (await findKeyEvents(org, steps)).filter(({ createdAt }) => isKnown(createdAt))
  const events = found.flatMap(({ createdAt, revokedAt }) => [createdAt, revokedAt ?? -1]).filter(isKnown)
  const keys = found.map(({ key: { id, name, permissions, expires_at, allowed_networks }, revokedAt }): KeyRow => {
    const networks = allowed_networks?.join(' ') ?? null
    const revoked = isKnown(revokedAt)
    return { id, name, permissions: permissions.join(' '), expires_at, allowed_networks: networks, revoked }
  })
  return { keys, keysPosition: until ?? events.reduce((last, offset) => Math.max(last, offset), -1) + 1 }
}
