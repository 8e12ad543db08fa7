/**
 * The command line: its commands, options and help, in one place. Reading it has no effect but to call what was asked
 * for, with what was said.
 */
import { Command, CommanderError, Option } from 'commander'
import { parkCodes } from '../schemas/errors.ts'
import { type AnalysisActions, addAnalysis, type Does } from './analysis-commands.ts'
import {
  generation,
  generationOrSandbox,
  keyId,
  keyName,
  organization,
  position,
  positions,
  wholeNumber,
} from './arguments.ts'
import { type ExitCode, exitCodes } from './failures.ts'
import type { RebuildOptions } from './generations/rebuild.ts'
import { sandboxIn } from './generations/sandboxes.ts'
import type { StatusOptions } from './generations/status.ts'
import type { SwapOptions } from './generations/swap.ts'
import type { VerifyOptions } from './generations/verify.ts'
import type { CreateKeyOptions, ListKeysOptions, RevokeKeyOptions } from './keys/keys.ts'
import { LIST_DEFAULT, RECORDS_MAX, WAIT_DEFAULT_S } from './limits.ts'
import type { Filter, Position } from './parked/find.ts'
import type { again, count, list, show } from './parked/parked.ts'

type Options<Action extends (...args: never[]) => unknown> = Parameters<Action>[0]

/** What the commands do; each gives the exit code. */
export type Actions = AnalysisActions & {
  readonly list: (options: Options<typeof list>) => Promise<ExitCode>
  readonly count: (options: Options<typeof count>) => Promise<ExitCode>
  readonly show: (options: Options<typeof show>) => Promise<ExitCode>
  readonly again: (options: Options<typeof again>) => Promise<ExitCode>
  readonly createKey: (options: CreateKeyOptions) => Promise<ExitCode>
  readonly listKeys: (options: ListKeysOptions) => Promise<ExitCode>
  readonly revokeKey: (options: RevokeKeyOptions) => Promise<ExitCode>
  readonly listGenerations: (options: { readonly json: boolean }) => Promise<ExitCode>
  readonly status: (options: StatusOptions) => Promise<ExitCode>
  readonly rebuild: (options: RebuildOptions) => Promise<ExitCode>
  readonly verify: (options: VerifyOptions) => Promise<ExitCode>
  readonly swap: (options: SwapOptions) => Promise<ExitCode>
  readonly rollback: (options: Omit<SwapOptions, 'generation'>) => Promise<ExitCode>
  readonly adopt: (options: { readonly json: boolean }) => Promise<ExitCode>
  readonly drop: (options: { readonly generation: string; readonly json: boolean }) => Promise<ExitCode>
}

export type Output = { readonly out: (text: string) => void; readonly error: (text: string) => void }

/** Carries out what a command line says. @param args without the program and the script */
export const runProgram = async (args: readonly string[], actions: Actions, output: Output): Promise<ExitCode> => {
  let code: ExitCode = exitCodes.done
  const does =
    <Args extends unknown[]>(action: (...args: Args) => Promise<ExitCode>) =>
    async (...args: Args): Promise<void> => {
      code = await action(...args)
    }
  const program = new Command('npm run')
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.error })
    .configureHelp({ commandUsage: usageOf })
    .showHelpAfterError('(--help says what there is)')
  addParked(program, actions, does)
  addKeys(program, actions, does)
  addProjection(program, actions, does)
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    // The message was said already. Help that was asked for is no mistake.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    throw error
  }
}

/** npm takes what follows `--` only. */
const usageOf = (command: Command): string => {
  const names: string[] = []
  for (let at: Command | null = command; at?.parent; at = at.parent) names.unshift(at.name())
  const [script = '<script>', ...rest] = names
  return ['npm run', script, '--', ...rest, command.usage()].join(' ')
}

