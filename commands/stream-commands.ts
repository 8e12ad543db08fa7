/** `npm run keys`, `validate`, `follow`, `doctor`, `reference`, `subjects`, some of `projection`: options and help. */
import { Argument, type Command, Option } from 'commander'
import { type IdentityName, identities } from '../schemas/access.ts'
import { type KeyPermission, keyPermissions } from '../schemas/values.ts'
import type { RunAction } from './analysis-commands.ts'
import { numberOption, orgOption, parseExpiry, parseId, parseKeyName, waitOption } from './arguments.ts'
import type { DoctorOptions } from './doctor/doctor.ts'
import type { FollowOptions } from './export/follow.ts'
import type { ReferenceOptions } from './export/reference.ts'
import type { ExitCode } from './failures.ts'
import type { UpgradeKeysOptions } from './generations/upgrade-keys.ts'
import type { CreateKeyOptions, ListKeysOptions, RevokeKeyOptions } from './keys/keys.ts'
import type { RotateKeyOptions } from './keys/rotate.ts'
import type { EraseSubjectOptions, ListSubjectsOptions, ReportSubjectOptions } from './subjects/subjects.ts'
import type { CheckRulesOptions } from './validate/check-rules.ts'
import type { ValidateOptions } from './validate/validate.ts'

export type StreamActions = {
  readonly validate: (options: ValidateOptions) => Promise<ExitCode>
  readonly follow: (options: FollowOptions) => Promise<ExitCode>
  readonly doctor: (options: DoctorOptions) => Promise<ExitCode>
  readonly checkRules: (options: CheckRulesOptions) => Promise<ExitCode>
  readonly createKey: (options: CreateKeyOptions) => Promise<ExitCode>
  readonly listKeys: (options: ListKeysOptions) => Promise<ExitCode>
  readonly revokeKey: (options: RevokeKeyOptions) => Promise<ExitCode>
  readonly rotateKey: (options: RotateKeyOptions) => Promise<ExitCode>
  readonly upgradeKeys: (options: UpgradeKeysOptions) => Promise<ExitCode>
  readonly reference: (options: ReferenceOptions) => Promise<ExitCode>
  readonly listSubjects: (options: ListSubjectsOptions) => Promise<ExitCode>
  readonly reportSubject: (options: ReportSubjectOptions) => Promise<ExitCode>
  readonly eraseSubject: (options: EraseSubjectOptions) => Promise<ExitCode>
}

const PARTITIONS_DEFAULT = 6

export const addValidate = (program: Command, actions: StreamActions, run: RunAction): void => {
  program
    .command('validate')
    .description(
      'Foresees what becomes of records before they are published: applied, duplicate, or parked with its code.',
    )
    .argument('<file>', 'lines of JSON; - for standard input')
    .option('--type <type>', 'the event type of all lines, which are the data of events')
    .addOption(numberOption('--partitions <number>', 'of the events topic', 1, 1_000_000).default(PARTITIONS_DEFAULT))
    .option('--live', 'the records would follow everything that is projected now')
    .option('--json', 'a line of JSON for each record')
    .action(
      run((file: string, { type, partitions, live = false, json = false }: Flags) =>
        actions.validate({ file, type, partitions, live, json }),
      ),
    )
    .addHelpText('after', help)
}

export const addFollow = (program: Command, actions: StreamActions, run: RunAction): void => {
  program
    .command('follow')
    .description('Prints the changes of an organization as lines of JSON, as the API answers them, for ever.')
    .addOption(new Option('--org <id>', 'its changes').argParser(parseId('org')).makeOptionMandatory())
    .option('--starting-after <change>', 'continues after this change: the id of the last line')
    .option('--once', 'ends after the last change there is now')
    .action(run(({ org, startingAfter, once = false }: FollowFlags) => actions.follow({ org, startingAfter, once })))
    .addHelpText('after', followHelp)
}

