/** A small organization whose state is computed, and copies of it that grow by parts. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type ListParameters, type Moment, textOfName } from '../../core/reading/index.ts'
import { sliceSearch } from '../../core/store/read/slice-documents.ts'
import { Exact } from '../../schemas/money.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import { addPart } from '../../tools/export/add-part.ts'
import { type ExportOptions, type ExportSteps, LAST_PART_FILE } from '../../tools/export/export.ts'
import { runningProcesses } from '../../tools/export/lock.ts'
import type { Manifest } from '../../tools/export/manifest.ts'
import { CommandError } from '../../tools/failures.ts'

type Change = { readonly kind: ListKind; readonly id: string; readonly body: Record<string, unknown> }
const rep = (id: string, name: string): Change => ({ kind: 'reps', id, body: { id, name } })
const money = { rep_id: 'rep_A', period_id: 'period_A', currency: 'EUR' }
const payout = (id: string, net_amount: string, supersedes_id: string | null = null): Change => {
  const line_items = [{ id: 'line_1', category: 'earned', description: 'Deal', amount: net_amount, deal_id: null }]
  return {
    kind: 'payouts',
    id,
    body: { id, ...money, net_amount, earned_amount: net_amount, supersedes_id, line_items },
  }
}
const payment = (id: string, amount: string): Change => {
  const destination = { type: 'bank_account', label: 'IBAN 1' }
  return { kind: 'payroll_files', id, body: { id, ...money, amount, destination } }
}

const history: readonly Change[] = [
  rep('rep_A', 'Ines'),
  { kind: 'periods', id: 'period_A', body: { id: 'period_A', kind: 'month', name: 'January' } },
  payout('payout_A', '10.50'),
  rep('rep_B', 'Omar'),
  payout('payout_B', '3'),
  payout('payout_C', '11.25', 'payout_A'),
  payout('payout_D', '12.75', 'payout_C'),
  payment('payroll_A', '11.25'),
  rep('rep_A', 'Ines N.'),
  payout('payout_E', '4', 'payout_B'),
  payment('payroll_B', '-1.25'),
]
const ordinalAt = (seq: number): number => history.slice(0, seq + 1).filter(({ id }) => id === history[seq]?.id).length
const nameAt = (seq: number): string => {
  const { kind = '', id = '' } = history[seq] ?? {}
  return kind === 'reps' || kind === 'periods' ? `${id}.${ordinalAt(seq)}` : id
}
const seqOf = (change: string): number => history.findIndex((_, seq) => nameAt(seq) === change)

const generation = { name: 'g1', source: 's', partitions: 1, rules: 2 }
const position = { generation, publishedTo: 100, time: 7 }
const hitOf = (seq: number): string => {
  const { kind, id, body } = history[seq] as Change
  const text = JSON.stringify(body)
  const source = `{"org_id":"org_a","first_seq":${seq},"seq":${seq},"ordinal":${ordinalAt(seq)},"hash":"h","body_bytes":${Buffer.byteLength(text)},"body":${text}}`
  return `{"_index":"p-g1-${kind}","_id":"org_a:${id}:${seq}","_score":null,"_source":${source},"sort":[${seq}]}`
}
const kinds = ['reps', 'periods', 'payouts', 'payroll_files'] as const
const hitsOf = (seqs: readonly number[]) =>
  sliceSearch(
    Buffer.from(
      `{"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"max_score":null,"hits":[${seqs.map(hitOf).join()}]}}`,
    ),
    kinds.map(kind => ({ name: `p-g1-${kind}`, kind })),
    'org_a',
  )
/** The changes of a list that are current as of a change. */
const currentAt = (kind: ListKind, end: number): number[] => {
  const all = history.flatMap((change, seq) => (change.kind === kind && seq <= end ? [seq] : []))
  const later = (seq: number) =>
    all.some(
      other =>
        other > seq &&
        (history[other]?.id === history[seq]?.id || history[other]?.body.supersedes_id === history[seq]?.id),
    )
  return all.filter(seq => !later(seq))
}
const sumOf = (seqs: readonly number[], field: string): string =>
  seqs.reduce((sum, seq) => sum.plus(String(history[seq]?.body[field])), new Exact('0')).toFixed()

