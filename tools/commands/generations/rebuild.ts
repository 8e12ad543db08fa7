/** `commission projection rebuild`: makes a generation beside the live one. */
import { defineCommand } from '../../command.ts'
import { maxRateOption } from '../arguments.ts'

export default defineCommand({
  options: command => command.addOption(maxRateOption()).option('--json', 'the name of the generation, as JSON'),
  asked: ({ maxRate, json = false }: { readonly maxRate: number; readonly json?: boolean }) => ({ maxRate, json }),
  run: async (options, { rebuilding }) => (await import('../../generations/rebuild.ts')).rebuild(options, rebuilding()),
})
