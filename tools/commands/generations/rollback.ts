/** `commission projection rollback`: makes the previous generation live again. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'

type Flags = { readonly force?: string; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .addOption(new Option('--force <reason>', 'also if it applied what the live one parked, or was found different'))
      .option('--json', 'the live and the previous generation, as JSON'),
  asked: ({ force, json = false }: Flags) => ({ force, json }),
  run: async (options, { readContext }) => (await import('../../generations/swap.ts')).rollback(options, readContext()),
})
