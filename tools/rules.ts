/**
 * For rules modules: types, and functions for the lists of a payout. A module is a TypeScript or JavaScript file in any
 * folder. Its default export is `defineRules(rules => …)`, which gets the rules in force by event type and returns all
 * rules to use. docs/analysts.md has an example; `commission projection rules check FILE` tries a module.
 */

import {
  type Decision,
  JsonText,
  type Rules,
  type RulesTable,
  type SequencedEvent,
  type ValidEvent,
} from '../core/ledger/index.ts'
import type { EventType, LineItem, TraceStep } from '../schemas/events.ts'
import { isSameAmount, total } from './documents/sums.ts'

export type { Decision, LineItem, SequencedEvent, TraceStep }

/** The data of an event. The lists of a payout are text: see `lineItemsOf` and `withLineItems`. */
export type DataOf<Of extends EventType> = Extract<ValidEvent, { readonly type: Of }>['data']

/** The rules of each event type: three pure functions each. */
export type TypedRules = { readonly [Of in EventType]: Rules<DataOf<Of>> }

/** Gives a module its types. The result is the default export of the module. */
export const defineRules = (make: (rules: TypedRules) => TypedRules): ((rules: RulesTable) => RulesTable) =>
  make as unknown as (rules: RulesTable) => RulesTable

export const lineItemsOf = ({ line_items }: { readonly line_items: JsonText }): LineItem[] =>
  JSON.parse(line_items.text)

export const traceStepsOf = ({ calculation_trace }: { readonly calculation_trace: JsonText }): TraceStep[] =>
  JSON.parse(calculation_trace.text)

/**
 * Returns the payout with other lines, and with their exact sum as its net amount. The amount keeps its text if the sum
 * is equal: 1.0 and not 1.00.
 */
export const withLineItems = <Data extends { readonly line_items: JsonText; readonly net_amount: string }>(
  data: Data,
  lines: readonly LineItem[],
): Data => {
  const sum = total(lines.map(({ amount }) => amount))
  const net_amount = isSameAmount(sum, data.net_amount) ? data.net_amount : sum
  return { ...data, line_items: new JsonText(JSON.stringify(lines)), net_amount }
}

/** Returns the payout with another trace. */
export const withTraceSteps = <Data extends { readonly calculation_trace: JsonText }>(
  data: Data,
  steps: readonly TraceStep[],
): Data => ({ ...data, calculation_trace: new JsonText(JSON.stringify(steps)) })
