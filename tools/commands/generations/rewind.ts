/** `commission projection rewind`: like adopt, but reads the events again only from positions before the snapshot. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { parseInstant } from '../arguments.ts'

export default defineCommand({
  options: command =>
    command
      .addOption(
        new Option('--snapshot-start <instant>', 'start_time of the snapshot; of several the earliest')
          .argParser(parseInstant)
          .makeOptionMandatory(),
      )
      .option('--json', 'the generations with their positions, as JSON'),
  asked: ({ snapshotStart, json = false }: { readonly snapshotStart: number; readonly json?: boolean }) => ({
    snapshotStart,
    json,
  }),
  run: async (options, { kafkaContext, groupId }) =>
    (await import('../../generations/rewind.ts')).rewind(options, kafkaContext(), groupId()),
})
