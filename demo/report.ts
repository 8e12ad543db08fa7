/** The output at the end of the demo: a table, and commands to try. */

import { inGroups } from '../schemas/money.ts'
import type { AnswerDifference } from './check/compare.ts'
import { sumByCurrency } from './data/expected.ts'
import type { DemoInstallation } from './run/installation.ts'
import { percentileOf } from './run/latency-probe.ts'
import type { ScenarioResult } from './run/scenario.ts'

/** Returns the lines of the table of figures. */
export const figureTable = ({ figures, cases }: ScenarioResult): string[] => {
  const { counts, latencies } = figures
  const rows: [string, string][] = [
    ['records published', `${count(figures.published)} in ${figures.publishSeconds.toFixed(1)} s`],
    ['  searchable after', `${figures.searchableSeconds.toFixed(1)} s more`],
    ['  applied', count(counts.applied)],
    ['  duplicates', count(counts.duplicate)],
    ['  parked', count(counts.parked)],
    ['records read over HTTP', `${count(figures.read)} in ${figures.readSeconds.toFixed(1)} s`],
    ...cases.flatMap(({ organization: { name }, expected }): [string, string][] => [
      [`${name}: payouts`, `${count(expected.payouts.length)} current, ${count(expected.superseded.length)} replaced`],
      ['  owed', money(sumByCurrency(expected.payouts, 'net_amount'))],
      ['  left through payroll', money(sumByCurrency(expected.payroll_files, 'amount'))],
    ]),
    [
      'publish → visible',
      `p50 ${percentileOf(latencies, 50).toFixed(0)} ms, p99 ${percentileOf(latencies, 99).toFixed(0)} ms`,
    ],
  ]
  const width = Math.max(...rows.map(([label]) => label.length))
  return rows.map(([label, value]) => `  ${label.padEnd(width)}  ${value}`)
}

const count = (records: number): string => records.toLocaleString('en')

const money = (sums: ReadonlyMap<string, string>): string =>
  sums.size === 0 ? 'nothing' : [...sums].map(([currency, sum]) => `${currency} ${amountText(sum)}`).join('   ')

/** An amount in groups, with all its decimals, and with at least two. */
export const amountText = (amount: string): string => inGroups(withCents(amount))

/** An amount with at least two decimals. */
const withCents = (amount: string): string => {
  const [whole, fraction = ''] = amount.split('.')
  return `${whole}.${fraction.padEnd(2, '0')}`
}

/** Differences that are printed. */
const DIFFERENCES_SHOWN = 100

/** Returns a line for each difference, at most DIFFERENCES_SHOWN, after a heading. */
export const differenceLines = (differences: readonly AnswerDifference[]): string[] => {
  if (differences.length === 0) return ['Everything the API returned is what was published.']
  const shown = differences.slice(0, DIFFERENCES_SHOWN)
  return [
    `${differences.length} DIFFERENCES between what was published and what the API returned:`,
    ...shown.map(({ what, expected, got }) => `  ${what}: expected ${expected}, got ${got}`),
    ...(shown.length < differences.length ? [`  … and ${differences.length - shown.length} more`] : []),
  ]
}

/** The first deal that a payout has a line of; empty without one. */
export const dealOf = (payout: Readonly<Record<string, unknown>> | undefined): string => {
  const lines = (payout?.line_items ?? []) as readonly { readonly deal_id: string | null }[]
  return lines.find(({ deal_id }) => deal_id !== null)?.deal_id ?? ''
}

/** Returns commands that read the first organization. */
export const suggestionsOf = (
  { base, apiAdmin, projectorAdmin, folder, settings, explorer }: DemoInstallation & { readonly explorer: string },
  { cases: [first] }: Pick<ScenarioResult, 'cases'>,
): string[] => {
  if (first === undefined) return []
  const { organization, expected } = first
  const withKey = (path: string) =>
    `  curl -s -H 'Authorization: Bearer ${organization.keys.reading.text}' '${base}${path}'`
  const tenth = expected.payouts[9]?.id ?? ''
  const replaced = expected.superseded[0]?.id ?? tenth
  const rep = expected.superseded[0]?.rep_id ?? ''
  const period = expected.superseded[0]?.period_id ?? ''
  const deal = dealOf(expected.superseded[0])
  return [
    `What to try next, as ${organization.name}:`,
    '',
    '  # in a browser. Only in the demo, a link has a key',
    `  ${explorer}/#key=${organization.keys.reading.text}`,
    '  # the first payouts that are owed, and the page after the tenth',
    withKey('/payouts?limit=10'),
    withKey(`/payouts?limit=10&starting_after=${tenth}`),
    '  # a payout that was replaced: still there, and it names its replacement',
    withKey(`/payouts/${replaced}`),
    '  # every step of the calculation of a payout, as its rep sees it',
    withKey(`/statements/${tenth}`),
    '  # the payouts of one rep',
    withKey(`/payouts?rep_id=${rep}&limit=5`),
    '  # money that has left, and everyone who was ever paid',
    withKey('/payroll_files?limit=5'),
    withKey('/reps?limit=5'),
    '  # all changes from the first one on; the history of this payout; the totals',
    withKey('/changes?limit=3'),
    withKey(`/payouts/${replaced}/history`),
    withKey('/totals'),
    '  # the OpenAPI description, which needs no key',
    `  curl -s '${base}/openapi.json'`,
    '  # for operators: the position of each partition, the metrics, the readiness',
    `  curl -s '${projectorAdmin}/status'`,
    `  curl -s '${projectorAdmin}/metrics'`,
    `  curl -s '${projectorAdmin}/readyz'`,
    `  curl -s '${apiAdmin}/readyz'`,
    '  # for people, in a browser: the status of the API and of the projector, and the reference',
    `  ${apiAdmin}/`,
    `  ${projectorAdmin}/`,
    `  ${apiAdmin}/reference`,
    '  # commands of an operator: list parked records, make a key, show the status of the projection',
    `  export ${settings}`,
    '  npx commission parked list',
    `  npx commission keys create --org ${organization.id} --name Mine`,
    '  npx commission projection status',
    '  # for the examples of docs/reading.md, docs/analysts.md and docs/publishing.md',
    `  export API='${base}' KEY='${organization.keys.reading.text}' ORG='${organization.id}' PAYOUT='${replaced}' REP='${rep}' PERIOD='${period}' DEAL='${deal}' ADMIN='${projectorAdmin}'`,
    '',
    `The logs of projector and API are in ${folder}`,
  ]
}
