/**
 * `npm run projection -- diff`: what two generations, or sandboxes, say differently: money, lines, records. Reads, and
 * changes nothing.
 */
import type { Identity } from '../../projector/kafka/source.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { CommandContext } from '../context.ts'
import { differencesOf, type Overview, overviewOf, type Side } from '../documents/compare.ts'
import { csvHeader, csvOf, ndjsonOf, type Row, type RowKind, tablesOf } from '../documents/rows.ts'
import { difference } from '../documents/sums.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { TABLE_ROWS } from '../limits.ts'
import { assertOfOneSource, positionsOf } from './generations.ts'
import { findAny } from './sandboxes.ts'

export const formats = ['table', 'csv', 'ndjson'] as const

export type DiffOptions = {
  /** Names of generations, or of sandboxes with what marks them. */
  readonly a: string
  readonly b: string
  readonly org: string | undefined
  readonly format: (typeof formats)[number]
}

export const diff = async ({ a, b, org: asked, format }: DiffOptions, context: CommandContext): Promise<ExitCode> => {
  if (a === b) throw new CommandError('a generation is always equal to itself: name two')
  const [ours, theirs] = [await findAny(a, context), await findAny(b, context)]
  assertOfOneSource(ours.identity, theirs.identity)
  const org = onlyOrganization(asked, [a, ours.identity], [b, theirs.identity])
  const onlyPartition =
    org !== undefined && [ours, theirs].some(({ identity }) => identity.sandbox?.org)
      ? partitionOf(org, ours.identity.partitions)
      : undefined
  const sideOf = async (name: string, { identity, context }: Awaited<ReturnType<typeof findAny>>): Promise<Side> => {
    const positions = (await positionsOf(identity, context)).map(({ position }) => position)
    const records = positions.reduce((sum, position) => sum + position, 0)
    const wanted = identity.sandbox?.bounds.reduce((sum, bound) => sum + bound, 0) ?? records
    context.say(`${name} as of ${records} records${records < wanted ? `: it is not whole yet, of ${wanted}` : ''}`)
    return { name, generation: identity.generation, positions, context, onlyPartition }
  }
  const [left, right] = [await sideOf(a, ours), await sideOf(b, theirs)]
  if (org !== undefined && asked === undefined) context.say(`only ${org}, as one of them is of that alone`)

  const [before, after] = [await overviewOf(left, org), await overviewOf(right, org)]
  const organizations = [...new Set([...before.digests.keys(), ...after.digests.keys()])].sort()
  const differing = organizations.filter(one => before.digests.get(one) !== after.digests.get(one))
  const counts: Record<RowKind, number> = { owed: 0, paid: 0, line: 0, record: 0 }
  const write = createWriter(format, [a, b], context)
  for (const one of differing) {
    for await (const row of differencesOf(one, left, right)) {
      counts[row.row]++
      write.row(row)
    }
    write.organizationEnds()
  }
  sayTotals(before, after, [a, b], context)
  if (differing.length === 0) {
    context.say(`no differences: ${organizations.length} organizations`)
    return exitCodes.done
  }
  const { owed, paid, line, record } = counts
  context.say(
    `${differing.length} of ${organizations.length} organizations differ: in ${owed} amounts owed, ${paid} paid, ${line} lines, ${record} records`,
  )
  return exitCodes.different
}

/** A sandbox of one organization can be compared in that one only. */
const onlyOrganization = (
  asked: string | undefined,
  ...sides: readonly (readonly [name: string, identity: Identity])[]
): string | undefined => {
  let only = asked
  for (const [name, { sandbox }] of sides) {
    const org = sandbox?.org ?? undefined
    if (org === undefined || org === only) continue
    if (only !== undefined) throw new CommandError(`${name} is of ${org} only: nothing of ${only} is in it`)
    only = org
  }
  return only
}

type Writer = { readonly row: (row: Row) => void; readonly organizationEnds: () => void }

const createWriter = (
  format: DiffOptions['format'],
  names: readonly [string, string],
  { out }: CommandContext,
): Writer => {
  if (format === 'csv') out(csvHeader)
  if (format !== 'table') {
    const textOf = format === 'csv' ? csvOf : ndjsonOf
    return { row: row => out(textOf(row)), organizationEnds: () => undefined }
  }
  let rows: Row[] = []
  const flush = (): void => {
    if (rows.length > 0) out(tablesOf(rows, names))
    rows = []
  }
  return {
    row: row => {
      rows.push(row)
      // Columns are as wide as what is in them: not of more than this at once.
      if (rows.length === TABLE_ROWS) flush()
    },
    organizationEnds: flush,
  }
}

/** Over all that was compared, equal or not. */
const sayTotals = (
  { money: a }: Overview,
  { money: b }: Overview,
  names: readonly [string, string],
  { say }: CommandContext,
): void => {
  for (const key of [...new Set([...a.keys(), ...b.keys()])].sort()) {
    const [before, after] = [a.get(key) ?? '0', b.get(key) ?? '0']
    say(`${key}: ${before} in ${names[0]}, ${after} in ${names[1]}, difference ${difference(before, after)}`)
  }
}
