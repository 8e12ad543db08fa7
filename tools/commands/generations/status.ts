/** `commission projection status`: shows the positions of a generation and its parked records. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { parseGeneration, parseId } from '../arguments.ts'

type Flags = { readonly generation?: string; readonly org?: string; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .addOption(new Option('--generation <name>', 'a generation (default: the live one)').argParser(parseGeneration))
      .addOption(
        new Option('--org <id>', 'only this organization: its partition and its records').argParser(parseId('org')),
      )
      .option('--json', 'as JSON'),
  help: `
Exit codes: 0 done; 1 the topic ends before a position, or it could not be done; 2 the command line is wrong.`,
  asked: ({ generation, org, json = false }: Flags) => ({ generation, org, json }),
  run: async (options, { kafkaContext }) =>
    (await import('../../generations/status.ts')).status(options, kafkaContext()),
})
