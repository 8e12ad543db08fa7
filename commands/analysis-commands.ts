/** The commands of `npm run projection` for analysts: their options and their help. */
import { type Command, Option } from 'commander'
import type { Moment } from '../api/read/read-parameters.ts'
import type { ExplainOptions } from './analysis/explain.ts'
import type { ReplayOptions } from './analysis/replay.ts'
import type { UntilOffset } from './analysis/replay-bounds.ts'
import {
  generationOrSandbox,
  instant,
  moment,
  organization,
  payoutId,
  sandboxName,
  untilOffsets,
  wholeNumber,
} from './arguments.ts'
import type { ExportOptions } from './export/export.ts'
import { periodKinds, type TotalsOptions } from './export/totals.ts'
import type { ExitCode } from './failures.ts'
import { type DiffOptions, formats } from './generations/diff.ts'

/** Carries an action out and keeps its exit code. */
export type Does = <Args extends unknown[]>(
  action: (...args: Args) => Promise<ExitCode>,
) => (...args: Args) => Promise<void>

export type AnalysisActions = {
  readonly replay: (options: ReplayOptions) => Promise<ExitCode>
  readonly diff: (options: DiffOptions) => Promise<ExitCode>
  readonly explain: (options: ExplainOptions) => Promise<ExitCode>
  readonly exportOrganization: (options: ExportOptions) => Promise<ExitCode>
  readonly showTotals: (options: TotalsOptions) => Promise<ExitCode>
  readonly listSandboxes: (options: { readonly json: boolean }) => Promise<ExitCode>
  readonly dropSandbox: (options: { readonly name: string; readonly json: boolean }) => Promise<ExitCode>
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

  projection
    .command('diff')
    .description('says what two generations or sandboxes say differently: money, lines, records')
    .argument('<a>', 'a generation, or sandbox:NAME', generationOrSandbox)
    .argument('<b>', 'the other', generationOrSandbox)
    .addOption(new Option('--org <id>', 'only of this organization').argParser(organization))
    .addOption(new Option('--format <format>', 'how it is written').choices(formats).default('table').conflicts('json'))
    .addOption(new Option('--json', 'the same as --format ndjson'))
    .action(
      does((a: string, b: string, { org, format, json }: DiffFlags) =>
        actions.diff({ a, b, org, format: json ? 'ndjson' : format }),
      ),
    )
    .addHelpText('after', diffHelp)

  projection
    .command('explain')
    .description(
      'says how a payout came to be what it is: its chain from the first to the current one, and what was paid',
    )
    .argument('<payout>', 'any payout of the chain', payoutId)
    .addOption(new Option('--org <id>', 'its organization').argParser(organization).makeOptionMandatory())
    .addOption(
      new Option('--generation <name>', 'in this one, or in sandbox:NAME; in the live one by default').argParser(
        generationOrSandbox,
      ),
    )
    .option('--json', 'as JSON')
    .action(
      does((payout: string, { org, generation, json = false }: ExplainFlags) =>
        actions.explain({ org, payout, generation, json }),
      ),
    )
    .addHelpText('after', explainHelp)

  ofMoment(projection.command('export'))
    .description('writes an organization as it was at one moment into files: a line of JSON for each record')
    .addOption(new Option('--out <directory>', 'where to; it is made if need be').makeOptionMandatory())
    .option('--parquet', 'as Parquet tables, too')
    .option('--json', 'the manifest, once it is done')
    .action(
      does(({ org, asOf, out, parquet = false, json = false }: ExportFlags) =>
        actions.exportOrganization({ org, asOf, out, parquet, json }),
      ),
    )
    .addHelpText('after', exportHelp)

  ofMoment(projection.command('totals'))
    .description('says what is owed and what has left, by period and currency, at one moment')
    .addOption(new Option('--kind <kind>', 'only of periods of this kind').choices(periodKinds))
    .option('--svg <file>', 'draws it into a file')
    .option('--json', 'as JSON')
    .action(
      does(({ org, asOf, kind, svg, json = false }: TotalsFlags) => actions.showTotals({ org, asOf, kind, svg, json })),
    )
}

