/**
 * Compares two generations. First reads both once and keeps a digest of each organization. Then compares the
 * organizations whose digests differ, one at a time: memory holds ids and hashes of one organization, and few
 * documents.
 */

import { getEach, multiGet } from '../../core/store/index.ts'
import { type LayoutSource, layoutOf } from '../../schemas/stored/layout.ts'
import { instantToNanoseconds } from '../../schemas/values.ts'
import type { CommandContext } from '../context.ts'
import { CommandError } from '../failures.ts'
import { COMPARED_DOCUMENTS } from '../limits.ts'
import { asOf, type Fields } from './as-of.ts'
import {
  type ComparableRecord,
  comparableRecordOf,
  type PayoutContent,
  type RecordKind,
  recordKinds,
} from './comparable-content.ts'
import { firstDifference } from './find-differences.ts'
import { linesChanged } from './lines.ts'
import { withRetries } from './read-retries.ts'
import { type DifferenceRow, rowOf } from './rows.ts'
import { chunksOf, portionsOf } from './sizes.ts'
import { addToDigest, documentHash, documentsOf, positionFor } from './summarize.ts'
import { isAmount, isSameAmount, subtract, total } from './sums.ts'

/** A generation as of some positions that it has published. */
export type Side = {
  readonly identity: LayoutSource
  readonly positions: readonly number[]
  readonly context: CommandContext
  /** Set if one side contains one organization only: parked records of other partitions are ignored. */
  readonly onlyPartition: number | undefined
}

export type Overview = {
  /** By organization; '' for parked records without one. */
  readonly digests: ReadonlyMap<string, bigint>
  /** By `owed EUR` and `paid EUR`. */
  readonly money: ReadonlyMap<string, string>
}

export const overviewOf = async (side: Side, org: string | undefined): Promise<Overview> => {
  const digests = new Map<string, bigint>()
  const money = new Map<string, string>()
  for (const kind of recordKinds) {
    for await (const { owner, record } of recordsOf(side, kind, org)) {
      digests.set(owner, addToDigest(digests.get(owner) ?? 0n, documentHash(kind, record.id, record.content)))
      for (const [what, { currency, amount }] of moneyOf(kind, record)) addAmount(money, `${what} ${currency}`, amount)
    }
  }
  return { digests, money }
}

/** The name of a rep or period, and when the period starts: nanoseconds since 1970, 0 for a rep. */
export type Named = { readonly name: string; readonly starts: bigint }

export type OrganizationComparison = {
  readonly organization: string
  /** Sums by `owed rep_1 period_1 EUR`. */
  readonly money: readonly [a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>]
  /** Of reps and periods, by id; of b if both sides have the record. */
  readonly names: ReadonlyMap<string, Named>
  /** Every difference: money, then lines, then records. */
  readonly rows: AsyncIterable<DifferenceRow>
}

export const compareOrganization = async (organization: string, a: Side, b: Side): Promise<OrganizationComparison> => {
  const left = await readOrganization(organization, a)
  const right = await readOrganization(organization, b)
  return {
    organization,
    money: [left.money, right.money],
    names: new Map([...left.names, ...right.names]),
    rows: differencesOf(organization, [a, left], [b, right]),
  }
}

async function* differencesOf(
  organization: string,
  [a, left]: SideRecords,
  [b, right]: SideRecords,
): AsyncGenerator<DifferenceRow> {
  yield* moneyRows(organization, left.money, right.money)
  yield* lineRows(organization, [a, left], [b, right])
  for (const kind of recordKinds) yield* recordRows(organization, kind, [a, left], [b, right])
}

/** Records of an organization by id: document id, hash and size of each, without content. */
type OrganizationRecords = {
  readonly records: Readonly<Record<RecordKind, Map<string, RecordEntry>>>
  /** By `owed rep_1 period_1 EUR`. */
  readonly money: Map<string, string>
  /** The current payout of each rep and period, by `rep_1 period_1`. */
  readonly current: Map<string, RecordEntry>
  readonly names: Map<string, Named>
}
type RecordEntry = { readonly document: string; readonly hash: string; readonly bytes: number }

