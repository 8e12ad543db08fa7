/** `commission projection swap`: makes a generation live. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { parseGeneration } from '../arguments.ts'

type Flags = { readonly force?: string; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .argument('<generation>', 'a generation that verify found equal to the live one', parseGeneration)
      .addOption(new Option('--force <reason>', 'also if verify did not find it equal'))
      .option('--json', 'the live and the previous generation, as JSON'),
  asked: (generation: string, { force, json = false }: Flags) => ({ generation, force, json }),
  run: async (options, { readContext }) => (await import('../../generations/swap.ts')).swap(options, readContext()),
})
