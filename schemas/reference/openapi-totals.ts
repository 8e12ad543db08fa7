/** The parts of the OpenAPI document that totals alone have: the parameter `deal_id`, and an example for it. */
import { DEAL_BYTES_MAX } from '../limits.ts'
import { listFilters } from '../lists.ts'
import { dealTotalsExample, recordExamples } from './examples.ts'
import { type Json, ref } from './openapi-parts.ts'

export const totalsParameters = ['RepId', 'PeriodId', 'DealOfTotals'].map(name => ref('parameters', name))

/** The component `DealOfTotals`. */
export const dealOfTotals: Json = {
  name: 'deal_id',
  in: 'query',
  description: [
    'Adds up the lines of this deal in current payouts, by period, currency and category: `line_totals`.',
    '`totals` is empty then, because no payment is for a deal.',
    'It is refused where `deal_id` of `/payouts` is refused,',
    `and if the payouts with a line of the deal have more than ${DEAL_BYTES_MAX / 1024 / 1024} MiB.`,
    'The request costs a unit for each MiB of these payouts, rounded up.',
  ].join(' '),
  schema: { type: 'string', pattern: listFilters.deal_id.pattern },
  example: listFilters.deal_id.example,
}

export const totalsContent: Json = {
  'application/json': {
    schema: { type: 'object', required: ['data'], properties: { data: ref('schemas', 'Totals') } },
    examples: {
      all: { summary: 'Of the organization.', value: { data: recordExamples.Totals } },
      deal: { summary: 'Of a deal.', value: { data: dealTotalsExample } },
    },
  },
}
