/** `npm run archive`, `restore`: options and help. */
import { type Command, Option } from 'commander'
import { isId } from '../../schemas/values.ts'
import type { ArchiveOptions } from '../archive/archive.ts'
import type { RestoreOptions } from '../archive/restore.ts'
import type { VerifyArchiveOptions } from '../archive/verify.ts'
import type { ExitCode } from '../failures.ts'
import type { RunAction } from './analysis-commands.ts'
import { maxRateOption } from './arguments.ts'

export type ArchiveActions = {
  readonly archive: (options: ArchiveOptions) => Promise<ExitCode>
  readonly verifyArchive: (options: VerifyArchiveOptions) => Promise<ExitCode>
  readonly restore: (options: RestoreOptions) => Promise<ExitCode>
}

export const addArchive = (program: Command, actions: ArchiveActions, run: RunAction): void => {
  const archive = program
    .command('archive')
    .description(
      'Copies both topics into an archive: every offset, with checksums that show whether something is missing or changed.',
    )
    .option('--to <target...>', 'directory, created if missing, or s3://BUCKET/PREFIX; repeat it for several archives')
    .option('--follow', 'goes on with new records until it is stopped')
    .addOption(maxRateOption())
    .option('--json', 'a line of JSON for each archive: its manifests')
    .action(
      run(({ to = [], follow = false, maxRate, json = false }: ArchiveFlags, command: Command) => {
        if (to.length === 0) command.error('error: name a target with --to, or verify one: archive verify TARGET')
        return actions.archive({ to, follow, maxRate, json })
      }),
    )
    .addHelpText('after', archiveHelp)
  archive
    .command('verify')
    .description('reads a whole archive again, and names the first thing that is wrong')
    .argument('<archive>', 'a directory, or s3://BUCKET/PREFIX')
    .addOption(maxRateOption())
    .option('--json', 'as JSON: the manifests')
    .action(
      run((address: string, _: object, command: Command) => {
        // `archive` has these options, too, and takes them first.
        const { maxRate, json = false }: Pick<ArchiveFlags, 'maxRate' | 'json'> = command.optsWithGlobals()
        return actions.verifyArchive({ address, maxRate, json })
      }),
    )
    .addHelpText('after', verifyHelp)

  program
    .command('restore')
    .description('Makes both topics anew from an archive: every record at its offset with its time.')
    .addOption(new Option('--from <archive>', 'a directory, or s3://BUCKET/PREFIX').makeOptionMandatory())
    .addOption(new Option('--redact <organization rep...>', 'replaces the unsealed texts of this rep'))
    .option('--changes <file>', 'with --redact: the list of all records that differ from the archive')
    .option(
      '--also <position...>',
      'with --redact: a record that nobody can read, replaced, too: TOPIC:PARTITION:OFFSET',
    )
    .option('--keep-unclear', 'with --redact: leaves the other records that nobody can read')
    .addOption(maxRateOption())
    .option('--json', 'as JSON')
    .action(
      run((flags: RestoreFlags, command: Command) => {
        const { from, redact, changes, also = [], keepUnclear = false, maxRate, json = false } = flags
        if ((redact === undefined) !== (changes === undefined))
          command.error('error: give --redact ORGANIZATION REP and --changes FILE together')
        if (redact === undefined && (also.length > 0 || keepUnclear))
          command.error('error: --also and --keep-unclear belong to --redact')
        if (redact === undefined || changes === undefined) return actions.restore({ from, maxRate, json })
        const [org, rep, ...others] = redact
        if (!isId('org', org) || !isId('rep', rep) || others.length > 0)
          command.error(`error: --redact: expected org_… rep_…; got ${redact.join(' ')}`)
        return actions.restore({ from, redact: { org, rep, changes, also, keepUnclear }, maxRate, json })
      }),
    )
    .addHelpText('after', restoreHelp)
}

type RestoreFlags = {
  readonly from: string
  readonly redact?: string[]
  readonly changes?: string
  readonly also?: string[]
  readonly keepUnclear?: boolean
  readonly maxRate: number
  readonly json?: boolean
}
type ArchiveFlags = {
  readonly to?: string[]
  readonly follow?: boolean
  readonly maxRate: number
  readonly json?: boolean
}

const archiveHelp = `
Reads the projector's settings for Kafka from the environment, and needs the rights of archive in docs/access.md. Each target is an archive of
its own. The same command continues an archive; a kill at any moment leaves a valid one. Only one run at a time may write into a target.
An address s3://BUCKET/PREFIX needs the settings ARCHIVE_S3_… of docs/settings.md, and the rights of docs/archive.md#s3.
Without --follow it ends at the present end of the topics. With it, records are in a segment after a minute at most; end it with Ctrl-C.
Exit codes: 0 done, or stopped while it followed; 1 it could not be done, or was stopped before; 2 the command line is wrong.`

const verifyHelp = `
Needs no Kafka. Exit codes: 0 the archive is whole; 1 it is damaged, or cannot be read; 2 the command line is wrong.`

const restoreHelp = `
Reads the projector's settings for Kafka from the environment: KAFKA_EVENTS_TOPIC and KAFKA_API_KEYS_TOPIC name the topics, which must exist (npm run topics)
with as many partitions as in the archive. They must be empty, or have the beginning of this archive. Stop all publishers before.
Needs the rights of restore in docs/access.md: Read, Write, DescribeConfigs and AlterConfigs on both topics, and Write and Describe on the
transactional ids that begin with commission-restore-. It verifies the archive, sets message.timestamp.type to CreateTime without a limit of times
(message.timestamp.*.max.ms), appends, puts these settings back (LogAppendTime), also if it fails or is stopped, and compares every record. The same
command continues a restore that was stopped or killed.
--redact replaces the name, e-mail address and labels of a rep that were published in the open by sealed texts that nobody can open (docs/privacy.md), and
writes their receipt into SEAL_KEYS_DIR. Offsets, times and decisions stay. Records that nobody can read and that may concern the rep are named, and nothing is
written until each of them is named with --also, which replaces it, or --keep-unclear leaves them.
Exit codes: 0 restored and compared; 1 it could not be done, or was stopped; 2 the command line is wrong.`
