/** `commission parked list`: lists parked records. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { LIST_DEFAULT, RECORDS_MAX } from '../../limits.ts'
import type { Filter, RecordPosition } from '../../parked/find.ts'
import { A_POSITION, filterOf, numberOption, parsePosition, withFilter } from '../arguments.ts'

type Flags = Filter & {
  readonly newest?: true
  readonly after?: RecordPosition
  readonly limit: number
  readonly json?: true
}

export default defineCommand({
  options: command =>
    withFilter(command)
      .addOption(new Option('--newest', 'newest first'))
      .addOption(new Option('--oldest', 'oldest first (default)').conflicts('newest'))
      .addOption(new Option('--after <position>', `only those behind this one: ${A_POSITION}`).argParser(parsePosition))
      .addOption(numberOption('--limit <records>', 'the most records to list', 1, RECORDS_MAX).default(LIST_DEFAULT))
      .option('--json', 'a line of JSON each'),
  asked: (flags: Flags) => ({
    filter: filterOf(flags),
    order: flags.newest ? ('newest' as const) : ('oldest' as const),
    after: flags.after,
    limit: flags.limit,
    json: flags.json ?? false,
  }),
  run: async (options, { readContext }) => (await import('../../parked/parked.ts')).listParked(options, readContext()),
})