/** `end`: the last change that is published. `turn`: called for each page. */
export const growingSteps = (
  end: number,
  more: Partial<ExportSteps> = {},
  turn: () => void = () => undefined,
): ExportSteps => {
  const endOf = (asOf: Moment | undefined): number => {
    if (asOf === undefined) return end
    const seq = asOf.kind === 'change' ? seqOf(textOfName(asOf.name)) : end
    if (seq === -1) throw new CommandError('--as-of: there is no such change of this organization')
    return seq
  }
  const steps = {
    readTotals: async (_: string, asOf: Moment | undefined) => {
      const seq = endOf(asOf)
      const [owing, paying] = [currentAt('payouts', seq), currentAt('payroll_files', seq)]
      const row = {
        ...{ period_id: 'period_A', currency: 'EUR', open_amount: '0' },
        ...{ owed_amount: sumOf(owing, 'net_amount'), owed_count: owing.length },
        ...{ paid_amount: sumOf(paying, 'amount'), paid_count: paying.length },
      }
      const totals = { last_change_id: nameAt(seq), last_sequence: seq + 1, totals: [row] }
      return {
        position: { ...position, publishedTo: seq + 1 },
        totals,
        last: { id: nameAt(seq), sequence: seq + 1, seq, at: 1 },
      }
    },
    readList: async (_: string, list: ListKind | 'changes', { startingAfter, asOf }: ListParameters) => {
      turn()
      const until = endOf(asOf)
      const all = list === 'changes' ? history.map((_, seq) => seq).filter(seq => seq <= until) : currentAt(list, until)
      const cursor = startingAfter && textOfName(startingAfter)
      const from =
        cursor === undefined
          ? 0
          : all.findIndex(seq => nameAt(seq) === cursor || (list !== 'changes' && history[seq]?.id === cursor)) + 1
      return { position, hits: hitsOf(all.slice(from, from + 2)), hasMore: from + 2 < all.length }
    },
    readStatement: async (_: string, id: string) => {
      turn()
      const found = history.find(change => change.kind === 'payouts' && change.id === id)
      return { text: Buffer.from(JSON.stringify({ ...found?.body, calculation_trace: [] })), position }
    },
    countOf: async (_: string, kind: ListKind, { publishedTo }: { publishedTo: number }) =>
      currentAt(kind, publishedTo - 1).length,
    out: () => undefined,
    say: () => undefined,
    draw: undefined,
    signal: new AbortController().signal,
    sourceOf: async () => ({ topic: 't', partition: 0, rules_version: 2 }),
    sleep: async () => undefined,
    now: () => 1_000_000,
    processes: runningProcesses,
    readReceipts: async () => [],
    ...more,
  }
  return steps as unknown as ExportSteps
}

export const emptyCopy = (): string => {
  const out = mkdtempSync(join(tmpdir(), 'growing-'))
  onTestFinished(() => rmSync(out, { recursive: true, force: true }))
  return out
}
export const growTo = (out: string, end: number, more: Partial<ExportOptions> = {}, steps = growingSteps(end)) =>
  addPart({ org: 'org_a', asOf: undefined, out, parquet: true, json: false, ...more }, steps)
export const copiedFiles = (out: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(out, { recursive: true, encoding: 'utf8' })
      .filter(name => /\.\w+$/.test(name))
      .sort()
      .map(name => [name, readFileSync(join(out, name), 'latin1')]),
  )

export const partsOfCopy = (out: string): string[] =>
  readdirSync(out)
    .filter(name => name !== LAST_PART_FILE)
    .sort()

/** The file that names a part as the last one. */
export const textOfLastPart = (files: Readonly<Record<string, string>>, part: string): string => {
  const { as_of, digest } = JSON.parse(files[`${part}/manifest.json`] ?? '') as Manifest
  const { texts } = JSON.parse(files[LAST_PART_FILE] ?? '{}') as { texts?: string }
  return `${JSON.stringify({ part, as_of, digest, texts }, null, 2)}\n`
}

/** A copy of three parts: up to the fifth change, the eighth, and the last. */
export const growingEnds = [4, 7, 10] as const
export const grownCopy = async (more: Partial<ExportOptions> = {}): Promise<string> => {
  const out = emptyCopy()
  for (const end of growingEnds) expect(await growTo(out, end, more)).toBe(0)
  return out
}
