/** The command line: commands, options and help. Parsing only calls the requested command with its options. */
import { Command, CommanderError, Option } from 'commander'
import { type ExitCode, exitCodes } from './failures.ts'
import type { RebuildOptions } from './generations/rebuild.ts'
import type { RewindOptions } from './generations/rewind.ts'
import { sandboxIn } from './generations/sandboxes.ts'
import type { StatusOptions } from './generations/status.ts'
import type { SwapOptions } from './generations/swap.ts'
import type { VerifyOptions } from './generations/verify.ts'
import { LIST_DEFAULT, RECORDS_MAX } from './limits.ts'
import { type AnalysisActions, addAnalysis, type RunAction } from './options/analysis-commands.ts'
import { addArchive } from './options/archive-commands.ts'
import {
  addPosition,
  filterOf,
  maxRateOption,
  numberOption,
  parseGeneration,
  parseGenerationOrSandbox,
  parseId,
  parseInstant,
  parsePosition,
  waitOption,
  withFilter,
} from './options/arguments.ts'
import { addKeys, addSubjects, addUpgradeKeys } from './options/key-commands.ts'
import {
  addDoctor,
  addFollow,
  addReference,
  addRules,
  addValidate,
  type OtherActions,
} from './options/other-commands.ts'
import type { Filter, RecordPosition } from './parked/find.ts'
import type { again, count, listParked, showParked } from './parked/parked.ts'

type Options<Action extends (...args: never[]) => unknown> = Parameters<Action>[0]

/** The commands; each returns its exit code. */
type Actions = AnalysisActions &
  OtherActions & {
    readonly list: (options: Options<typeof listParked>) => Promise<ExitCode>
    readonly count: (options: Options<typeof count>) => Promise<ExitCode>
    readonly show: (options: Options<typeof showParked>) => Promise<ExitCode>
    readonly again: (options: Options<typeof again>) => Promise<ExitCode>
    readonly listGenerations: (options: { readonly json: boolean }) => Promise<ExitCode>
    readonly status: (options: StatusOptions) => Promise<ExitCode>
    readonly rebuild: (options: RebuildOptions) => Promise<ExitCode>
    readonly verify: (options: VerifyOptions) => Promise<ExitCode>
    readonly swap: (options: SwapOptions) => Promise<ExitCode>
    readonly rollback: (options: Omit<SwapOptions, 'generation'>) => Promise<ExitCode>
    readonly rewind: (options: RewindOptions) => Promise<ExitCode>
    readonly adopt: (options: AdoptOptions) => Promise<ExitCode>
    readonly drop: (options: { readonly generation: string; readonly json: boolean }) => Promise<ExitCode>
  }

type Output = { readonly out: (text: string) => void; readonly error: (text: string) => void }

/** Runs the command of a command line. @param args without the program and the script */
export const runProgram = async (args: readonly string[], actions: Actions, output: Output): Promise<ExitCode> => {
  let code: ExitCode = exitCodes.done
  const run =
    <Args extends unknown[]>(action: (...args: Args) => Promise<ExitCode>) =>
    async (...args: Args): Promise<void> => {
      code = await action(...args)
    }
  const program = new Command('npm run')
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.error })
    .configureHelp({ commandUsage: usageOf })
    .showHelpAfterError('(--help lists commands and options)')
  addParked(program, actions, run)
  addKeys(program, actions, run)
  addSubjects(program, actions, run)
  addProjection(program, actions, run)
  addValidate(program, actions, run)
  addFollow(program, actions, run)
  addDoctor(program, actions, run)
  addReference(program, actions, run)
  addArchive(program, actions, run)
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    // Commander has printed the message. Requested help is no mistake.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    throw error
  }
}

/** npm passes on only what follows `--`. */
const usageOf = (command: Command): string => {
  const names: string[] = []
  for (let at: Command | null = command; at?.parent; at = at.parent) names.unshift(at.name())
  const [script = '<script>', ...rest] = names
  return ['npm run', script, '--', ...rest, command.usage()].join(' ')
}

