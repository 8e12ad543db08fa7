/** `commission projection explain`: shows the history of a payout. */
import { defineCommand } from '../../command.ts'
import { generationOption, orgOption, parseId } from '../arguments.ts'

type Flags = { readonly org: string; readonly generation?: string; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .argument('<payout>', 'any payout of the chain', parseId('payout'))
      .addOption(orgOption('its organization'))
      .addOption(generationOption())
      .option('--json', 'as JSON'),
  help: `
For each payout of the rep and period: its event, with position (topic:partition:offset) and record time; net and earned amount and totals by
category, with the difference to the payout before; lines and strategies that were added (+), removed (-) or changed (~). Then payments and voids,
with the payout that each names. Then by currency what is owed now, what was paid, and what is still owed (below zero: paid too much).
As of the published position; sums are exact. Reads only Elasticsearch.`,
  asked: (payout: string, { org, generation, json = false }: Flags) => ({ org, payout, generation, json }),
  run: async (options, { readContext }) => (await import('../../analysis/explain.ts')).explain(options, readContext()),
})
