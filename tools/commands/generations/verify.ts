/** `commission projection verify`: compares every document of two generations. */
import { defineCommand } from '../../command.ts'
import { parseGeneration } from '../arguments.ts'

export default defineCommand({
  options: command =>
    command
      .argument('<a>', 'the trusted generation', parseGeneration)
      .argument('<b>', 'the other generation', parseGeneration)
      .option('--json', 'a line of JSON for each organization, and for each difference'),
  asked: (a: string, b: string, { json = false }: { readonly json?: boolean }) => ({ a, b, json }),
  run: async (options, { readContext }) => (await import('../../generations/verify.ts')).verify(options, readContext()),
})
