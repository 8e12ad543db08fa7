/** `commission archive`: copies both topics into an archive. */
import type { Command } from 'commander'
import { defineCommand } from '../../command.ts'
import { maxRateOption, signOption } from '../arguments.ts'

type Flags = {
  readonly to?: string[]
  readonly follow?: boolean
  readonly maxRate: number
  readonly sign?: string
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .option(
        '--to <target...>',
        'directory, created if missing, or s3://BUCKET/PREFIX; repeat it for several archives',
      )
      .option('--follow', 'goes on with new records until it is stopped')
      .addOption(maxRateOption())
      .addOption(signOption())
      .option('--json', 'a line of JSON for each archive: its manifests'),
  help: `
Reads the projector's settings for Kafka from the environment, and needs the rights of archive in docs/access.md. Each target is an archive of
its own. The same command continues an archive; a kill at any moment leaves a valid one. Only one run at a time may write into a target.
An address s3://BUCKET/PREFIX needs the settings ARCHIVE_S3_… of docs/settings.md, and the rights of docs/archive.md#s3.
With --sign each manifest is signed, also those that the archive has already; commission verify checks them (docs/evidence.md).
Without --follow it ends at the present end of the topics; if an open transaction hides records there, or Kafka does not tell whether one does, with exit code 1. With it, records are in a segment after a minute at most; end it with Ctrl-C.
Exit codes: 0 done, or stopped while it followed; 1 it could not be done; 2 the command line is wrong.`,
  asked: ({ to = [], follow = false, maxRate, sign, json = false }: Flags, command: Command) => {
    if (to.length === 0) command.error('error: name a target with --to, or verify one: archive verify TARGET')
    return { to, follow, maxRate, sign, json }
  },
  run: async (options, { archiving }) => (await import('../../archive/archive.ts')).archive(options, archiving()),
})
