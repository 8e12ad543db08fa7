/** `commission projection totals`: shows what is owed and paid by period and currency. */
import { Option } from 'commander'
import type { Moment } from '../../../core/reading/index.ts'
import { defineCommand } from '../../command.ts'
import type { TotalsOptions } from '../../export/totals.ts'
import { generationOption, orgOption } from '../arguments.ts'
import { asOfOption } from './as-of.ts'

const periodKinds = ['month', 'quarter', 'year'] as const satisfies readonly TotalsOptions['kind'][]

type Flags = {
  readonly org: string
  readonly generation?: string
  readonly asOf?: Moment
  readonly svg?: string
  readonly kind?: (typeof periodKinds)[number]
  readonly csv?: boolean
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption())
      .addOption(generationOption())
      .addOption(asOfOption())
      .addOption(new Option('--kind <kind>', 'only periods of this kind').choices(periodKinds))
      .option('--svg <file>', 'draws a chart into this file')
      .addOption(new Option('--csv', 'as CSV').conflicts('json'))
      .option('--json', 'as JSON'),
  asked: ({ org, generation, asOf, kind, svg, csv = false, json = false }: Flags) => ({
    org,
    generation,
    asOf,
    kind,
    svg,
    csv,
    json,
  }),
  run: async (options, { exporting }) =>
    (await import('../../export/totals.ts')).showTotals(options, await exporting(options)),
})
