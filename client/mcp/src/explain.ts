/** The tool that explains a payout: its lines, and each step of its calculation, as text and as data. */
import type { Statement } from '../../src/index.ts'
import { type AnswerPart, answerPart, answerPartSchema, firstOf, LIMIT_DEFAULT } from './bounded.ts'
import { contractObject, countSchema, objectSchema } from './contract.ts'
import { payoutViewSchema, viewPayout } from './payout-view.ts'
import { linesInput, linesSchema, payoutIdInput } from './payouts.ts'
import { type AsOfArgument, asOfInput, clientAt, defineTool } from './tool.ts'

type Line = Statement['line_items'][number]
type Step = Statement['calculation_trace'][number]

/** Characters of the lines, and of the steps: together with what the text says about them they are one answer. */
const PART_CHARACTERS_MAX = 15_000
/** Characters of the inputs of one step. */
const INPUTS_CHARACTERS_MAX = 6_000

type StepView = Step & { readonly inputs_left_out: number }

/** A step has any number of inputs. */
const viewStepOfTrace = ({ inputs, ...step }: Step): StepView => {
  const all = Object.entries(inputs)
  const shown = firstOf(all, INPUTS_CHARACTERS_MAX)
  return { ...step, inputs: Object.fromEntries(shown), inputs_left_out: all.length - shown.length }
}

const stepSchema = contractObject('TraceStep', {
  inputs_left_out: countSchema('Inputs of this step that had no room.'),
})

export const explainPayout = defineTool<
  { id: string; lines_from?: number; steps_from?: number; limit?: number } & AsOfArgument
>({
  name: 'explain_payout',
  title: 'Explain a payout step by step',
  description:
    'How a payout came about: its lines, then each step of its calculation with its inputs, its strategy and the version of it. A payout that was only recorded has no calculation, and the answer says so. The lines add up to the amount owed; the steps do not.',
  input: {
    ...payoutIdInput,
    ...linesInput,
    steps_from: { type: 'integer', minimum: 1, description: 'The number of the first step; 1 by default.' },
    ...asOfInput,
  },
  required: ['id'],
  record: 'id',
  output: objectSchema({
    payout: payoutViewSchema,
    calculation_trace_recorded: {
      type: 'boolean',
      description:
        'If false, the payout was recorded and not calculated: no step does not mean that no deal contributed.',
    },
    lines: linesSchema,
    steps: answerPartSchema(stepSchema, 'steps', 'steps_from'),
  }),
  run: async (client, given) => {
    const { limit = LIMIT_DEFAULT, lines_from = 1, steps_from = 1 } = given
    const statement = await clientAt(client, given).statement(given.id)
    const { calculation_trace, calculation_trace_recorded, ...payout } = statement
    const lines = answerPart(payout.line_items, lines_from, limit, PART_CHARACTERS_MAX)
    const steps = answerPart(calculation_trace.map(viewStepOfTrace), steps_from, limit, PART_CHARACTERS_MAX)
    const text = [...headOf(statement), ...linesText(lines, payout.currency), ...stepsText(steps, statement)].join('\n')
    return { structured: { payout: viewPayout(payout), calculation_trace_recorded, lines, steps }, text }
  },
})

const headOf = (statement: Statement): string[] => {
  const { id, rep_id, period_id, currency, net_amount, earned_amount, supersedes_id, superseded_by_id } = statement
  return [
    `${id} of ${rep_id} for ${period_id}: ${currency} ${net_amount} owed, of a period that earned ${currency} ${earned_amount}.`,
    superseded_by_id === null
      ? 'It is current.'
      : `It was replaced by ${superseded_by_id}: this amount is not owed any more.`,
    ...(supersedes_id === null ? [] : [`It replaced ${supersedes_id}.`]),
  ]
}

const linesText = ({ data, count, has_more, next }: AnswerPart<Line>, currency: string): string[] => [
  `Its ${count} lines add up to the amount owed:`,
  ...data.map(({ category, description, amount, deal_id }) => {
    const deal = deal_id === null ? '' : `, ${deal_id}`
    return `- ${category} ${currency} ${amount}: ${JSON.stringify(description)}${deal}`
  }),
  ...(has_more ? [`More lines follow: ask with lines_from ${next}.`] : []),
]

const stepsText = ({ data, count, has_more, next }: AnswerPart<StepView>, statement: Statement): string[] => {
  if (!statement.calculation_trace_recorded)
    return [
      `It was recorded${statement.recorded_at === null ? '' : ` at ${statement.recorded_at}`}, and nothing was calculated here: there are no steps. That does not mean that no deal contributed.`,
    ]
  return [
    `It was calculated${statement.calculated_at === null ? '' : ` at ${statement.calculated_at}`} in ${count} steps:`,
    ...data.map(({ step, name, strategy, strategy_version, inputs, inputs_left_out, output_amount, deal_id }) => {
      const deal = deal_id === null ? '' : `, ${deal_id}`
      const leftOut = inputs_left_out === 0 ? '' : ` and ${inputs_left_out} more`
      return `${step}. ${JSON.stringify(name)} → ${output_amount}, by ${JSON.stringify(strategy)} version ${JSON.stringify(strategy_version)} from ${JSON.stringify(inputs)}${leftOut}${deal}`
    }),
    ...(has_more ? [`More steps follow: ask with steps_from ${next}.`] : []),
  ]
}