const addParked = (program: Command, actions: Actions, does: Does): void => {
  const parked = program
    .command('parked')
    .description('Looks at the records that were refused, and publishes them again once what they lacked is there.')
    .addHelpText('after', exits)

  withFilter(parked.command('list'))
    .description('lists parked records')
    .addOption(new Option('--newest', 'the newest first'))
    .addOption(new Option('--oldest', 'the oldest first (default)').conflicts('newest'))
    .addOption(wholeNumber('--limit <records>', 'at most so many', 1, RECORDS_MAX).default(LIST_DEFAULT))
    .option('--json', 'a line of JSON each')
    .action(
      does(options => {
        const { newest, limit, json = false } = options as ListFlags
        return actions.list({ filter: filterOf(options as Filter), order: newest ? 'newest' : 'oldest', limit, json })
      }),
    )

  withFilter(parked.command('count'))
    .description('counts them by code')
    .option('--json', 'as JSON')
    .action(does(options => actions.count({ filter: filterOf(options), json: options.json ?? false })))

  parked
    .command('show')
    .description('shows one record: why it was parked, its key, headers and value')
    .argument('<position>', 'topic:partition:offset, as list has it', position)
    .addOption(new Option('--raw', 'its value alone, byte for byte'))
    .addOption(new Option('--json', 'as JSON; key, headers and value in base64').conflicts('raw'))
    .action(
      does((position: Position, options: { json?: true; raw?: true }) =>
        actions.show({ position, as: options.raw ? 'raw' : options.json ? 'json' : 'text' }),
      ),
    )

  withFilter(parked.command('publish-again'))
    .description('publishes records again as they are, oldest first: same key, headers and bytes, into the same topic')
    .argument('[positions...]', 'topic:partition:offset, as list has it; or say which by options', positions, [])
    .option('--all', 'all there are')
    .addOption(new Option('--publish', 'does it; otherwise this is a dry run, which says what would become of each'))
    .addOption(new Option('--dry-run', 'says what would become of each (default)').conflicts('publish'))
    .option('--force', 'also where an older rep or period would be put over a newer one')
    .addOption(wholeNumber('--wait <seconds>', 'for the projector, at most', 1, 86_400).default(WAIT_DEFAULT_S))
    .option('--json', 'a line of JSON each')
    .action(
      does((positions: Position[], options: AgainFlags, command: Command) => {
        const filter = filterOf(options)
        const ways = [positions.length > 0, Object.keys(filter).length > 0, options.all === true].filter(Boolean)
        if (ways.length !== 1) command.error('error: say which: positions, or a filter, or --all')
        const { publish = false, force = false, wait, json = false } = options
        return actions.again({ positions, filter, publish, force, waitSeconds: wait, json })
      }),
    )
    .addHelpText('after', published)
}

const addKeys = (program: Command, actions: Actions, does: Does): void => {
  const keys = program
    .command('keys')
    .description('Makes, lists and revokes the API keys of an organization.')
    .addHelpText('after', keysHelp)
  const ofOrganization = (command: Command): Command =>
    command.addOption(new Option('--org <id>', 'the organization').argParser(organization).makeOptionMandatory())
  const wait = () => wholeNumber('--wait <seconds>', 'for the projector, at most', 1, 86_400).default(WAIT_DEFAULT_S)

  ofOrganization(keys.command('create'))
    .description('makes a key, and shows its text: once, here')
    .addOption(new Option('--name <name>', 'what it is for').argParser(keyName).makeOptionMandatory())
    .option('--no-read', 'it may not read anything yet')
    .addOption(wait())
    .option('--json', 'as JSON')
    .action(
      does((options: { org: string; name: string; read: boolean; wait: number; json?: true }) =>
        actions.createKey({
          org: options.org,
          name: options.name,
          mayRead: options.read,
          waitSeconds: options.wait,
          json: options.json ?? false,
        }),
      ),
    )

  ofOrganization(keys.command('list'))
    .description('lists the keys there are and were, by their ids')
    .option('--json', 'a line of JSON each')
    .action(does(({ org, json = false }: { org: string; json?: boolean }) => actions.listKeys({ org, json })))

  ofOrganization(keys.command('revoke'))
    .description('revokes a key for ever: within 5 s no API takes it any more')
    .addOption(new Option('--id <key>', 'its id, as list has it').argParser(keyId).makeOptionMandatory())
    .addOption(wait())
    .action(
      does(({ org, id, wait }: { org: string; id: string; wait: number }) =>
        actions.revokeKey({ org, id, waitSeconds: wait }),
      ),
    )
}

