/**
 * Compares all documents of two generations, or those of one organization, as of positions that both have reached. Of
 * each, counts the sums of its balances again, from its records. Writes only a note of the result: of one organization
 * only that it differs, because the others may differ, too.
 */
import type { GenerationBody } from '../../core/log/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { CommandContext } from '../context.ts'
import { type DocumentDifference, documentDifferences } from '../documents/find-differences.ts'
import { type Summary, summarize } from '../documents/summarize.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { DIFFERENCES_SHOWN, SHOWN_CHARACTERS } from '../limits.ts'
import { printable } from '../terminal.ts'
import { assertSameCopy, commonPositions, copyAt, noteComparison } from './compared.ts'
import { assertOfOneSource, identityOf, readAll, recordsBefore, servedDocumentsOf } from './generations.ts'

export type VerifyOptions = {
  readonly a: string
  readonly b: string
  /** The only organization to compare; undefined for all, and for parked records without one. */
  readonly org?: string | undefined
  readonly json: boolean
}

/** Both could lack the same documents. */
const NO_RESULT = 'The comparison has no result'

export const verify = async ({ a, b, org: only, json }: VerifyOptions, context: CommandContext): Promise<ExitCode> => {
  if (a === b) throw new CommandError('a generation is always equal to itself: name two')
  const [ours, theirs] = [await identityOf(a, NO_RESULT, context), await identityOf(b, NO_RESULT, context)]
  assertOfOneSource(ours, theirs)
  const before = await readAll(context)
  const partition = only === undefined ? undefined : partitionOf(only, ours.partitions)
  const documentsOf = (identity: GenerationBody) => servedDocumentsOf(identity, context, partition)
  const [ofA, ofB] = [await documentsOf(ours), await documentsOf(theirs)]
  const copies = [copyAt(ours, ofA), copyAt(theirs, ofB)] as const
  // Of other partitions nothing is compared.
  const reached = (documents: typeof ofA): number[] =>
    documents.map(({ position }, at) => ((partition ?? at) === at ? position : 0))
  const positions = commonPositions([a, reached(ofA)], [b, reached(ofB)])
  const records = `${recordsBefore(positions)} records${partition === undefined ? '' : ` of partition ${partition}`}`
  context.say(`comparing ${only === undefined ? '' : `${only} in `}${a} and ${b} as of ${records}`)
  const [one, other] = [
    await summarize(ours, positions, only, context),
    await summarize(theirs, positions, only, context),
  ]
  const [left, right] = [one.summaries, other.summaries]
  const wrong = [
    ...one.wrongBalances.map(balance => ({ generation: a, ...balance })),
    ...other.wrongBalances.map(balance => ({ generation: b, ...balance })),
  ]

  const organizations = [...new Set([...left.keys(), ...right.keys()])].sort()
  // Balances can be left when all records are lost: these are named first.
  if (only !== undefined && organizations.length === 0 && wrong.length === 0) {
    throw new CommandError(`neither ${a} nor ${b} has anything of ${only}, as of ${records}`)
  }
  const differing = organizations.filter(org => left.get(org)?.digest !== right.get(org)?.digest)
  await assertSameCopy(a, copies[0], ours, NO_RESULT, context)
  await assertSameCopy(b, copies[1], theirs, NO_RESULT, context)
  // Stored before it is printed: after an operator has read of a difference, no older note may still say `equal`.
  const found = differing.length + wrong.length > 0 ? 'different' : 'equal'
  const isOfAll = only === undefined
  const unnoted =
    isOfAll || found === 'different'
      ? await noteComparison(found, { a: ours, b: theirs, copies, positions, before }, context)
      : undefined
  if (json) {
    const of = (org: string) => ({ [a]: jsonOf(left.get(org)), [b]: jsonOf(right.get(org)) })
    for (const organization of organizations) {
      context.out(
        `${JSON.stringify({ organization, equal: !differing.includes(organization), ...of(organization) })}\n`,
      )
    }
  } else for (const org of organizations) context.out(`${lineOf(org, left.get(org), right.get(org))}\n`)

  for (const { generation, organization, sequence } of wrong.slice(0, DIFFERENCES_SHOWN)) {
    if (json) context.out(`${JSON.stringify({ generation, organization, wrong_balance: sequence })}\n`)
    else
      context.out(`${generation} ${organization}: the balance after change ${sequence} is not the sum of the records\n`)
  }
  if (wrong.length > 0) context.say(`${wrong.length} balances are wrong: totals that are counted from them are, too`)
  if (differing.length > 0) {
    let shown = 0
    for await (const difference of differencesOf(differing)) {
      if (shown === DIFFERENCES_SHOWN) {
        context.say(`only the first ${DIFFERENCES_SHOWN} differing records are shown`)
        break
      }
      shown++
      context.out(json ? `${JSON.stringify(difference)}\n` : `${describeDifference(difference, a, b)}\n`)
    }
    context.say(`${differing.length} of ${organizations.length} organizations differ`)
    return exitCodes.failed
  }
  if (wrong.length > 0) return exitCodes.failed
  if (!isOfAll) {
    context.say(
      `equal: ${only}, as of ${records}. A swap needs a comparison of all organizations: verify without --org`,
    )
    return exitCodes.done
  }
  context.say(`equal: ${organizations.length} organizations, as of ${records}`)
  if (unnoted !== undefined) context.say(`a swap cannot use this result: ${unnoted}; run verify again`)
  return exitCodes.done

  async function* differencesOf(orgs: readonly string[]): AsyncGenerator<DocumentDifference> {
    for (const org of orgs) {
      const counts = [left.get(org)?.counts ?? {}, right.get(org)?.counts ?? {}]
      yield* documentDifferences(org, { a: ours, b: theirs, positions }, counts, context)
    }
  }
}

const describeDifference = ({ kind, id, field, a, b }: DocumentDifference, nameA: string, nameB: string): string => {
  if (a === undefined && field === '') return `${kind} ${id}: only in ${nameB}`
  if (b === undefined && field === '') return `${kind} ${id}: only in ${nameA}`
  return `${kind} ${id}: ${printable(field)} is ${textOf(a)} in ${nameA}, ${textOf(b)} in ${nameB}`
}

/** A publisher's text, escaped and cut for a terminal. `--json` prints it whole. */
const textOf = (value: unknown): string => {
  const text = printable(JSON.stringify(value)?.slice(0, SHOWN_CHARACTERS + 1) ?? 'nothing')
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`
}

/** These have a document for each version, and a head, which lists the versions. */
const isVersioned = (kind: string): boolean => kind === 'reps' || kind === 'periods'

const NOTHING: Summary = { counts: {}, owed: {}, paid: {}, digest: '' }

/** Programs read the paid amounts as `left`. */
const jsonOf = (summary: Summary | undefined) => {
  if (summary === undefined) return null
  const { counts, owed, paid: left, digest } = summary
  return { counts, owed, left, digest }
}

const lineOf = (org: string, a: Summary | undefined, b: Summary | undefined): string => {
  const { counts, owed, paid } = a ?? b ?? NOTHING
  const sums = (of: Record<string, string>): string =>
    Object.entries(of)
      .map(([currency, sum]) => `${sum} ${currency}`)
      .join(', ') || 'nothing'
  const count = Object.entries(counts)
    .map(([kind, number]) => `${number} ${isVersioned(kind) ? `${kind} with versions` : kind}`)
    .join(', ')
  const verdict = a?.digest === b?.digest ? 'equal' : 'DIFFERENT'
  return `${org === '' ? '(no organization)' : org}: ${verdict}; ${count}; owed ${sums(owed)}; paid ${sums(paid)}`
}
