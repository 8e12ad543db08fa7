/**
 * `commission projection totals`: what is owed and paid by period and currency, at one moment: table, CSV, JSON or
 * picture.
 */

import type { GenerationBody } from '../../core/log/index.ts'
import { type Moment, momentOf, recordIdOf } from '../../core/reading/index.ts'
import { bodyOf } from '../../core/store/index.ts'
import { instantOf } from '../../schemas/values.ts'
import { csvRow } from '../documents/rows.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import { describeMade } from '../generations/sandboxes.ts'
import { EXPORT_PAGE } from '../limits.ts'
import { aligned, fitColumn, printable } from '../terminal.ts'
import { writeWhole } from '../whole-file.ts'
import { drawTotals, type TotalsRow } from './chart.ts'
import { type ExportReaders, ofOneCopy, refuseUnknown } from './readers.ts'

export const periodKinds = ['month', 'quarter', 'year'] as const
type PeriodKind = (typeof periodKinds)[number]

export type TotalsOptions = {
  readonly org: string
  /** A generation, or `sandbox:NAME`. By default the live generation. */
  readonly generation?: string | undefined
  readonly asOf: Moment | undefined
  readonly kind: PeriodKind | undefined
  /** File for the picture. */
  readonly svg: string | undefined
  readonly csv?: boolean
  readonly json: boolean
}
type TotalsSteps = ExportReaders & {
  readonly out: (text: string) => void
  readonly say: (line: string) => void
  /** The generation that was named; absent of the live one. */
  readonly identity?: GenerationBody
}

export const showTotals = async (
  { org, generation, asOf, kind, svg, csv = false, json }: TotalsOptions,
  given: TotalsSteps,
): Promise<ExitCode> => {
  const steps = ofOneCopy(given, 'run the same again')
  const { totals, last } = await steps.readTotals(org, asOf)
  if (!last) await refuseUnknown(org, steps)
  const periods = await readPeriods(org, totals.last_change_id, steps)
  // In the order in which the periods were first recorded.
  const order = [...periods.keys()]
  const rows: TotalsRow[] = totals.totals
    .filter(({ period_id }) => kind === undefined || periods.get(period_id)?.kind === kind)
    .map(row => ({
      ...row,
      period: printable(periods.get(row.period_id)?.name ?? row.period_id),
      still_owed: row.open_amount,
    }))
    .toSorted((a, b) => order.indexOf(a.period_id) - order.indexOf(b.period_id))
  const { identity } = steps
  const made = identity && `${generation}: ${describeMade(identity)}`
  if (svg !== undefined) {
    const moment = last ? `As of ${last.id}, ${instantOf(last.at)}` : 'Nothing was recorded'
    await writeWhole(svg, drawTotals(rows, { organization: org, moment, made }))
    steps.say(`drawn into ${svg}`)
  }
  if (json) {
    const { rules_version, sandbox } = identity ?? {}
    const of = { organization: org, as_of: totals.last_change_id, generation, rules_version, sandbox }
    steps.out(`${JSON.stringify({ ...of, totals: rows })}\n`)
    return exitCodes.done
  }
  // Rows of CSV are for programs: no line of words is among them.
  if (csv && made !== undefined) steps.say(made)
  const heading = made === undefined ? '' : `${made}\n`
  steps.out(csv ? csvTable(rows) : `${heading}${tableOf(rows)}`)
  return exitCodes.done
}

type Period = { readonly name: string; readonly kind: PeriodKind }

const readPeriods = async (
  org: string,
  change: string | null,
  { readList }: TotalsSteps,
): Promise<Map<string, Partial<Period>>> => {
  const periods = new Map<string, Partial<Period>>()
  if (change === null) return periods
  const asOf = momentOf(change)
  for (let after: string | undefined, more = true; more; ) {
    const startingAfter = after === undefined ? undefined : ({ kind: 'periods', id: after } as const)
    const page = await readList(org, 'periods', { limit: EXPORT_PAGE, startingAfter, asOf })
    for (const hit of page.hits) periods.set(recordIdOf(hit), bodyOf<Period>(hit))
    const last = page.hits.at(-1)
    after = last && recordIdOf(last)
    more = page.hasMore
  }
  return periods
}

/** Amounts have the characters of the API. */
const csvTable = (rows: readonly TotalsRow[]): string =>
  [csvRow(csvColumns), ...rows.map(row => csvRow(csvColumns.map(name => String(row[name]))))].join('')

const csvColumns = [
  'period_id',
  'period',
  'currency',
  'owed_amount',
  'owed_count',
  'paid_amount',
  'paid_count',
  'open_amount',
] as const

const tableOf = (rows: readonly TotalsRow[]): string => {
  const amounts = (of: (row: TotalsRow) => string) => sameDigits(rows.map(of))
  const [owed, paid, still] = [
    amounts(row => row.owed_amount),
    amounts(row => row.paid_amount),
    amounts(row => row.still_owed),
  ]
  const lines = rows.map((row, at) => [
    row.period_id,
    fitColumn(row.period),
    row.currency,
    owed[at] ?? '',
    `${row.owed_count}`,
    paid[at] ?? '',
    `${row.paid_count}`,
    still[at] ?? '',
  ])
  const head = ['period', '', 'currency', 'owed', 'payouts', 'paid', 'records', 'still owed']
  return `${aligned([head, ...lines], [3, 4, 5, 6, 7])}\n`
}

/** Pads all amounts to the same number of decimal places, so that the decimal points are aligned. */
const sameDigits = (amounts: readonly string[]): string[] => {
  const digitsOf = (amount: string): number => amount.split('.')[1]?.length ?? 0
  // Not `Math.max(...amounts)`: a call takes fewer arguments than there may be rows.
  const max = amounts.reduce((most, amount) => Math.max(most, digitsOf(amount)), 0)
  return amounts.map(amount => {
    const missing = '0'.repeat(max - digitsOf(amount))
    return missing === '' ? amount : `${amount}${amount.includes('.') ? '' : '.'}${missing}`
  })
}
