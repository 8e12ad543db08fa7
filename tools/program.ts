/** The command line. Only the file of the requested command is loaded; parsing calls it with its options. */
import { Argument, Command, CommanderError } from 'commander'
import type { Call } from './command.ts'
import { catalogue, type Listed } from './commands/catalogue.ts'
import { programHelp } from './commands/families.ts'
import type { Contexts } from './contexts.ts'
import { type ExitCode, exitCodes } from './exit-codes.ts'
import { wrapped } from './terminal.ts'

/** Runs a command by its name, such as `parked list`. */
export type RunCommand = (
  name: string,
  options: unknown,
  run: (contexts: Contexts) => Promise<ExitCode>,
) => Promise<ExitCode>

type Output = {
  readonly out: (text: string) => void
  readonly error: (text: string) => void
  readonly version?: string
  /** Columns of the terminal; undefined without one. */
  readonly columns?: number | undefined
}

/** Runs the command of a command line. @param args without the program and the script */
export const runProgram = async (
  args: readonly string[],
  runCommand: RunCommand,
  output: Output,
): Promise<ExitCode> => {
  let code: ExitCode = exitCodes.done
  const callOf =
    (command: Command): Call =>
    async (options, run) => {
      code = await runCommand(nameOfCommand(command), options, contexts => run(options, contexts))
    }
  const program = createProgram(callOf, output)
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    // Commander has printed the message. Requested help is no mistake.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    throw error
  }
}

const createProgram = (callOf: (command: Command) => Call, { out, error, version, columns }: Output): Command => {
  const program = new Command('commission')
    .description('The commands of operators and analysts.')
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: error, getOutHelpWidth: () => columns ?? COLUMNS_DEFAULT })
    .configureHelp({ styleTitle: title => bold(title) })
    .showHelpAfterError('(--help lists commands and options)')
    .addHelpText('after', wrapped(programHelp, columns))
  if (version !== undefined) program.version(version)
  const add = (parent: Command, listed: Listed, task?: string): void => {
    const command = parent.command(listed.name).description(listed.summary)
    if (task !== undefined) command.helpGroup(task)
    if (listed.help !== undefined) command.addHelpText('after', wrapped(listed.help, columns))
    files.set(command, listed.load)
    command.hook('preSubcommand', loadFile)
    for (const inner of listed.commands ?? []) add(command, inner)
  }
  const files = new Map<Command, Listed['load']>()
  const loadFile = async (_: Command, command: Command): Promise<void> => {
    const file = await files.get(command)?.()
    const addHelpText = command.addHelpText.bind(command)
    // Help texts of a file fit the terminal, too.
    command.addHelpText = (position, text) => addHelpText(position, wrapped(String(text), columns))
    file?.default(command, callOf(command))
  }
  program.hook('preSubcommand', loadFile)
  for (const [task, commands] of catalogue) for (const listed of commands) add(program, listed, task)
  program
    .command('completion')
    .description('Prints a script that completes commands and options, for bash, zsh or fish.')
    .helpGroup('Shell:')
    .addArgument(new Argument('<shell>', 'eval "$(commission completion bash)"; of fish: | source').choices(shells))
    .action(async (shell: (typeof shells)[number]) => {
      for (const command of files.keys()) await loadFile(program, command)
      const { completionOf } = await import('./commands/completion.ts')
      out(completionOf(shell, program))
    })
  return program
}

const shells = ['bash', 'zsh', 'fish'] as const

/** Columns of help without a terminal. */
const COLUMNS_DEFAULT = 80

const bold = (text: string): string => `\u001b[1m${text}\u001b[22m`

const nameOfCommand = (command: Command): string => {
  const names: string[] = []
  for (let at: Command | null = command; at?.parent; at = at.parent) names.unshift(at.name())
  return names.join(' ')
}
