/** `commission projection adopt`: takes over restored indices, or another cluster. */
import type { Command } from 'commander'
import { defineCommand } from '../../command.ts'

type Flags = { readonly archive?: string; readonly redacted?: string; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .option('--archive <archive>', 'instead, takes another cluster as the source, after a proof with this archive')
      .option('--redacted <file>', 'with --archive: the topics have the log that restore --redact made; its list')
      .option('--json', 'the adopted generations, as JSON'),
  asked: ({ archive, redacted, json = false }: Flags, command: Command) => {
    if (redacted !== undefined && archive === undefined) command.error('error: --redacted needs --archive')
    return { archive, redacted, json }
  },
  run: async ({ archive, redacted, json }, { takingOver, adopting, groupId }) =>
    archive === undefined
      ? (await import('../../generations/adopt.ts')).adopt({ json }, takingOver(), groupId())
      : (await import('../../archive/adopt-source.ts')).adoptSource({ archive, redacted, json }, adopting(), groupId()),
})
