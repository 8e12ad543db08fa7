/** `commission projection upgrade-keys`: raises the version of the rules for API keys. */
import { defineCommand } from '../../command.ts'
import { numberOption } from '../arguments.ts'

export default defineCommand({
  options: command =>
    command
      .addOption(
        numberOption(
          '--from <offset>',
          'after a restore: the offset that an earlier run printed',
          0,
          Number.MAX_SAFE_INTEGER,
        ),
      )
      .option('--json', 'as JSON'),
  asked: ({ from, json = false }: { readonly from?: number; readonly json?: boolean }) => ({ from, json }),
  run: async (options, { kafkaContext, groupId }) =>
    (await import('../../generations/upgrade-keys.ts')).upgradeKeys(options, kafkaContext(), groupId()),
})