const addParked = (program: Command, actions: Actions, run: RunAction): void => {
  const aPosition = 'topic:partition:offset, as list shows it'
  const parked = program
    .command('parked')
    .description('Shows parked records. Publishes them again after the records that they refer to exist.')
    .addHelpText('after', exits)

  withFilter(parked.command('list'))
    .description('lists parked records')
    .addOption(new Option('--newest', 'newest first'))
    .addOption(new Option('--oldest', 'oldest first (default)').conflicts('newest'))
    .addOption(numberOption('--limit <records>', 'the most records to list', 1, RECORDS_MAX).default(LIST_DEFAULT))
    .option('--json', 'a line of JSON each')
    .action(
      run((options: ListFlags) => {
        const { newest, limit, json = false } = options
        return actions.list({ filter: filterOf(options), order: newest ? 'newest' : 'oldest', limit, json })
      }),
    )

  withFilter(parked.command('count'))
    .description('counts them by code')
    .option('--json', 'as JSON')
    .action(run(options => actions.count({ filter: filterOf(options), json: options.json ?? false })))

  parked
    .command('show')
    .description('shows one record: why it was parked, its key, headers and value')
    .argument('<position>', aPosition, parsePosition)
    .addOption(new Option('--raw', 'only its value, byte for byte'))
    .addOption(new Option('--json', 'as JSON; key, headers and value in base64').conflicts('raw'))
    .action(
      run((position: RecordPosition, options: { json?: true; raw?: true }) =>
        actions.show({ position, as: options.raw ? 'raw' : options.json ? 'json' : 'text' }),
      ),
    )

  withFilter(parked.command('publish-again'))
    .description('publishes records again unchanged, oldest first: same key, headers and bytes, to the same topic')
    .argument('[positions...]', `${aPosition}; or select records by options`, addPosition, [])
    .option('--all', 'all parked records')
    .addOption(new Option('--publish', 'publishes them; without it a dry run shows the outcome of each'))
    .addOption(new Option('--dry-run', 'only shows what the outcome of each would be (default)').conflicts('publish'))
    .option('--force', 'also publishes an older rep or period over a newer one')
    .addOption(waitOption())
    .option('--json', 'a line of JSON each')
    .action(
      run((positions: RecordPosition[], options: AgainFlags, command: Command) => {
        const filter = filterOf(options)
        const selections = [positions.length > 0, Object.keys(filter).length > 0, options.all === true].filter(Boolean)
        if (selections.length !== 1) command.error('error: select records by position, by a filter or with --all')
        const { publish = false, force = false, wait, json = false } = options
        return actions.again({ positions, filter, publish, force, waitSeconds: wait, json })
      }),
    )
    .addHelpText('after', published)
}

