/** `commission projection explain`: shows the history of a payout, or the payouts with a line of a deal. */
import { defineCommand } from '../../command.ts'
import { generationOption, orgOption, parseIdOf } from '../arguments.ts'

type Flags = { readonly org: string; readonly generation?: string; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .argument('<id>', 'any payout of the chain, or a deal', parseIdOf('payout', 'deal'))
      .addOption(orgOption('its organization'))
      .addOption(generationOption())
      .option('--json', 'as JSON'),
  help: `
For each payout of the rep and period: its event, with position (topic:partition:offset) and record time; net and earned amount and totals by
category, with the difference to the payout before; lines and strategies that were added (+), removed (-) or changed (~). Then payments and voids,
with the payout that each names. Then by currency what is owed now, what was paid, and what is still owed (below zero: paid too much).
Of a deal: each payout with a line of it, replaced ones too, with these lines; then their sums in current payouts by period, currency and category.
As of the published position; sums are exact. Reads only Elasticsearch.`,
  asked: (id: string, { org, generation, json = false }: Flags) => ({ org, id, generation, json }),
  run: async ({ id, ...options }, { readContext }) =>
    id.startsWith('deal_')
      ? (await import('../../analysis/explain-deal.ts')).explainDeal({ ...options, deal: id }, readContext())
      : (await import('../../analysis/explain.ts')).explain({ ...options, payout: id }, readContext()),
})
