/** One command in one file: its options, its help and how it runs. The file is loaded when its command is called. */
import type { Command } from 'commander'
import type { Contexts } from './contexts.ts'
import type { ExitCode } from './failures.ts'

/** Runs a command with its options, and stores its exit code. */
export type Call = <Options>(
  options: Options,
  run: (options: Options, contexts: Contexts) => Promise<ExitCode>,
) => Promise<void>

/** Adds options, help and action to a command that has its name. */
export type AddCommand = (command: Command, call: Call) => void

type CommandFile<Args extends unknown[], Options> = {
  /** Adds arguments and options. */
  readonly options?: (command: Command) => unknown
  /** Follows the list of options. */
  readonly help?: string
  /** Turns arguments and flags into options. A wrong combination ends with `command.error`. */
  readonly asked: (...args: Args) => Options
  readonly run: (options: Options, contexts: Contexts) => Promise<ExitCode>
}

export const defineCommand =
  <Args extends unknown[], Options>({ options, help, asked, run }: CommandFile<Args, Options>): AddCommand =>
  (command, call) => {
    options?.(command)
    if (help !== undefined) command.addHelpText('after', help)
    command.action((...args: Args) => call(asked(...args), run))
  }