export const addDoctor = (program: Command, actions: StreamActions, run: RunAction): void => {
  program
    .command('doctor')
    .description(
      'Checks with the settings in force whether a process can do its work, and says how to mend what is wrong.',
    )
    .addArgument(
      new Argument(
        '[identities...]',
        'of docs/access.md (default: projector, if KAFKA_BROKERS is set, and api)',
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
It tries each right of docs/access.md without a trace, and checks topics, the cluster, clocks, certificates and Redis. It changes nothing.
A line begins with ok, warning, failed or "not tried".
Exit codes: 0 nothing failed; 1 something failed, or it was stopped; 2 the command line or a setting is wrong.`

export const addReference = (program: Command, actions: StreamActions, run: RunAction): void => {
  program
    .command('reference')
    .description('Writes the reference of the API as files that a browser opens without a server.')
    .argument('<directory>', 'target directory; created if missing')
    .action(run((directory: string) => actions.reference({ directory })))
}

export const addKeys = (program: Command, actions: StreamActions, run: RunAction): void => {
  const keys = program
    .command('keys')
    .description('Makes, lists, rotates and revokes the API keys of an organization.')
    .addHelpText('after', keysHelp)
  const ofOrganization = (command: Command): Command => command.addOption(orgOption())
  const ofKey = (command: Command): Command =>
    ofOrganization(command).addOption(
      new Option('--id <key>', 'its id, as list shows it').argParser(parseId('key')).makeOptionMandatory(),
    )
  const expiryOption = (): Option =>
    new Option('--expires-at <instant>', 'the API refuses it from then on').argParser(parseExpiry)

  ofOrganization(keys.command('create'))
    .description('makes a key and shows its text, which is never shown again')
    .addOption(new Option('--name <name>', 'what it is for').argParser(parseKeyName).makeOptionMandatory())
    .addOption(
      new Option('--permission <permission...>', 'what it may read (default: read, which is all)').choices(
        keyPermissions,
      ),
    )
    .option('--no-read', 'the key may not read anything')
    .addOption(expiryOption())
    .addOption(waitOption())
    .option('--json', 'as JSON')
    .action(
      run((options: CreateKeyFlags, command: Command) => {
        const { org, name, read, permission, expiresAt = null, wait, json = false } = options
        if (!read && permission !== undefined) command.error('error: --no-read and --permission exclude each other')
        const permissions = read ? (permission ?? ['read']) : []
        return actions.createKey({ org, name, permissions, expiresAt, waitSeconds: wait, json })
      }),
    )

  ofOrganization(keys.command('list'))
    .description('lists all keys by id, revoked and expired ones too')
    .option('--json', 'a line of JSON each')
    .action(run(({ org, json = false }: { org: string; json?: boolean }) => actions.listKeys({ org, json })))

  ofKey(keys.command('rotate'))
    .description(
      'makes the next key, with the name and the permissions of this one, which stays valid until you revoke it',
    )
    .addOption(new Option('--name <name>', 'another name').argParser(parseKeyName))
    .addOption(expiryOption())
    .addOption(waitOption())
    .option('--json', 'as JSON')
    .action(
      run(({ org, id, name, expiresAt = null, wait, json = false }: RotateKeyFlags) =>
        actions.rotateKey({ org, id, name, expiresAt, waitSeconds: wait, json }),
      ),
    )

  ofKey(keys.command('revoke'))
    .description('revokes a key for ever: within 5 s every API refuses it')
    .addOption(waitOption())
    .action(
      run(({ org, id, wait }: { org: string; id: string; wait: number }) =>
        actions.revokeKey({ org, id, waitSeconds: wait }),
      ),
    )
}

type NewKeyFlags = {
  readonly org: string
  readonly expiresAt?: string | null
  readonly wait: number
  readonly json?: boolean
}
type CreateKeyFlags = NewKeyFlags & {
  readonly name: string
  readonly read: boolean
  readonly permission?: KeyPermission[]
}
type RotateKeyFlags = NewKeyFlags & { readonly id: string; readonly name?: string }

const keysHelp = `
Reads the projector's settings for Kafka and Elasticsearch from the environment. Standard output has the key only: KEY=$(npm run -s keys -- create --org org_1 --name Payroll). To revoke a key you need its id: --json prints both.
Permissions: ${keyPermissions.join(', ')}. --permission takes several.
Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong.`

export const addUpgradeKeys = (projection: Command, actions: StreamActions, run: RunAction): void => {
  projection
    .command('upgrade-keys')
    .description(
      'raises the version of the rules for API keys, with all projectors stopped: keys get permissions and expiry',
    )
    .addOption(
      numberOption('--from <offset>', 'the offset that it printed before, after a restore', 0, Number.MAX_SAFE_INTEGER),
    )
    .option('--json', 'as JSON')
    .action(
      run(({ from, json = false }: { readonly from?: number; readonly json?: boolean }) =>
        actions.upgradeKeys({ from, json }),
      ),
    )
}

export const addRules = (projection: Command, actions: StreamActions, run: RunAction): void => {
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

type Flags = {
  readonly type?: string
  readonly partitions: number
  readonly live?: boolean
  readonly json?: boolean
}

const help = `
A line is a record (an object with value, key, headers), an event (type and data; with specversion a CloudEvents event), or, with --type, the data
of an event. contract/records.ndjson has examples. Without --live the file is a whole log: nothing exists before its first line, and no service
is needed. With --live it reads the projector's settings for Elasticsearch from the environment. Nothing is written or published.
Exit codes: 0 all would be applied or are duplicates; 1 it could not be done; 2 the command line is wrong; 3 some would be parked.`

export const addSubjects = (program: Command, actions: StreamActions, run: RunAction): void => {
  const subjects = program
    .command('subjects')
    .description('Lists people, reports where the data of one is, and erases it by destroying its key.')
    .addHelpText('after', subjectsHelp)
  const ofOrganization = (name: string): Command =>
    subjects.command(name).argument('<org>', 'the organization', parseId('org'))
  const ofRep = (name: string): Command => ofOrganization(name).argument('<rep>', 'the person', parseId('rep'))

  ofOrganization('list')
    .description('lists the reps of an organization in the live generation, and the keys that seal their texts')
    .option('--json', 'a line of JSON each')
    .action(run((org: string, { json = false }: { json?: boolean }) => actions.listSubjects({ org, json })))

  ofRep('report')
    .description('shows each record with a text of the person, in every generation and sandbox, parked ones too')
    .option('--json', 'as JSON')
    .action(
      run((org: string, rep: string, { json = false }: { json?: boolean }) =>
        actions.reportSubject({ org, rep, json }),
      ),
    )

  ofRep('erase')
    .description('shows what would be lost; with --confirm destroys the keys of the person, for ever')
    .addOption(new Option('--confirm <rep>', 'the id of the rep again').argParser(parseId('rep')))
    .option('--shared', 'also a seal key that seals texts of others: they are lost, too')
    .option('--json', 'the receipts, a line of JSON each')
    .action(
      run((org: string, rep: string, { confirm, shared = false, json = false }: EraseFlags) =>
        actions.eraseSubject({ org, rep, confirm, shared, json }),
      ),
    )
}

type EraseFlags = { readonly confirm?: string; readonly shared?: boolean; readonly json?: boolean }

const subjectsHelp = `
Reads the projector's settings for Elasticsearch from the environment, and SEAL_KEYS_DIR, the directory of keys that the API reads. Prints no personal text.
erase refuses a seal key that also seals texts of others, unless you say --shared. A command that was killed is finished by the same command. Documents, Kafka and exports
are not changed: they have what was published, and nobody can open it any more. docs/privacy.md says what erasing does and does not do.
Exit codes: 0 done; 1 it could not be done, or was stopped; 2 the command line is wrong.`
