/**
 * The page of a close, for people: the reconciliation first, then each replaced payout, parked records, keys, files.
 * In: the content of the folder's files. Out: one page that loads nothing. Promises: no clock and no random text in it;
 * each text is escaped; a list that is cut says so.
 */
import { documentOf, type TableCell, table } from '../documents/page-parts.ts'
import type { FileDescription } from '../export/manifest.ts'
import { PAGE_ROWS } from '../limits.ts'
import { type Markup, markup } from '../markup.ts'
import { positionOf } from '../parked/find.ts'
import type { AuditReads } from './close-audit.ts'
import type { ControlTotals, Reconciled, ReplacedPayout } from './close-controls.ts'
import type { CloseHead, KeyRow, ParkedRow } from './close-manifest.ts'

type Content = {
  readonly head: CloseHead
  readonly periodName: string
  readonly reconciled: readonly Reconciled[]
  readonly replacements: readonly ReplacedPayout[]
  readonly parked: readonly ParkedRow[]
  readonly keys: readonly KeyRow[]
  readonly reads: AuditReads | undefined
  readonly files: Readonly<Record<string, FileDescription>>
  readonly digest: string
}

export const closePage = ({
  head,
  periodName,
  reconciled,
  replacements,
  parked,
  keys,
  reads,
  files,
  digest,
}: Content): string => {
  const { organization, period, as_of, published_at, position, rules_version, key_rules_version } = head
  return documentOf(
    `Close of ${periodName}`,
    markup`<p>Organization <code>${organization}</code>, period <code>${period}</code>, as of the change <code>${as_of}</code>,
published at ${published_at}: the position <code>${position.topic}:${position.partition}:${position.offset}</code>.
Rules of version ${rules_version}, rules of keys of version ${key_rules_version}.</p>
<h2>Reconciliation</h2>
<p>Each number was counted from the changes, from the records and from the lines in this folder, and is what <code>/totals</code> of the API answers for this change.</p>
${table(['currency', '', 'changes', 'records', 'lines', '/totals', ''], reconciled, reconciledCells)}
<h2>Control totals</h2>
<p>First payouts, then the effect of all replacements, are what is owed; payments and voids are what was paid.</p>
${head.control_totals.map(controlText)}
<h2>Replaced payouts</h2>
${listed(replacements, ['rep', 'payout', 'replaces', 'currency', 'before', 'after', 'difference'], row => [
  row.rep_id,
  row.payout_id,
  row.replaces_id,
  row.currency,
  amount(row.before),
  amount(row.after),
  { amount: row.difference, isDifference: true },
])}
<h2>Parked records</h2>
<p>Records of the organization that changed nothing, of any period: of its own partition before this position, and ${others(head)}. A record whose organization cannot be read is not among them.</p>
${listed(parked, ['position', 'published at', 'code', 'type', 'event'], row => [row.position, row.published_at, row.code, row.type, row.event_id])}
<h2>Keys that could read</h2>
<p>Of the events before offset ${head.keys_position.offset} of <code>${head.keys_position.topic}</code>.</p>
${listed(keys, ['key', 'name', 'permissions', 'expires at', 'networks', ''], row => [
  row.id,
  row.name,
  row.permissions,
  row.expires_at,
  row.allowed_networks,
  row.revoked ? 'revoked' : '',
])}
${
  reads === undefined
    ? ''
    : markup`<h2>Who read</h2>
<p>From the audit log that was given: answers with records, of any period of this organization.</p>
${listed(reads, ['key', 'path', 'requests', 'records', 'first', 'last'], row => [row.key_id, row.route, `${row.requests}`, `${row.records}`, row.first, row.last])}`
}
<h2>Files</h2>
${table(['file', 'records', 'bytes', 'SHA-256'], Object.values(files), file => [file.file, `${file.records}`, `${file.bytes}`, markup`<code>${file.sha256}</code>`])}
<p>Digest of all: <code>${digest}</code>. The tables (<code>.csv</code>, <code>.parquet</code>) are made from these files; <code>manifest.json</code> has their digests and that of this page.
<code>commission verify DIRECTORY --key PUBLIC</code> compares everything, without any service.</p>`,
  )
}

const others = ({ parked_positions }: CloseHead): Markup =>
  parked_positions.length === 0
    ? markup`no further ones`
    : markup`those before <code>${parked_positions.map(positionOf).join(' ')}</code>`

const amount = (text: string | null): TableCell => ({ amount: text, isDifference: false })

const reconciledCells = (row: Reconciled): TableCell[] => [
  row.currency,
  row.compared,
  amount(row.from_changes),
  amount(row.from_records),
  amount(row.from_lines),
  amount(row.from_totals),
  'equal',
]

const controlText = (row: ControlTotals): Markup => {
  const lines: [name: string, count: number | null, amount: string][] = [
    ['first payouts', row.first_payouts, row.first_amount],
    ['replacements', row.replacements, row.replaced_amount],
    ['owed: current payouts', row.owed_count, row.owed_amount],
    ['payments', row.payments, row.payments_amount],
    ['voids', row.voids, row.voids_amount],
    ['paid', row.paid_count, row.paid_amount],
    ['open: owed less paid', null, row.open_amount],
  ]
  return table(['', 'number', row.currency], lines, ([name, count, sum]) => [
    name,
    count === null ? '' : `${count}`,
    amount(sum),
  ])
}

/** A table of the first rows. */
const listed = <Row>(
  rows: readonly Row[],
  head: readonly string[],
  cells: (row: Row) => readonly TableCell[],
): Markup => {
  if (rows.length === 0) return markup`<p>None.</p>`
  const left = rows.length - PAGE_ROWS
  const cut = left > 0 ? markup`<p class="left-out">Left out of this page: ${left} rows. The files have all.</p>` : ''
  return markup`${table(head, rows.slice(0, PAGE_ROWS), cells)}
${cut}`
}
