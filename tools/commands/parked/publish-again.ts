/** `commission parked publish-again`: publishes parked records again, after the records that they refer to exist. */
import { type Command, Option } from 'commander'
import { defineCommand } from '../../command.ts'
import type { Filter, RecordPosition } from '../../parked/find.ts'
import { A_POSITION, addPosition, filterOf, waitOption, withFilter } from '../arguments.ts'

type Flags = Filter & {
  readonly all?: true
  readonly publish?: true
  readonly force?: true
  readonly wait: number
  readonly json?: true
}

export default defineCommand({
  options: command =>
    withFilter(command)
      .argument('[positions...]', `${A_POSITION}; or select records by options`, addPosition, [])
      .option('--all', 'all parked records')
      .addOption(new Option('--publish', 'publishes them; without it a dry run shows the outcome of each'))
      .addOption(new Option('--dry-run', 'only shows what the outcome of each would be (default)').conflicts('publish'))
      .option('--force', 'also publishes an older rep or period over a newer one')
      .addOption(waitOption())
      .option('--json', 'a line of JSON each'),
  help: `
Publishes only records that would be applied. Skips records that are there already, so that a second run changes nothing, and refuses records that
would be parked again, and those that another parked record reverses, revokes or replaces, unless it publishes both. Waits until the projector has passed each record, and shows its outcome. If the wait ends or is interrupted before that, a
sent record is shown as published again and not decided yet (exit code 1): run the same command later to see its outcome.`,
  asked: (positions: RecordPosition[], flags: Flags, command: Command) => {
    const filter = filterOf(flags)
    const selections = [positions.length > 0, Object.keys(filter).length > 0, flags.all === true].filter(Boolean)
    if (selections.length !== 1) command.error('error: select records by position, by a filter or with --all')
    const { publish = false, force = false, wait, json = false } = flags
    return { positions, filter, publish, force, waitSeconds: wait, json }
  },
  run: async (options, { interruptible, kafkaContext }) =>
    (await import('../../parked/parked.ts')).again(options, interruptible(kafkaContext())),
})