const ofMoment = (command: Command): Command =>
  command
    .addOption(new Option('--org <id>', 'the organization').argParser(organization).makeOptionMandatory())
    .addOption(
      new Option(
        '--as-of <moment>',
        'an instant that is over, or the id of a change; the last change by default',
      ).argParser(moment),
    )

type ExportFlags = {
  readonly org: string
  readonly asOf?: Moment
  readonly out: string
  readonly parquet?: boolean
  readonly json?: boolean
}
type TotalsFlags = {
  readonly org: string
  readonly asOf?: Moment
  readonly svg?: string
  readonly kind?: (typeof periodKinds)[number]
  readonly json?: boolean
}

const exportHelp = `
Of the live generation: reps, periods, payouts (current then), statements (theirs) and payroll_files, each as the API answers it, and manifest.json: which moment,
how many records and bytes, SHA-256 of each file, what is owed and paid by currency, and a digest of all. The files add up to the projection's own
totals, and reps and periods to how many it has, or it fails. The same moment gives the same bytes. An export that was stopped or killed is gone on
with by the same command; one that is there is looked at, and left as it is. One export at a time writes into a directory: another one is refused. Reads Elasticsearch alone. Exit codes: 0 done; 1 it could not be done, or was stopped; 2 the command line is wrong.`

type ReplayFlags = {
  readonly name?: string
  readonly untilOffset?: UntilOffset[]
  readonly untilTime?: number
  readonly org?: string
  readonly rules?: string
  readonly maxRate?: number
  readonly json?: boolean
}

type DiffFlags = { readonly org?: string; readonly format: DiffOptions['format']; readonly json?: true }

type ExplainFlags = { readonly org: string; readonly generation?: string; readonly json?: boolean }

const explainHelp = `
For each payout of the rep and the period: the event that made it, with its position (topic:partition:offset) and record time; net and earned
amount and totals by category, with what they differ by from the one before; lines and strategies that came (+), went (-) or changed (~). Then
the payments and voids, the payout that each names, and by currency what is owed now, what was paid, and what of it is still owed (below zero:
paid too much). As of the published position; sums are exact. Reads Elasticsearch alone.`

const diffHelp = `
Each is read as of its own published positions. What records say is compared, not at which offsets: to see what other rules change, and nothing
else, replay twice up to the same offsets, with and without --rules. A sandbox of one organization is compared in that one only.

CSV and NDJSON have rows of one shape: row, organization, rep, period, kind, id, change, field, category, currency, a, b, difference (b less a).
  owed, paid  by rep, period and currency: the net amounts of current payouts, and what has left; only where they differ
  line        of each rep and period whose current payout differs: a line that was added, removed or changed (first field that differs)
  record      reps, periods, payouts, statements, payroll_files, parked: only in b (added), only in a (removed), or changed, with the first field
Amounts are exact, as texts. In CSV (UTF-8) a text that a spreadsheet would take for a formula has an apostrophe in front. Totals are on
standard error. Exit codes: 0 nothing differs; 1 it could not be done; 2 the command line is wrong; 3 something differs.`

const replayHelp = `
Reads Kafka and nothing else, in a consumer group of its own ({KAFKA_GROUP_ID}-sandbox-NAME), and writes to {ELASTICSEARCH_INDEX_PREFIX}-sandbox-* and
nothing else: credentials that may do no more are enough. Without --until-offset and --until-time it goes up to where the topic ends now, as do
partitions without an --until-offset. With --org the offset of its only partition may stand alone: --org org_1 --until-offset 1200.
--until-time goes by the time Kafka gave the records. It must be over: each partition has a later record, or it lies 30 s back. A replay that was stopped is gone on with by the same command and its --name.
Elsewhere a sandbox is written sandbox:NAME; list --sandbox lists them, drop sandbox:NAME drops one.
--rules names a module (.ts or .js) whose default export is a function from the built-in table of rules to another, as
commands/analysis/rules-module.ts describes: npm run projection -- replay --rules ./capped.ts, then diff the two.`
