/** A tool: its name, its words for the agent, its schemas, and how it reads. All of them only read. */
import type { Client } from '../../src/index.ts'
import { LIMIT_DEFAULT, LIMIT_MAX } from './bounded.ts'
import { contractParameter, type JsonSchema, type Properties } from './contract.ts'

export type ToolAnswer = {
  readonly structured: object
  /** For an agent that reads only text; the structured content as JSON by default. */
  readonly text?: string
}

export type Tool = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: JsonSchema & { readonly properties: Properties }
  readonly output: JsonSchema
  /** The argument that names one record. */
  readonly record?: string
  /** @throws ArgumentsError, and all that the client throws */
  readonly run: (client: Client, given: unknown) => Promise<ToolAnswer>
}

/** Arguments that the schema allows, and that contradict each other. */
export class ArgumentsError extends Error {
  override name = 'ArgumentsError'
}

/** @param run gets the arguments after the input schema has checked them */
export const defineTool = <Arguments>(
  tool: Omit<Tool, 'input' | 'run'> & {
    readonly input: Properties
    readonly required?: readonly (keyof Arguments & string)[]
    readonly run: (client: Client, given: Arguments) => Promise<ToolAnswer>
  },
): Tool => ({
  ...tool,
  input: { type: 'object', properties: tool.input, required: tool.required ?? [], additionalProperties: false },
  run: (client, given) => tool.run(client, given as Arguments),
})

/** Whether a call names one record: only then the API may know none. */
export const namesRecord = ({ record }: Tool, given: unknown): boolean =>
  record !== undefined && Object(given)[record] !== undefined

/** Returns the fields that are given, for options that must not be undefined. */
export const onlyGiven = <Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never

/** The client as of the moment that an agent asks for. */
export const clientAt = (client: Client, { as_of }: { readonly as_of?: string }): Client =>
  as_of === undefined ? client : client.asOf(as_of)

/** Only these of a list, and nothing else beside them but a moment. */
export const idsAlone = (
  given: object & { readonly ids?: readonly string[] },
): { readonly ids: readonly string[] } | undefined => {
  if (given.ids === undefined) return undefined
  const others = Object.keys(given).filter(name => name !== 'ids' && name !== 'as_of')
  if (others.length > 0)
    throw new ArgumentsError(`\`ids\` are read without ${others.join(', ')}: leave one of them out`)
  return { ids: given.ids }
}

const described = (parameter: string, description: string): JsonSchema => ({
  ...contractParameter(parameter),
  description,
})

export const asOfInput = {
  as_of: described(
    'AsOf',
    'Shows the state of an earlier moment: an instant that is over (RFC 3339), or the id of a change, which is included.',
  ),
} satisfies Properties

export const limitInput = {
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: LIMIT_MAX,
    description: `Records of a page; ${LIMIT_DEFAULT} by default. A page of large records has fewer.`,
  },
} satisfies Properties

export const pageInput = {
  ...limitInput,
  starting_after: { type: 'string', description: 'Reads on: the `next_cursor` of the page before.' },
} satisfies Properties

const unknownId = (check: string): string =>
  `An unknown id gives no rows: ${check} before you say that nothing is owed.`

export const filterInput = {
  rep_id: described('RepId', `Only records of this rep. ${unknownId('check it with `list_reps`')}`),
  period_id: described('PeriodId', `Only records of this period. ${unknownId('check it with `list_periods`')}`),
} satisfies Properties

/** No tool lists deals. */
export const unknownDeal = unknownId('look for it with `list_changes` and `deal_id`')

export const payoutFilterInput = {
  ...filterInput,
  deal_id: described(
    'DealId',
    `Only payouts that have a line of this deal. A replacement without the deal does not come: ask \`get_totals\`. ${unknownDeal}`,
  ),
} satisfies Properties

export const idsInput = (prefix: string): Properties => ({
  ids: {
    type: 'array',
    items: { type: 'string', pattern: `^${prefix}_[0-9A-Za-z]{1,64}$` },
    minItems: 1,
    maxItems: LIMIT_MAX,
    description:
      'Reads these records in place of the list, in this order. Unknown ids are left out. If `has_more` is true, ask for the ids after the last record.',
  },
})

export type AsOfArgument = { readonly as_of?: string }
export type PageArguments = { readonly limit?: number; readonly starting_after?: string }
export type FilterArguments = { readonly rep_id?: string; readonly period_id?: string }
export type PayoutFilterArguments = FilterArguments & { readonly deal_id?: string }
export type IdsArguments = { readonly ids?: readonly string[] }

export const pageOptions = ({ limit = LIMIT_DEFAULT, starting_after }: PageArguments) => ({
  limit,
  ...onlyGiven({ startingAfter: starting_after }),
})
export const filterOptions = ({ rep_id, period_id, deal_id }: PayoutFilterArguments) =>
  onlyGiven({ repId: rep_id, periodId: period_id, dealId: deal_id })
