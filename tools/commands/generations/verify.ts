/** `commission projection verify`: compares every document of two generations. */

import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { parseGeneration, parseId } from '../arguments.ts'

export default defineCommand({
  options: command =>
    command
      .argument('<a>', 'the trusted generation', parseGeneration)
      .argument('<b>', 'the other generation', parseGeneration)
      .addOption(new Option('--org <id>', 'only of this organization').argParser(parseId('org')))
      .option('--json', 'a line of JSON for each organization, and for each difference'),
  help: `
Counts the sums of each generation's balances again, too. With --org it reads only the documents of this organization: its damage is named, that of
another one is not looked for, nor are parked records without an organization. That it is equal permits no swap; that it differs forbids one.
Exit codes: 0 equal; 1 something differs, or it could not be done; 2 the command line is wrong.`,
  asked: (a: string, b: string, { org, json = false }: { readonly org?: string; readonly json?: boolean }) => ({
    a,
    b,
    org,
    json,
  }),
  run: async (options, { readContext }) => (await import('../../generations/verify.ts')).verify(options, readContext()),
})
