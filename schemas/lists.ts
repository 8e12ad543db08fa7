/**
 * The traits of each list, and of each filter. The order of indices, cursors, the reader of parameters, the searches,
 * the permissions and the OpenAPI document are made from these two tables.
 */
import { objectOf } from './objects.ts'
import { type ListKind, listKinds } from './stored/documents.ts'
import { type IdPrefix, idPattern, type KeyPermission } from './values.ts'

type FilterTraits = {
  /** The indexed field of the stored documents that must have the value. The value of a record may never change. */
  readonly field: string
  /** The form of a value, and how a refusal says it: *must be …*. */
  readonly pattern: string
  readonly expected: string
  /** Of the OpenAPI document. */
  readonly component: string
  readonly description: string
  readonly example: string
}
const ofId = (prefix: IdPrefix) => ({
  pattern: idPattern(prefix),
  expected: `the id of a ${prefix}: \`${prefix}_\` and 1 to 64 of 0-9A-Za-z`,
})
const ofRecordsOf = (name: string): string =>
  [
    `Selects the records of this ${name}. In \`/changes\` it selects payouts and payroll records only.`,
    'A cursor stays valid with and without it.',
  ].join(' ')

/** A replacement has the rep and the period of the payout before, but perhaps not its deals. */
const replacedWithoutDeal =
  'A replacement without the deal does not come: ask `/totals?deal_id=`, or follow by rep and period.'

/** The parameters that select records of a list, by name. */
export const listFilters = {
  rep_id: {
    ...ofId('rep'),
    field: 'rep_id',
    component: 'RepId',
    description: ofRecordsOf('rep'),
    example: 'rep_2Hb7',
  },
  period_id: {
    ...ofId('period'),
    field: 'period_id',
    component: 'PeriodId',
    description: ofRecordsOf('period'),
    example: 'period_5Tn1',
  },
  /** One line of the payout has the deal. Not all generations have this index: `requireSearchable`. */
  deal_id: {
    ...ofId('deal'),
    field: 'body.line_items.deal_id',
    component: 'DealId',
    description: [
      'Selects the payouts that have a line of this deal. In `/changes` it selects these payouts only.',
      replacedWithoutDeal,
      'A cursor stays valid with and without it.',
      'It is refused while the payouts are stored as an older version stored them: they need a rebuild.',
    ].join(' '),
    example: 'deal_4Kd9',
  },
} as const satisfies Record<string, FilterTraits>
export type FilterName = keyof typeof listFilters
/** The values that the records of a list must have. */
export type ListFilter = { [Name in FilterName]?: string }

type ListTraits = {
  /** The prefix of the ids: no two kinds share an id. */
  readonly idPrefix: IdPrefix
  /** Whether a record may be recorded again under its id. The list is then in the order of the first versions. */
  readonly hasVersions: boolean
  /** Whether a later record or version replaces one. The list then has the current ones only. */
  readonly isReplaced: boolean
  /** Whether texts about people are in it, which may be sealed. */
  readonly isPersonal: boolean
  readonly filters: readonly FilterName[]
  readonly permission: KeyPermission
  /** Of the OpenAPI document: the name of a record, of the operation, and texts about both. */
  readonly record: string
  readonly operationId: string
  readonly about: string
  readonly summary: string
}

/** The lists. `/changes` has the records of all of them. */
export const listTraits = {
  reps: {
    idPrefix: 'rep',
    hasVersions: true,
    isReplaced: true,
    isPersonal: true,
    filters: [],
    permission: 'reps:read',
    record: 'Rep',
    operationId: 'listReps',
    about: 'The people who earn commission.',
    summary: 'All reps, departed ones included, in the order first recorded.',
  },
  periods: {
    idPrefix: 'period',
    hasVersions: true,
    isReplaced: true,
    isPersonal: false,
    filters: [],
    permission: 'periods:read',
    record: 'Period',
    operationId: 'listPeriods',
    about: 'The months, quarters and years that payouts are for.',
    summary: 'Every period of the organization, in the order first recorded.',
  },
  payouts: {
    idPrefix: 'payout',
    hasVersions: false,
    isReplaced: true,
    isPersonal: false,
    filters: ['rep_id', 'period_id', 'deal_id'],
    permission: 'payouts:read',
    record: 'Payout',
    operationId: 'listPayouts',
    about: 'What is owed to a rep for a period, with its lines, and what was owed before.',
    summary: [
      'The current payouts, one for each rep and period.',
      'A replacement comes later in the list than the payout that it replaced:',
      'keep the last payout read of each (rep_id, period_id).',
      'With a deal this is not enough: its parameter says why.',
    ].join(' '),
  },
  // A void is a further record: it replaces none.
  payroll_files: {
    idPrefix: 'payroll',
    hasVersions: false,
    isReplaced: false,
    isPersonal: true,
    filters: ['rep_id', 'period_id'],
    permission: 'payroll:read',
    record: 'PayrollRecord',
    operationId: 'listPayrollRecords',
    about: 'Money that has left through payroll, and its voids.',
    summary: 'Money that has left through payroll. A void is a record of its own.',
  },
} as const satisfies Record<ListKind, ListTraits>

/** The filters of `/changes`. A filtered feed has only the kinds that can be filtered. */
export const feedFilters = ['rep_id', 'period_id', 'deal_id'] as const satisfies readonly FilterName[]
export const filteredKinds = listKinds.filter(kind => listTraits[kind].filters.length > 0)

/** The filters of `/totals`, whose reader names each of them. */
export const totalsFilters = ['rep_id', 'period_id', 'deal_id'] as const satisfies readonly FilterName[]

/** Lists are ordered by organization, then this field. Their indices are sorted the same way. */
export const listOrder = objectOf(listKinds, kind => (listTraits[kind].hasVersions ? 'first_seq' : 'seq'))

/** The permission that a request needs, by the first word of its path. `/changes` has records of every kind. */
export const permissionOfPath: ReadonlyMap<string, KeyPermission> = new Map([
  ...listKinds.map(kind => [kind, listTraits[kind].permission] as const),
  ['statements', 'statements:read'],
  ['totals', 'totals:read'],
  ['changes', 'changes:read'],
  ['checkpoint', 'changes:read'],
])

/** The totals of one rep are the pay of a person: they need these permissions besides that of the path. */
export const permissionsOfRepTotals = ['payouts:read', 'payroll:read'] as const satisfies readonly KeyPermission[]
/** The totals of a deal are lines of payouts: they need this permission besides that of the path. */
export const permissionsOfDealTotals = ['payouts:read'] as const satisfies readonly KeyPermission[]
/** A checkpoint has totals: it needs this permission besides that of the path. */
export const permissionsOfCheckpoints = ['totals:read'] as const satisfies readonly KeyPermission[]
