/** `commission projection adopt`: takes over restored indices, or another cluster. */
import type { Command } from 'commander'
import { defineCommand } from '../../command.ts'
import { publicKeyOption } from '../arguments.ts'

type Flags = {
  readonly archive?: string
  readonly key?: readonly string[]
  readonly redacted?: string
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .option('--archive <archive>', 'instead, takes another cluster as the source, after a proof with this archive')
      .addOption(publicKeyOption())
      .option('--redacted <file>', 'with --archive: the topics have the log that restore --redact made; its list')
      .option('--json', 'the adopted generations, as JSON'),
  asked: ({ archive, key: keys, redacted, json = false }: Flags, command: Command) => {
    if (redacted !== undefined && archive === undefined) command.error('error: --redacted needs --archive')
    if (keys !== undefined && archive === undefined) command.error('error: --key needs --archive')
    return { archive, keys, redacted, json }
  },
  run: async ({ archive, keys, redacted, json }, { kafkaContext, adopting, groupId }) =>
    archive === undefined
      ? (await import('../../generations/adopt.ts')).adopt({ json }, kafkaContext(), groupId())
      : (await import('../../archive/adopt-source.ts')).adoptSource(
          { archive, keys, redacted, json },
          adopting(),
          groupId(),
        ),
})
