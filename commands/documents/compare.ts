/**
 * Compares two generations. First reads both once and keeps a digest of each organization. Then compares the
 * organizations whose digests differ, one at a time: memory holds ids and hashes of one organization, and few
 * documents.
 */
import { createHash } from 'node:crypto'
import { multiGet } from '../../projector/elasticsearch/client.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { indexOf } from '../../schemas/stored/documents.ts'
import type { CommandContext } from '../context.ts'
import { COMPARED_DOCUMENTS } from '../limits.ts'
import { asOf } from './as-of.ts'
import {
  type PayoutSays,
  type PayrollSays,
  type RecordKind,
  recordKinds,
  type Saying,
  sayingOf,
} from './comparable-content.ts'
import { firstDifference } from './find-differences.ts'
import { linesChanged } from './lines.ts'
import { type DifferenceRow, rowOf } from './rows.ts'
import { portionsOf } from './sizes.ts'
import { documentsOf } from './summarize.ts'
import { isSameAmount, subtract, total } from './sums.ts'

/** A generation as of its own published positions. */
export type Side = {
  readonly name: string
  readonly generation: string
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
    for await (const { owner, saying } of recordsOf(side, kind, org)) {
      const hash = BigInt(`0x${hashOf(kind, saying)}`)
      digests.set(owner, ((digests.get(owner) ?? 0n) + hash) % 2n ** 256n)
      for (const [what, { currency, amount }] of moneyOf(kind, saying)) add(money, `${what} ${currency}`, amount)
    }
  }
  return { digests, money }
}

/** Yields every difference of one organization: money, lines, records. */
export async function* differencesOf(organization: string, a: Side, b: Side): AsyncGenerator<DifferenceRow> {
  const left = await contentOf(organization, a)
  const right = await contentOf(organization, b)
  yield* moneyRows(organization, left.money, right.money)
  yield* lineRows(organization, [a, left], [b, right])
  for (const kind of recordKinds) yield* recordRows(organization, kind, [a, left], [b, right])
}

/** Records of an organization by id: document id, hash and size of each, without content. */
type Content = {
  readonly records: Readonly<Record<RecordKind, Map<string, Kept>>>
  /** By `owed rep_1 period_1 EUR`. */
  readonly money: Map<string, string>
  /** The current payout of each rep and period, by `rep_1 period_1`. */
  readonly current: Map<string, Kept>
}
type Kept = { readonly document: string; readonly hash: string; readonly bytes: number }

const contentOf = async (organization: string, side: Side): Promise<Content> => {
  const content: Content = {
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
  }
  for (const kind of recordKinds) {
    for await (const { document, bytes, saying } of recordsOf(side, kind, organization)) {
      const kept = { document, hash: hashOf(kind, saying), bytes }
      content.records[kind].set(saying.id, kept)
      const pair = `${saying.rep} ${saying.period}`
      for (const [what, { currency, amount }] of moneyOf(kind, saying)) {
        add(content.money, `${what} ${pair} ${currency}`, amount)
        if (what === 'owed') content.current.set(pair, kept)
      }
    }
  }
  return content
}

type Amount = { readonly currency: string; readonly amount: string }

/** The amount that a record adds: a current payout to what is owed, a payroll record to what was paid. */
const moneyOf = (kind: RecordKind, { says }: Saying): [what: 'owed' | 'paid', of: Amount][] => {
  if (kind === 'payouts') {
    const { superseded_by_id, currency, net_amount: amount } = says as PayoutSays
    return superseded_by_id === null ? [['owed', { currency, amount }]] : []
  }
  return kind === 'payroll_files' ? [['paid', says as PayrollSays]] : []
}

const add = (sums: Map<string, string>, key: string, amount: string): void => {
  sums.set(key, total([sums.get(key) ?? '0', amount]))
}

const hashOf = (kind: RecordKind, { id, says }: Saying): string =>
  createHash('sha256')
    .update(`${kind}\n${id}\n${JSON.stringify(says)}`)
    .digest('hex')

