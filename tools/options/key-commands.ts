/** `npm run keys`, `subjects`, `projection -- upgrade-keys`: options and help. */
import { type Command, Option } from 'commander'
import { type KeyPermission, keyPermissions } from '../../schemas/values.ts'
import type { ExitCode } from '../failures.ts'
import type { UpgradeKeysOptions } from '../generations/upgrade-keys.ts'
import type { CreateKeyOptions, ListKeysOptions, RevokeKeyOptions } from '../keys/keys.ts'
import type { RotateKeyOptions } from '../keys/rotate.ts'
import type { EraseSubjectOptions, ListSubjectsOptions, ReportSubjectOptions } from '../subjects/subjects.ts'
import type { RunAction } from './analysis-commands.ts'
import { numberOption, orgOption, parseExpiry, parseId, parseKeyName, waitOption } from './arguments.ts'

export type KeyActions = {
  readonly createKey: (options: CreateKeyOptions) => Promise<ExitCode>
  readonly listKeys: (options: ListKeysOptions) => Promise<ExitCode>
  readonly revokeKey: (options: RevokeKeyOptions) => Promise<ExitCode>
  readonly rotateKey: (options: RotateKeyOptions) => Promise<ExitCode>
  readonly upgradeKeys: (options: UpgradeKeysOptions) => Promise<ExitCode>
  readonly listSubjects: (options: ListSubjectsOptions) => Promise<ExitCode>
  readonly reportSubject: (options: ReportSubjectOptions) => Promise<ExitCode>
  readonly eraseSubject: (options: EraseSubjectOptions) => Promise<ExitCode>
}

export const addKeys = (program: Command, actions: KeyActions, run: RunAction): void => {
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

export const addUpgradeKeys = (projection: Command, actions: KeyActions, run: RunAction): void => {
  projection
    .command('upgrade-keys')
    .description(
      'raises the version of the rules for API keys, with all projectors stopped: keys get permissions and expiry',
    )
    .addOption(
      numberOption(
        '--from <offset>',
        'after a restore: the offset that an earlier run printed',
        0,
        Number.MAX_SAFE_INTEGER,
      ),
    )
    .option('--json', 'as JSON')
    .action(
      run(({ from, json = false }: { readonly from?: number; readonly json?: boolean }) =>
        actions.upgradeKeys({ from, json }),
      ),
    )
}

export const addSubjects = (program: Command, actions: KeyActions, run: RunAction): void => {
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
