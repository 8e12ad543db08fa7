/** The commands of `npm run projection` for analysts: their options and their help. */
import { type Command, Option } from 'commander'
import { instant, organization, sandboxName, untilOffsets, wholeNumber } from './arguments.ts'
import type { ExitCode } from './failures.ts'
import type { ReplayOptions } from './projection/replay.ts'
import type { UntilOffset } from './projection/until.ts'

/** Carries an action out and keeps its exit code. */
export type Does = <Args extends unknown[]>(
  action: (...args: Args) => Promise<ExitCode>,
) => (...args: Args) => Promise<void>

export type AnalysisActions = {
  readonly replay: (options: ReplayOptions) => Promise<ExitCode>
  readonly listSandboxes: (options: { readonly json: boolean }) => Promise<ExitCode>
  readonly dropSandbox: (options: { readonly name: string }) => Promise<ExitCode>
}

export const addAnalysis = (projection: Command, actions: AnalysisActions, does: Does): void => {
  projection
    .command('replay')
    .description('projects the log from its first record up to a point, into a sandbox beside all that is live')
    .addOption(
      new Option('--name <name>', 'of the sandbox; the first free of s1, s2 … by default').argParser(sandboxName),
    )
    .addOption(
      new Option('--until-offset <partition:offset>', 'up to just before this offset; again for each partition')
        .argParser(untilOffsets)
        .conflicts('untilTime'),
    )
    .addOption(new Option('--until-time <instant>', 'everything that was there at this instant').argParser(instant))
    .addOption(new Option('--org <id>', 'only the records of this organization').argParser(organization))
    .addOption(new Option('--rules <file>', 'under other rules: a module that replaces some of them'))
    .addOption(wholeNumber('--max-rate <records>', 'a second, at most: gentle on what is live', 1, 1_000_000))
    .option('--json', 'what was made, as JSON')
    .action(
      does((options: ReplayFlags, command: Command) => {
        const { untilOffset, untilTime: time, org, name, rules, maxRate, json = false } = options
        if (org === undefined && untilOffset?.some(({ partition }) => partition === undefined)) {
          command.error('error: an offset without a partition is one of an organization: --org')
        }
        const until = untilOffset ? { offsets: untilOffset } : time === undefined ? undefined : { time }
        return actions.replay({ name, until, org, rules, maxRate: maxRate ?? Number.POSITIVE_INFINITY, json })
      }),
    )
    .addHelpText('after', replayHelp)
}

type ReplayFlags = {
  readonly name?: string
  readonly untilOffset?: UntilOffset[]
  readonly untilTime?: number
  readonly org?: string
  readonly rules?: string
  readonly maxRate?: number
  readonly json?: boolean
}

const replayHelp = `
Reads Kafka and nothing else, in a consumer group of its own ({KAFKA_GROUP_ID}-sandbox-NAME), and writes to {ELASTICSEARCH_INDEX_PREFIX}-sandbox-* and
nothing else: credentials that may do no more are enough. Without --until-offset and --until-time it goes up to where the topic ends now, as do
partitions without an --until-offset. With --org the offset of its only partition may stand alone: --org org_1 --until-offset 1200.
--until-time goes by the time Kafka gave the records. A replay that was stopped is gone on with by the same command and its --name.
Elsewhere a sandbox is written sandbox:NAME; list --sandbox lists them, drop sandbox:NAME drops one.
--rules names a module (.ts or .js) whose default export is a function from the built-in table of rules to another, as
commands/projection/rules-module.ts describes: npm run projection -- replay --rules ./capped.ts, then diff the two.`