const readOrganization = async (organization: string, side: Side): Promise<OrganizationRecords> => {
  const found: OrganizationRecords = {
    records: {
      reps: new Map(),
      periods: new Map(),
      payouts: new Map(),
      statements: new Map(),
      payroll_files: new Map(),
      parked: new Map(),
    },
    money: new Map(),
    current: new Map(),
    names: new Map(),
  }
  for (const kind of recordKinds) {
    for await (const { document, bytes, record } of recordsOf(side, kind, organization)) {
      const entry = { document, hash: documentHash(kind, record.id, record.content), bytes }
      found.records[kind].set(record.id, entry)
      if (kind === 'reps' || kind === 'periods') {
        const { name, starts_at } = record.content
        found.names.set(record.id, { name: String(name), starts: instantToNanoseconds(String(starts_at)) ?? 0n })
      }
      const pair = `${record.rep} ${record.period}`
      for (const [what, { currency, amount }] of moneyOf(kind, record)) {
        addAmount(found.money, `${what} ${pair} ${currency}`, amount)
        if (what === 'owed') found.current.set(pair, entry)
      }
    }
  }
  return found
}

type Amount = { readonly currency: string; readonly amount: string }

/**
 * The amount that a record adds: a current payout to what is owed, a payroll record to what was paid.
 * @throws CommandError if it is no amount
 */
const moneyOf = (kind: RecordKind, { id, content }: ComparableRecord): [what: 'owed' | 'paid', of: Amount][] => {
  const amountIn = (stored: unknown): string => {
    if (isAmount(stored)) return stored
    throw new CommandError(
      `the amount of ${id} is damaged: expected a decimal number. npx commission projection verify names all damage`,
    )
  }
  const currency = String(content.currency)
  if (kind === 'payouts') {
    return content.superseded_by_id === null ? [['owed', { currency, amount: amountIn(content.net_amount) }]] : []
  }
  return kind === 'payroll_files' ? [['paid', { currency, amount: amountIn(content.amount) }]] : []
}

const addAmount = (sums: Map<string, string>, key: string, amount: string): void => {
  sums.set(key, total([sums.get(key) ?? '0', amount]))
}

async function* recordsOf(
  { identity, positions, context: { prefix, ...reading }, onlyPartition }: Side,
  kind: RecordKind,
  org: string | undefined,
) {
  const layout = layoutOf(prefix, identity)
  for await (const { org: owner, document } of documentsOf(layout, kind, org, positions, reading)) {
    if (kind === 'parked' && onlyPartition !== undefined && document.source.partition !== onlyPartition) continue
    const record = comparableRecordOf(kind, document)
    if (record) yield { owner, document: document.id, bytes: Number(document.source.body_bytes), record }
  }
}

const unionOf = (a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): string[] =>
  [...new Set([...a.keys(), ...b.keys()])].sort()

/** Sums that differ. A missing sum is 0. */
export function* moneyRows(
  organization: string,
  a: ReadonlyMap<string, string>,
  b: ReadonlyMap<string, string>,
): Generator<DifferenceRow> {
  for (const key of unionOf(a, b)) {
    const [left, right] = [a.get(key) ?? '0', b.get(key) ?? '0']
    if (isSameAmount(left, right)) continue
    const [row, rep = null, period = null, currency = null] = key.split(' ')
    if (row !== 'owed' && row !== 'paid') throw new Error('a sum of neither what is owed nor what was paid')
    yield rowOf({ row, organization, rep, period, currency, a: left, b: right, difference: subtract(left, right) })
  }
}

const payoutIn = (record: ComparableRecord | undefined) => record?.content as PayoutContent | undefined

type SideRecords = readonly [side: Side, records: OrganizationRecords]

