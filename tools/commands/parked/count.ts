/** `commission parked count`: counts parked records by code. */
import { defineCommand } from '../../command.ts'
import type { Filter } from '../../parked/find.ts'
import { filterOf, withFilter } from '../arguments.ts'

export default defineCommand({
  options: command => withFilter(command).option('--json', 'as JSON'),
  asked: (flags: Filter & { readonly json?: true }) => ({ filter: filterOf(flags), json: flags.json ?? false }),
  run: async (options, { readContext }) => (await import('../../parked/parked.ts')).count(options, readContext()),
})