const addProjection = (program: Command, actions: Actions, run: RunAction): void => {
  const projection = program
    .command('projection')
    .description('Rebuilds the projection beside the live one, verifies it, swaps them; replays, compares, explains.')
    .addHelpText('after', projectionHelp)

  projection
    .command('list')
    .description('lists the generations')
    .option('--sandbox', 'lists sandboxes instead')
    .option('--json', 'a line of JSON each')
    .action(
      run(({ sandbox, json = false }: { sandbox?: true; json?: boolean }) =>
        sandbox ? actions.listSandboxes({ json }) : actions.listGenerations({ json }),
      ),
    )

  projection
    .command('status')
    .description('shows the position of a generation in each partition, and its parked records')
    .addOption(new Option('--generation <name>', 'a generation (default: the live one)').argParser(parseGeneration))
    .addOption(
      new Option('--org <id>', 'only this organization: its partition and its records').argParser(parseId('org')),
    )
    .option('--json', 'as JSON')
    .action(
      run((options: { generation?: string; org?: string; json?: boolean }) =>
        actions.status({ generation: options.generation, org: options.org, json: options.json ?? false }),
      ),
    )

  projection
    .command('rebuild')
    .description('makes a generation from the first record on beside the live one, or continues one that was begun')
    .addOption(maxRateOption())
    .option('--json', 'the name of the generation, as JSON')
    .action(
      run((options: { maxRate: number; json?: boolean }) =>
        actions.rebuild({ maxRate: options.maxRate, json: options.json ?? false }),
      ),
    )

  projection
    .command('verify')
    .description('compares every document of two generations, as of positions that both have reached')
    .argument('<a>', 'the trusted generation', parseGeneration)
    .argument('<b>', 'the other generation', parseGeneration)
    .option('--json', 'a line of JSON for each organization, and for each difference')
    .action(run((a: string, b: string, { json = false }: { json?: boolean }) => actions.verify({ a, b, json })))

  projection
    .command('swap')
    .description('makes a generation live once it has reached the live one, which is kept up for a rollback')
    .argument('<generation>', 'a generation that verify found equal to the live one', parseGeneration)
    .addOption(new Option('--force <reason>', 'also if verify did not find it equal'))
    .option('--json', 'the live and the previous generation, as JSON')
    .action(run((name: string, { force, json = false }: SwapFlags) => actions.swap({ generation: name, force, json })))

  projection
    .command('rollback')
    .description('makes the previous generation live again')
    .addOption(new Option('--force <reason>', 'also if records that were parked since are applied there'))
    .option('--json', 'the live and the previous generation, as JSON')
    .action(run(({ force, json = false }: SwapFlags) => actions.rollback({ force, json })))
  projection
    .command('adopt')
    .description(
      'takes over indices that were restored from a snapshot: all records are read again before the API serves them',
    )
    .option('--archive <archive>', 'instead, takes another cluster as the source, after a proof with this archive')
    .option('--redacted <file>', 'with --archive: the topics have the log that restore --redact made; its list')
    .option('--json', 'the adopted generations, as JSON')
    .action(
      run(({ archive, redacted, json = false }: Partial<AdoptOptions>, command: Command) => {
        if (redacted !== undefined && archive === undefined) command.error('error: --redacted needs --archive')
        return actions.adopt({ archive, redacted, json })
      }),
    )

  projection
    .command('rewind')
    .description('like adopt, but reads the events again only from positions that are older than the snapshot')
    .addOption(
      new Option('--snapshot-start <instant>', 'start_time of the snapshot; of several the earliest')
        .argParser(parseInstant)
        .makeOptionMandatory(),
    )
    .option('--json', 'the generations with their positions, as JSON')
    .action(run(({ snapshotStart, json = false }: RewindFlags) => actions.rewind({ snapshotStart, json })))

  projection
    .command('drop')
    .description('deletes a generation that is not live, or a sandbox')
    .argument('<generation>', 'its name', parseGenerationOrSandbox)
    .option('--json', 'what was dropped, as JSON')
    .action(
      run((name: string, { json = false }: { json?: boolean }) => {
        const sandbox = sandboxIn(name)
        return sandbox === undefined
          ? actions.drop({ generation: name, json })
          : actions.dropSandbox({ name: sandbox, json })
      }),
    )

  addParked(projection, actions, run)
  addAnalysis(projection, actions, run)
  addRules(projection, actions, run)
  addUpgradeKeys(projection, actions, run)
}

type AdoptOptions = {
  readonly archive: string | undefined
  readonly redacted: string | undefined
  readonly json: boolean
}
type RewindFlags = { readonly snapshotStart: number; readonly json?: boolean }
type SwapFlags = { readonly force?: string; readonly json?: boolean }
type ListFlags = Filter & { readonly newest?: true; readonly limit: number; readonly json?: true }
type AgainFlags = Filter & {
  readonly all?: true
  readonly publish?: true
  readonly force?: true
  readonly wait: number
  readonly json?: true
}

const exits = `
Reads the projector's settings for Elasticsearch from the environment; publish-again also those for Kafka.
In a script use npm run -s and --json. Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong;
3 publish-again: not every record is, or would be, applied.`

const projectionHelp = `
Reads the projector's settings from the environment, KAFKA_GROUP_ID too. No command needs a restart: projectors keep up every generation that is
not dropped, and the API reads the live one with its next request.
Exit codes: 0 done; 1 it could not be done, or verify found a difference; 2 the command line is wrong; 3 diff found a difference.`

const published = `
Publishes only records that would be applied. Skips records that are there already, so that a second run changes nothing, and refuses records that
would be parked again. Waits until the projector has passed each record, and shows its outcome. If the wait ends or is interrupted before that, a
sent record is shown as published again and not decided yet (exit code 1): run the same command later to see its outcome.`