async function* lineRows(
  organization: string,
  [a, left]: SideRecords,
  [b, right]: SideRecords,
): AsyncGenerator<DifferenceRow> {
  const differing = unionOf(left.current, right.current).filter(
    pair => left.current.get(pair)?.hash !== right.current.get(pair)?.hash,
  )
  for (const pairs of chunksThatFit(differing, left.current, right.current)) {
    const read = (side: Side, { current }: OrganizationRecords) =>
      readRecords(
        side,
        organization,
        'payouts',
        pairs.map(pair => current.get(pair)),
      )
    const [ours, theirs] = [await read(a, left), await read(b, right)]
    for (const [index, pair] of pairs.entries()) {
      const [rep = null, period = null] = pair.split(' ')
      const changes = linesChanged(payoutIn(ours[index]), payoutIn(theirs[index]))
      for (const { id, change, field, category, description, currency, a, b, difference } of changes) {
        const line = { id, change, field, category, description, currency, a, b, difference }
        yield rowOf({ row: 'line', organization, rep, period, kind: 'payouts', ...line })
      }
    }
  }
}

async function* recordRows(
  organization: string,
  kind: RecordKind,
  [a, left]: SideRecords,
  [b, right]: SideRecords,
): AsyncGenerator<DifferenceRow> {
  const [ours, theirs] = [left.records[kind], right.records[kind]]
  const differing = unionOf(ours, theirs).filter(id => ours.get(id)?.hash !== theirs.get(id)?.hash)
  for (const ids of chunksThatFit(differing, ours, theirs)) {
    const of = (side: Side, records: Map<string, RecordEntry>) =>
      readRecords(
        side,
        organization,
        kind,
        ids.map(id => records.get(id)),
      )
    const [before, after] = [await of(a, ours), await of(b, theirs)]
    for (const [index, id] of ids.entries()) {
      yield recordRow(organization, kind, id, before[index], after[index])
    }
  }
}

export const recordRow = (
  organization: string,
  kind: RecordKind,
  id: string,
  a: ComparableRecord | undefined,
  b: ComparableRecord | undefined,
): DifferenceRow => {
  const { rep = null, period = null } = b ?? a ?? {}
  const what = { row: 'record', organization, rep, period, kind, id } as const
  if (a === undefined) return rowOf({ ...what, change: 'added' })
  if (b === undefined) return rowOf({ ...what, change: 'removed' })
  const { field = '', a: before, b: after } = firstDifference(a.content, b.content, '') ?? {}
  return rowOf({ ...what, change: 'changed', field, a: textOf(before), b: textOf(after) })
}

/** Strings unchanged, other values as JSON; null for undefined. */
const textOf = (value: unknown): string | null =>
  value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value)

/** Reads documents as of the side's positions, in the given order; undefined for a missing one. */
const readRecords = async (
  { identity, positions, context: { send, prefix, sleep } }: Side,
  organization: string,
  kind: RecordKind,
  wanted: readonly (RecordEntry | undefined)[],
): Promise<(ComparableRecord | undefined)[]> => {
  const { addressOf } = layoutOf(prefix, identity)
  const docs = wanted.flatMap(entry => (entry ? [addressOf(kind, entry.document)] : []))
  const recordsById = new Map<string, ComparableRecord>()
  for (const found of await getEach(docs, part => withRetries({ sleep }, () => multiGet<Fields>(send, part)))) {
    if (!found.found) throw new Error('a record vanished while it was compared')
    const document = { id: found._id, source: found._source }
    const then = asOf(kind, document, positionFor(kind, organization, document, positions))
    const record = then && comparableRecordOf(kind, then)
    if (record) recordsById.set(found._id, record)
  }
  return wanted.map(entry => entry && recordsById.get(entry.document))
}

/** Splits keys into chunks whose documents of both sides fit into memory together. */
function* chunksThatFit(
  keys: readonly string[],
  ...sides: readonly ReadonlyMap<string, RecordEntry>[]
): Generator<readonly string[]> {
  const sizes = keys.map(key => sides.reduce((sum, side) => sum + (side.get(key)?.bytes ?? 0), 0))
  for (const portion of portionsOf(keys, sizes)) yield* chunksOf(portion, COMPARED_DOCUMENTS)
}