async function* recordsOf(
  { generation, positions, context: { prefix, ...reading }, onlyPartition }: Side,
  kind: RecordKind,
  org: string | undefined,
) {
  const index = indexOf(prefix, generation, kind)
  for await (const { org: owner, document } of documentsOf(index, kind, org, positions, reading)) {
    if (kind === 'parked' && onlyPartition !== undefined && document.source.partition !== onlyPartition) continue
    const saying = sayingOf(kind, document)
    if (saying) yield { owner, document: document.id, bytes: Number(document.source.body_bytes), saying }
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

type SideContent = readonly [side: Side, content: Content]

async function* lineRows(
  organization: string,
  [a, left]: SideContent,
  [b, right]: SideContent,
): AsyncGenerator<DifferenceRow> {
  const differing = unionOf(left.current, right.current).filter(
    pair => left.current.get(pair)?.hash !== right.current.get(pair)?.hash,
  )
  for (const pairs of chunksOf(differing, left.current, right.current)) {
    const read = (side: Side, { current }: Content) =>
      readSaid(
        side,
        organization,
        'payouts',
        pairs.map(pair => current.get(pair)),
      )
    const [ours, theirs] = [await read(a, left), await read(b, right)]
    for (const [place, pair] of pairs.entries()) {
      const [rep = null, period = null] = pair.split(' ')
      const payouts = [ours[place]?.says, theirs[place]?.says] as [PayoutSays | undefined, PayoutSays | undefined]
      for (const { id, change, field, category, currency, a, b, difference } of linesChanged(...payouts)) {
        const line = { id, change, field, category, currency, a, b, difference }
        yield rowOf({ row: 'line', organization, rep, period, kind: 'payouts', ...line })
      }
    }
  }
}

async function* recordRows(
  organization: string,
  kind: RecordKind,
  [a, left]: SideContent,
  [b, right]: SideContent,
): AsyncGenerator<DifferenceRow> {
  const [ours, theirs] = [left.records[kind], right.records[kind]]
  const differing = unionOf(ours, theirs).filter(id => ours.get(id)?.hash !== theirs.get(id)?.hash)
  for (const ids of chunksOf(differing, ours, theirs)) {
    const of = (side: Side, records: Map<string, Kept>) =>
      readSaid(
        side,
        organization,
        kind,
        ids.map(id => records.get(id)),
      )
    const [before, after] = [await of(a, ours), await of(b, theirs)]
    for (const [place, id] of ids.entries()) {
      yield recordRow(organization, kind, id, before[place], after[place])
    }
  }
}

export const recordRow = (
  organization: string,
  kind: RecordKind,
  id: string,
  a: Saying | undefined,
  b: Saying | undefined,
): DifferenceRow => {
  const { rep = null, period = null } = b ?? a ?? {}
  const what = { row: 'record', organization, rep, period, kind, id } as const
  if (a === undefined) return rowOf({ ...what, change: 'added' })
  if (b === undefined) return rowOf({ ...what, change: 'removed' })
  const { field = '', a: before, b: after } = firstDifference(a.says, b.says, '') ?? {}
  return rowOf({ ...what, change: 'changed', field, a: textOf(before), b: textOf(after) })
}

/** Strings unchanged, other values as JSON; null for undefined. */
const textOf = (value: unknown): string | null =>
  value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value)

/** Reads documents as of the side's positions, in the given order; undefined for a missing one. */
const readSaid = async (
  { generation, positions, context: { send, prefix } }: Side,
  organization: string,
  kind: RecordKind,
  wanted: readonly (Kept | undefined)[],
): Promise<(Saying | undefined)[]> => {
  const _index = indexOf(prefix, generation, kind)
  const ids = wanted.flatMap(kept => (kept ? [kept.document] : []))
  const said = new Map<string, Saying>()
  for (let rest = ids; rest.length > 0; ) {
    // `multiGet` returns as many documents as one answer holds.
    const found = await multiGet(
      send,
      rest.map(_id => ({ _index, _id })),
    )
    for (const { _id: id, _source } of found) {
      const source = _source as Record<string, unknown>
      const partition = kind === 'parked' ? Number(source.partition) : partitionOf(organization, positions.length)
      const then = asOf(kind, { id, source }, positions[partition] ?? 0)
      const saying = then && sayingOf(kind, then)
      if (saying) said.set(id, saying)
    }
    rest = rest.slice(found.length)
  }
  return wanted.map(kept => kept && said.get(kept.document))
}

/** Splits keys into chunks whose documents of both sides fit into memory together. */
function* chunksOf(
  keys: readonly string[],
  ...sides: readonly ReadonlyMap<string, Kept>[]
): Generator<readonly string[]> {
  const sizes = keys.map(key => sides.reduce((sum, side) => sum + (side.get(key)?.bytes ?? 0), 0))
  for (const portion of portionsOf(keys, sizes)) {
    for (let from = 0; from < portion.length; from += COMPARED_DOCUMENTS) {
      yield portion.slice(from, from + COMPARED_DOCUMENTS)
    }
  }
}
