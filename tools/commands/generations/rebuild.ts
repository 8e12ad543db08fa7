/** `commission projection rebuild`: makes a generation beside the live one. */
import { defineCommand } from '../../command.ts'
import { maxRateOption } from '../arguments.ts'

type Given = { readonly maxRate: number; readonly unlessSpare?: boolean; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .addOption(maxRateOption())
      .option(
        '--unless-spare',
        'make none if there is a complete one of these rules and this layout beside the live one',
      )
      .option('--json', 'the name of the generation, as JSON'),
  asked: ({ maxRate, unlessSpare = false, json = false }: Given) => ({ maxRate, unlessSpare, json }),
  run: async (options, { rebuilding }) => (await import('../../generations/rebuild.ts')).rebuild(options, rebuilding()),
})
