/** `npm run validate`, `follow`, `doctor`, `reference`, `projection -- rules check`: options and help. */
import { Argument, type Command, Option } from 'commander'
import { type IdentityName, identities } from '../../schemas/access.ts'
import type { DoctorOptions } from '../doctor/doctor.ts'
import type { FollowOptions } from '../export/follow.ts'
import type { ReferenceOptions } from '../export/reference.ts'
import type { ExitCode } from '../failures.ts'
import type { CheckRulesOptions } from '../validate/check-rules.ts'
import type { ValidateOptions } from '../validate/validate.ts'
import type { RunAction } from './analysis-commands.ts'
import type { ArchiveActions } from './archive-commands.ts'
import { numberOption, parseGenerationOrSandbox, parseId } from './arguments.ts'
import type { KeyActions } from './key-commands.ts'

export type OtherActions = KeyActions &
  ArchiveActions & {
    readonly validate: (options: ValidateOptions) => Promise<ExitCode>
    readonly follow: (options: FollowOptions) => Promise<ExitCode>
    readonly doctor: (options: DoctorOptions) => Promise<ExitCode>
    readonly checkRules: (options: CheckRulesOptions) => Promise<ExitCode>
    readonly reference: (options: ReferenceOptions) => Promise<ExitCode>
  }

const PARTITIONS_DEFAULT = 6

export const addValidate = (program: Command, actions: OtherActions, run: RunAction): void => {
  program
    .command('validate')
    .description(
      'Predicts the outcome of records before they are published: applied, duplicate, or parked with its code.',
    )
    .argument('<file>', 'lines of JSON; - for standard input')
    .option('--type <type>', 'the event type of all lines, which are the data of events')
    .addOption(numberOption('--partitions <number>', 'of the events topic', 1, 1_000_000).default(PARTITIONS_DEFAULT))
    .addOption(
      new Option('--live', 'the records would follow everything that is projected now').conflicts('generation'),
    )
    .addOption(
      new Option('--generation <name>', 'they would follow everything in a generation, or in sandbox:NAME').argParser(
        parseGenerationOrSandbox,
      ),
    )
    .option('--json', 'a line of JSON for each record')
    .action(
      run((file: string, { type, partitions, live = false, generation, json = false }: ValidateFlags) =>
        actions.validate({ file, type, partitions, live, generation, json }),
      ),
    )
    .addHelpText('after', validateHelp)
}

export const addFollow = (program: Command, actions: OtherActions, run: RunAction): void => {
  program
    .command('follow')
    .description('Prints the changes of an organization as lines of JSON, as the API answers them, for ever.')
    .addOption(new Option('--org <id>', 'its changes').argParser(parseId('org')).makeOptionMandatory())
    .option('--starting-after <change>', 'continues after this change: the id of the last line')
    .option('--once', 'ends after the last change there is now')
    .action(run(({ org, startingAfter, once = false }: FollowFlags) => actions.follow({ org, startingAfter, once })))
    .addHelpText('after', followHelp)
}

export const addDoctor = (program: Command, actions: OtherActions, run: RunAction): void => {
  program
    .command('doctor')
    .description(
      'Checks with the settings in force whether a process can do its work, and says how to mend what is wrong.',
    )
    .addArgument(
      new Argument(
        '[identities...]',
        'identities of docs/access.md to check (default: projector, if KAFKA_BROKERS is set, and api)',
      ).choices(Object.keys(identities)),
    )
    .option('--json', 'one JSON document')
    .action(
      run((names: IdentityName[], { json = false }: { json?: boolean }) => actions.doctor({ identities: names, json })),
    )
    .addHelpText('after', doctorHelp)
}

const doctorHelp = `
Reads the settings of each identity from the environment, credentials too: run it with the settings of the process that it is about.
It tries each right of docs/access.md without a trace, and checks topics, the cluster, clocks, certificates, Redis, seal keys and Vault. It changes nothing.
A line begins with ok, warning, failed or "not tried".
Exit codes: 0 nothing failed; 1 something failed, or it was stopped; 2 the command line or a setting is wrong.`

export const addReference = (program: Command, actions: OtherActions, run: RunAction): void => {
  program
    .command('reference')
    .description('Writes the reference of the API as files that a browser opens without a server.')
    .argument('<directory>', 'target directory; created if missing')
    .action(run((directory: string) => actions.reference({ directory })))
}

export const addRules = (projection: Command, actions: OtherActions, run: RunAction): void => {
  projection
    .command('rules')
    .description('tries rules modules')
    .command('check')
    .description(
      'runs a rules module over records: whether it loads, is deterministic and keeps the sums, and its effect',
    )
    .argument('<module>', 'a module that replaces some of the rules, as replay --rules takes it')
    .option('--records <file>', 'lines of JSON, as validate takes them (default: contract/records.ndjson)')
    .option('--json', 'as JSON')
    .action(
      run((module: string, { records, json = false }: { records?: string; json?: boolean }) =>
        actions.checkRules({ module, records, json }),
      ),
    )
    .addHelpText('after', rulesHelp)
}

const rulesHelp = `
Needs no Kafka and no Elasticsearch, and writes nothing. The file is a whole log: nothing exists before its first line. Offsets in messages are
lines of the file. The module decides all records, then all of them again, each twice, as after a crash.
  deterministic    each decision gives the same documents every time
  keeps the sums   line items add up to the net amount; a void is the opposite of its payment; totals have the amounts of the records; a rep and
                   period has one current payout; nothing of another organization is written
Payouts that differ from the rules in force are no fault. Exit codes: 0 the module passes; 1 it cannot be loaded, throws, or returns no rules or
wrong decisions; 2 the command line is wrong; 3 it is not deterministic, or does not keep the sums.`

type FollowFlags = { readonly org: string; readonly startingAfter?: string; readonly once?: boolean }

const followHelp = `
Reads the projector's settings for Elasticsearch from the environment: ELASTICSEARCH_URL, ELASTICSEARCH_INDEX_PREFIX and the like. Needs no API
key. Texts that were published sealed stay sealed. With npm run -s standard output has the changes only. Ends with Ctrl-C.
Exit codes: 0 done or stopped; 1 it could not be done; 2 the command line is wrong.`

type ValidateFlags = {
  readonly type?: string
  readonly partitions: number
  readonly live?: boolean
  readonly generation?: string
  readonly json?: boolean
}

const validateHelp = `
A line is a record (an object with value, key, headers), an event (type and data; with specversion a CloudEvents event), or, with --type, the data
of an event. contract/records.ndjson has examples. Without --live the file is a whole log: nothing exists before its first line, and no service
is needed. With --live or --generation it reads the projector's settings for Elasticsearch from the environment. Nothing is written or published.
Exit codes: 0 all would be applied or are duplicates; 1 it could not be done; 2 the command line is wrong; 3 some would be parked.`