const addProjection = (program: Command, actions: Actions, does: Does): void => {
  const projection = program
    .command('projection')
    .description(
      'Makes the projection anew beside the one that is live, proves it equal, swaps them; replays, compares, explains.',
    )
    .addHelpText('after', projectionHelp)

  projection
    .command('list')
    .description('lists the generations there are')
    .option('--sandbox', 'the sandboxes instead')
    .option('--json', 'a line of JSON each')
    .action(
      does(({ sandbox, json = false }: { sandbox?: true; json?: boolean }) =>
        sandbox ? actions.listSandboxes({ json }) : actions.listGenerations({ json }),
      ),
    )

  projection
    .command('status')
    .description('says how far a generation is, by partition, and what was parked')
    .addOption(new Option('--generation <name>', 'of this one; of the live one by default').argParser(generation))
    .addOption(new Option('--org <id>', 'of this organization: its partition and its records').argParser(organization))
    .option('--json', 'as JSON')
    .action(
      does((options: { generation?: string; org?: string; json?: boolean }) =>
        actions.status({ generation: options.generation, org: options.org, json: options.json ?? false }),
      ),
    )

  projection
    .command('rebuild')
    .description('makes a generation from the first record on, beside the live one; goes on with one that was begun')
    .addOption(wholeNumber('--max-rate <records>', 'a second, at most: gentle on what is live', 1, 1_000_000))
    .option('--json', 'the name of what was made, as JSON')
    .action(
      does((options: { maxRate?: number; json?: boolean }) =>
        actions.rebuild({ maxRate: options.maxRate ?? Number.POSITIVE_INFINITY, json: options.json ?? false }),
      ),
    )

  projection
    .command('verify')
    .description('compares two generations as of where both are: every document of every organization')
    .argument('<a>', 'the one that is trusted', generation)
    .argument('<b>', 'the other', generation)
    .option('--json', 'a line of JSON for each organization, and for each difference')
    .action(does((a: string, b: string, { json = false }: { json?: boolean }) => actions.verify({ a, b, json })))

  projection
    .command('swap')
    .description('makes a generation the live one, once it is as far; the one before is kept up, to go back to')
    .argument('<generation>', 'one that was found equal to the live one', generation)
    .addOption(new Option('--force <reason>', 'also one that was not'))
    .option('--json', 'what is live then, as JSON')
    .action(does((name: string, { force, json = false }: SwapFlags) => actions.swap({ generation: name, force, json })))

  projection
    .command('rollback')
    .description('makes the one live again that was live before')
    .addOption(new Option('--force <reason>', 'also where that undoes what was parked since'))
    .option('--json', 'what is live then, as JSON')
    .action(does(({ force, json = false }: SwapFlags) => actions.rollback({ force, json })))
  projection
    .command('adopt')
    .description(
      'takes indices that were restored from a snapshot: all is read again from the first record before it is served',
    )
    .option('--json', 'what was taken, as JSON')
    .action(does(({ json = false }: { json?: boolean }) => actions.adopt({ json })))

  projection
    .command('drop')
    .description('lets a generation go that is not live: its indices are deleted')
    .argument('<generation>', 'its name', generationOrSandbox)
    .option('--json', 'what was dropped, as JSON')
    .action(
      does((name: string, { json = false }: { json?: boolean }) => {
        const sandbox = sandboxIn(name)
        return sandbox === undefined
          ? actions.drop({ generation: name, json })
          : actions.dropSandbox({ name: sandbox, json })
      }),
    )

  // The same as `npm run parked`.
  addParked(projection, actions, does)
  addAnalysis(projection, actions, does)
}

type SwapFlags = { readonly force?: string; readonly json?: boolean }
type ListFlags = { readonly newest?: true; readonly limit: number; readonly json?: true }
type AgainFlags = Filter & {
  readonly all?: true
  readonly publish?: true
  readonly force?: true
  readonly wait: number
  readonly json?: true
}

const exits = `
Elasticsearch is found by the settings of the projector, in the environment; publish-again also needs those of Kafka.
For a script: npm run -s, and --json. Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong;
3 publish-again: not every record is, or would be, applied.`

const keysHelp = `
Kafka and Elasticsearch are found by the settings of the projector, in the environment. The key is the only thing on standard output:
KEY=$(npm run -s keys -- create --org org_1 --name Payroll). To revoke it later its id is needed: --json has both. Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong.`

const projectionHelp = `
Kafka and Elasticsearch are found by the settings of the projector, in the environment; KAFKA_GROUP_ID is the projector's too. Nothing of
this needs a restart: projectors keep up every generation that is not dropped, and the API reads the live one with its next request.
Exit codes: 0 done; 1 it could not be done, or verify found a difference; 2 the command line is wrong; 3 diff found a difference.`

const published = `
What would be applied is published, and nothing else: what is there already is passed over, so that doing it twice changes
nothing, and what would be parked again is refused. Waits until the projector is past each, and says what became of it. Where the wait is over or
interrupted before, what was sent is told as published again and not decided yet (exit code 1): the same command, later, says what became of it.`

const withFilter = (command: Command): Command =>
  command
    .addOption(new Option('--code <code...>', 'parked with one of these codes').choices(parkCodes))
    .addOption(new Option('--org <id>', 'of this organization').argParser(organization))
    .option('--type <type>', 'of this event type')
    .option('--topic <name>', 'of this topic')
    .addOption(wholeNumber('--partition <number>', 'of this partition', 0, 1_000_000))

const filterOf = ({ code, org, type, topic, partition }: Filter): Filter => ({
  ...(code !== undefined && { code }),
  ...(org !== undefined && { org }),
  ...(type !== undefined && { type }),
  ...(topic !== undefined && { topic }),
  ...(partition !== undefined && { partition }),
})
