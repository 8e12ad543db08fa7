/** `commission projection diff`: compares the money, lines and records of two generations or sandboxes. Read-only. */

import type { GenerationBody } from '../../core/log/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { CommandContext, Out } from '../context.ts'
import {
  compareOrganization,
  type OrganizationComparison,
  type Overview,
  overviewOf,
  type Side,
} from '../documents/compare.ts'
import { createPage } from '../documents/page.ts'
import { csvHeader, csvOf, type DifferenceRow, ndjsonOf, type RowKind, tablesOf } from '../documents/rows.ts'
import { subtract } from '../documents/sums.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { TABLE_ROWS } from '../limits.ts'
import { assertWritable, writeWhole } from '../whole-file.ts'
import { assertSameCopy, commonPositions, copyAt } from './compared.ts'
import { assertOfOneSource, recordsBefore, servedDocumentsOf } from './generations.ts'
import { differenceOfFollower, findAny, onlyOf } from './sandboxes.ts'

export const diffFormats = ['table', 'csv', 'ndjson'] as const

export type DiffOptions = {
  /** Names of generations, or `sandbox:NAME`. */
  readonly a: string
  readonly b: string
  readonly org: string | undefined
  readonly format: (typeof diffFormats)[number]
  /** File for a page, in place of the output. */
  readonly html: string | undefined
}

/** `out` is awaited: the differences may be many, and their reader slow. */
type DiffContext = Omit<CommandContext, 'out'> & { readonly out: Out<string | Buffer> }

export const diff = async (options: DiffOptions, context: DiffContext): Promise<ExitCode> => {
  const { a, b, org: asked, html } = options
  if (html !== undefined) await assertWritable(html)
  if (a === b) throw new CommandError('a generation is always equal to itself: name two')
  const notes: string[] = []
  const note = (text: string): void => {
    context.say(text)
    notes.push(text)
  }
  // Also on a page: what differs there may be missing here.
  const noting = { ...context, say: note }
  const [ours, theirs] = [await findAny(a, noting), await findAny(b, noting)]
  assertOfOneSource(ours.identity, theirs.identity)
  const org = onlyOrganization(asked, [a, ours.identity], [b, theirs.identity])
  const partition = org === undefined ? undefined : partitionOf(org, ours.identity.partitions)
  const onlyPartition = [ours, theirs].some(({ identity }) => identity.sandbox?.org) ? partition : undefined
  const readSide = async ({ identity, context }: typeof ours) => {
    const documents = await servedDocumentsOf(identity, context, partition)
    return { copy: copyAt(identity, documents), positions: documents.map(({ position }) => position) }
  }
  const [ofA, ofB] = [await readSide(ours), await readSide(theirs)]
  // Generations grow: those of the later read would have records more. A sandbox is compared as it was made.
  const isGrowing = !ours.identity.sandbox && !theirs.identity.sandbox
  const common = isGrowing ? commonPositions([a, ofA.positions], [b, ofB.positions]) : undefined
  const sideOf = (
    name: string,
    { identity, context }: Awaited<ReturnType<typeof findAny>>,
    positions: readonly number[],
  ): Side => {
    const records = recordsBefore(positions)
    const wanted = identity.sandbox ? recordsBefore(identity.sandbox.bounds) : records
    note(`${name} as of ${records} records${records < wanted ? ` of ${wanted}: not complete yet` : ''}`)
    return { identity, positions, context, onlyPartition }
  }
  const [left, right] = [sideOf(a, ours, common ?? ofA.positions), sideOf(b, theirs, common ?? ofB.positions)]
  if (org !== undefined && asked === undefined) note(`only ${org}: one side has no other organization`)
  const followers = isGrowing ? [] : [ours, theirs].map(({ identity }) => differenceOfFollower(identity))
  for (const why of followers) if (why !== undefined) note(why)

  const [before, after] = [await overviewOf(left, org), await overviewOf(right, org)]
  const organizations = [...new Set([...before.digests.keys(), ...after.digests.keys()])].sort()
  const differing = organizations.filter(one => before.digests.get(one) !== after.digests.get(one))
  const counts: Record<RowKind, number> = { owed: 0, paid: 0, line: 0, record: 0 }
  const write = createWriter(options, notes, context)
  for (const one of differing) {
    const comparison = await compareOrganization(one, left, right)
    write.begin(comparison)
    for await (const row of comparison.rows) {
      counts[row.row]++
      await write.row(row)
    }
    await write.end()
  }
  // Each kind was read at another moment, by name.
  await assertSameCopy(a, ofA.copy, ours.identity, undefined, ours.context)
  await assertSameCopy(b, ofB.copy, theirs.identity, undefined, theirs.context)
  reportTotals(before, after, [a, b], context)
  const { owed, paid, line, record } = counts
  const summary =
    differing.length === 0
      ? `no differences: ${organizations.length} organizations`
      : `${differing.length} of ${organizations.length} organizations differ: in ${owed} amounts owed, ${paid} paid, ${line} lines, ${record} records`
  await write.finish(before, after, summary)
  context.say(summary)
  return differing.length === 0 ? exitCodes.done : exitCodes.different
}

/** A sandbox of one organization limits the comparison to it. */
const onlyOrganization = (
  asked: string | undefined,
  ...sides: readonly (readonly [name: string, identity: GenerationBody])[]
): string | undefined => {
  let only = asked
  for (const [name, { sandbox }] of sides) {
    const org = sandbox?.org ?? undefined
    if (org === undefined || org === only) continue
    if (only !== undefined) throw onlyOf(name, org, only)
    only = org
  }
  return only
}

/** `begin` and `end` surround the rows of an organization. */
type Writer = {
  readonly begin: (organization: OrganizationComparison) => void
  readonly row: (row: DifferenceRow) => Promise<void> | undefined
  readonly end: () => Promise<void> | undefined
  readonly finish: (before: Overview, after: Overview, summary: string) => Promise<void>
}

const createWriter = (
  { a, b, format, html }: DiffOptions,
  notes: readonly string[],
  { out, say }: DiffContext,
): Writer => {
  const nothing = { begin: () => undefined, end: () => undefined, finish: async () => undefined }
  if (html !== undefined) {
    const page = createPage([a, b], notes)
    const finish: Writer['finish'] = async (before, after, summary) => {
      await writeWhole(html, page.html(before.money, after.money, summary))
      say(`written into ${html}`)
    }
    return { begin: page.begin, row: row => void page.row(row), end: () => void page.end(), finish }
  }
  if (format === 'csv') void out(csvHeader)
  if (format !== 'table') {
    const textOf = format === 'csv' ? csvOf : ndjsonOf
    return { ...nothing, row: row => out(textOf(row)) }
  }
  let rows: DifferenceRow[] = []
  const flush = (): Promise<void> | undefined => {
    const written = rows.length > 0 ? out(tablesOf(rows, [a, b])) : undefined
    rows = []
    return written
  }
  return {
    ...nothing,
    row: row => {
      rows.push(row)
      // Column widths are computed from the buffered rows: limits the buffer.
      return rows.length === TABLE_ROWS ? flush() : undefined
    },
    end: flush,
  }
}

/** Totals over all compared organizations, equal ones included. */
const reportTotals = (
  { money: a }: Overview,
  { money: b }: Overview,
  names: readonly [string, string],
  { say }: CommandContext,
): void => {
  for (const key of [...new Set([...a.keys(), ...b.keys()])].sort()) {
    const [before, after] = [a.get(key) ?? '0', b.get(key) ?? '0']
    say(`${key}: ${before} in ${names[0]}, ${after} in ${names[1]}, difference ${subtract(before, after)}`)
  }
}
