/** `commission restore`: makes both topics anew from an archive. */
import { type Command, Option } from 'commander'
import { isId } from '../../../schemas/values.ts'
import { defineCommand } from '../../command.ts'
import { maxRateOption, publicKeyOption } from '../arguments.ts'

type Flags = {
  readonly from: string
  readonly key?: readonly string[]
  readonly redact?: string[]
  readonly changes?: string
  readonly also?: string[]
  readonly keepUnclear?: boolean
  readonly maxRate: number
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(new Option('--from <archive>', 'a directory, or s3://BUCKET/PREFIX').makeOptionMandatory())
      .addOption(publicKeyOption())
      .addOption(new Option('--redact <organization rep...>', 'replaces the unsealed texts of this rep'))
      .option('--changes <file>', 'with --redact: the list of all records that differ from the archive')
      .option(
        '--also <position...>',
        'with --redact: a record that nobody can read, replaced, too: TOPIC:PARTITION:OFFSET',
      )
      .option('--keep-unclear', 'with --redact: leaves the other records that nobody can read')
      .addOption(maxRateOption())
      .option('--json', 'as JSON'),
  help: `
Reads the projector's settings for Kafka from the environment: KAFKA_EVENTS_TOPIC and KAFKA_API_KEYS_TOPIC name the topics, which must exist (commission topics)
with as many partitions as in the archive. They must be empty, or have the beginning of this archive. Stop all publishers before.
Needs the rights of restore in docs/access.md: Read, Write, DescribeConfigs and AlterConfigs on both topics, and Write and Describe on the
transactional ids that begin with commission-restore-. It verifies the archive, sets message.timestamp.type to CreateTime without a limit of times
(message.timestamp.*.max.ms), appends, puts these settings back (LogAppendTime), also if it fails or is stopped, and compares every record. The same
command continues a restore that was stopped or killed. With --key it restores only an archive that is signed by one of the keys, as archive verify says.
--redact replaces the name, e-mail address and labels of a rep that were published in the open by sealed texts that nobody can open (docs/privacy.md), and
writes their receipt into SEAL_KEYS_DIR. Offsets, times and decisions stay. Records that nobody can read and that may concern the rep are named, and nothing is
written until each of them is named with --also, which replaces it, or --keep-unclear leaves them.
Exit codes: 0 restored and compared; 1 it could not be done; 2 the command line is wrong.`,
  asked: (flags: Flags, command: Command) => {
    const { from, key: keys, redact, changes, also = [], keepUnclear = false, maxRate, json = false } = flags
    if ((redact === undefined) !== (changes === undefined))
      command.error('error: give --redact ORGANIZATION REP and --changes FILE together')
    if (redact === undefined && (also.length > 0 || keepUnclear))
      command.error('error: --also and --keep-unclear belong to --redact')
    if (redact === undefined || changes === undefined) return { from, keys, maxRate, json }
    const [org, rep, ...others] = redact
    if (!isId('org', org) || !isId('rep', rep) || others.length > 0)
      command.error(`error: --redact: expected org_… rep_…; got ${redact.join(' ')}`)
    return { from, keys, redact: { org, rep, changes, also, keepUnclear }, maxRate, json }
  },
  run: async (options, { archiving, sealKeys }) => {
    const { restore } = await import('../../archive/restore.ts')
    return restore(options, { ...archiving(), keysDirectory: () => sealKeys()?.directory })
  },
})
