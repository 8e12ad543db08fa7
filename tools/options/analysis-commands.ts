/** The commands of `npm run projection` for analysts: options and help. */
import { type Command, Option } from 'commander'
import type { Moment } from '../../core/reading/index.ts'
import type { ExplainOptions } from '../analysis/explain.ts'
import type { ReplayOptions } from '../analysis/replay.ts'
import type { UntilOffset } from '../analysis/replay-bounds.ts'
import type { ExportOptions } from '../export/export.ts'
import { periodKinds, type TotalsOptions } from '../export/totals.ts'
import type { ExitCode } from '../failures.ts'
import { type DiffOptions, diffFormats } from '../generations/diff.ts'
import {
  addUntilOffset,
  maxRateOption,
  orgOption,
  parseAsOf,
  parseGenerationOrSandbox,
  parseId,
  parseInstant,
  parseSandboxName,
} from './arguments.ts'

/** Runs an action and stores its exit code. */
export type RunAction = <Args extends unknown[]>(
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

export const addAnalysis = (projection: Command, actions: AnalysisActions, run: RunAction): void => {
  projection
    .command('replay')
    .description(
      'projects the log from its first record up to a given point into a sandbox, beside the live projection',
    )
    .addOption(
      new Option('--name <name>', 'name of the sandbox (default: the first free one of s1, s2 …)').argParser(
        parseSandboxName,
      ),
    )
    .addOption(
      new Option('--until-offset <partition:offset>', 'stops before this offset; repeat it for each partition')
        .argParser(addUntilOffset)
        .conflicts('untilTime'),
    )
    .addOption(new Option('--until-time <instant>', 'replays all records up to this instant').argParser(parseInstant))
    .addOption(new Option('--org <id>', 'only the records of this organization').argParser(parseId('org')))
    .addOption(new Option('--rules <file>', 'a module that replaces some of the rules'))
    .addOption(
      new Option('--from-archive <archive>', 'reads an archive (directory, s3://…) of the topic instead of Kafka'),
    )
    .addOption(maxRateOption())
    .option('--json', 'the sandbox, as JSON')
    .action(
      run((options: ReplayFlags, command: Command) => {
        const { untilOffset, untilTime: time, org, name, rules, fromArchive, maxRate, json = false } = options
        if (org === undefined && untilOffset?.some(({ partition }) => partition === undefined)) {
          command.error('error: an offset without a partition needs --org')
        }
        const until = untilOffset ? { offsets: untilOffset } : time === undefined ? undefined : { time }
        return actions.replay({ name, until, org, rules, fromArchive, maxRate, json })
      }),
    )
    .addHelpText('after', replayHelp)

  projection
    .command('diff')
    .description('compares two generations or sandboxes: money, lines, records')
    .argument('<a>', 'a generation, or sandbox:NAME', parseGenerationOrSandbox)
    .argument('<b>', 'the other one', parseGenerationOrSandbox)
    .addOption(new Option('--org <id>', 'only of this organization').argParser(parseId('org')))
    .addOption(new Option('--format <format>', 'output format').choices(diffFormats).default('table').conflicts('json'))
    .addOption(new Option('--json', 'the same as --format ndjson'))
    .addOption(new Option('--html <file>', 'writes a page for people into this file').conflicts(['format', 'json']))
    .action(
      run((a: string, b: string, { org, format, json, html }: DiffFlags) =>
        actions.diff({ a, b, org, format: json ? 'ndjson' : format, html }),
      ),
    )
    .addHelpText('after', diffHelp)

  projection
    .command('explain')
    .description('shows the history of a payout: its chain from the first to the current payout, and what was paid')
    .argument('<payout>', 'any payout of the chain', parseId('payout'))
    .addOption(new Option('--org <id>', 'its organization').argParser(parseId('org')).makeOptionMandatory())
    .addOption(generationOption())
    .option('--json', 'as JSON')
    .action(
      run((payout: string, { org, generation, json = false }: ExplainFlags) =>
        actions.explain({ org, payout, generation, json }),
      ),
    )
    .addHelpText('after', explainHelp)

  withOrgAndAsOf(projection.command('export'))
    .description('writes an organization as of one moment to files: a line of JSON for each record')
    .addOption(new Option('--out <directory>', 'target directory; created if missing').makeOptionMandatory())
    .option('--parquet', 'writes Parquet tables too')
    .option('--open', 'opens sealed texts with the keys of SEAL_KEYS_DIR; without it they stay sealed')
    .option('--json', 'prints the manifest at the end')
    .action(
      run(({ org, generation, asOf, out, parquet = false, open = false, json = false }: ExportFlags) =>
        actions.exportOrganization({ org, generation, asOf, out, parquet, open, json }),
      ),
    )
    .addHelpText('after', exportHelp)

  withOrgAndAsOf(projection.command('totals'))
    .description('shows what is owed and paid by period and currency, at one moment')
    .addOption(new Option('--kind <kind>', 'only periods of this kind').choices(periodKinds))
    .option('--svg <file>', 'draws a chart into this file')
    .option('--json', 'as JSON')
    .action(
      run(({ org, generation, asOf, kind, svg, json = false }: TotalsFlags) =>
        actions.showTotals({ org, generation, asOf, kind, svg, json }),
      ),
    )
}

const withOrgAndAsOf = (command: Command): Command =>
  command
    .addOption(orgOption())
    .addOption(generationOption())
    .addOption(
      new Option('--as-of <moment>', 'a past instant, or the id of a change (default: the last change)').argParser(
        parseAsOf,
      ),
    )

const generationOption = (): Option =>
  new Option('--generation <name>', 'a generation, or sandbox:NAME (default: the live generation)').argParser(
    parseGenerationOrSandbox,
  )

type ExportFlags = {
  readonly org: string
  readonly generation?: string
  readonly asOf?: Moment
  readonly out: string
  readonly parquet?: boolean
  readonly open?: boolean
  readonly json?: boolean
}
type TotalsFlags = {
  readonly org: string
  readonly generation?: string
  readonly asOf?: Moment
  readonly svg?: string
  readonly kind?: (typeof periodKinds)[number]
  readonly json?: boolean
}

const exportHelp = `
Writes reps, periods, payouts (current then), their statements and payroll_files of the live generation or of --generation, each as the API answers it,
and manifest.json: the moment, number of records, bytes and SHA-256 of each file, what is owed and paid by currency, and a digest of all. Fails if the
files do not add up to the projection's totals, or have another number of reps or periods. The same moment gives the same bytes. The same command
continues an export that was stopped or killed; it checks a finished one and leaves it unchanged. Only one export at a time may write into a directory.
Names, e-mail addresses and labels that were published sealed stay sealed; with --open they are opened, and empty with "erased": true if the key
was destroyed. Reads only Elasticsearch. Exit codes: 0 done; 1 it could not be done, or was stopped; 2 the command line is wrong.`

type ReplayFlags = {
  readonly name?: string
  readonly untilOffset?: UntilOffset[]
  readonly untilTime?: number
  readonly org?: string
  readonly rules?: string
  readonly fromArchive?: string
  readonly maxRate: number
  readonly json?: boolean
}

type DiffFlags = {
  readonly org?: string
  readonly format: DiffOptions['format']
  readonly json?: true
  readonly html?: string
}

type ExplainFlags = { readonly org: string; readonly generation?: string; readonly json?: boolean }

const explainHelp = `
For each payout of the rep and period: its event, with position (topic:partition:offset) and record time; net and earned amount and totals by
category, with the difference to the payout before; lines and strategies that were added (+), removed (-) or changed (~). Then payments and voids,
with the payout that each names. Then by currency what is owed now, what was paid, and what is still owed (below zero: paid too much).
As of the published position; sums are exact. Reads only Elasticsearch.`

const diffHelp = `
Reads each side as of its own published positions. Compares the content of records, not their offsets: to see only what other rules change, replay
twice up to the same offsets, with and without --rules. A sandbox of one organization limits the comparison to it.

CSV and NDJSON have rows of one shape: row, organization, rep, period, kind, id, change, field, category, currency, a, b, difference (b minus a).
  owed, paid  by rep, period and currency: net amounts of current payouts, and amounts that left through payroll; only if they differ
  line        of each rep and period whose current payout differs: a line that was added, removed or changed (first field that differs)
  record      reps, periods, payouts, statements, payroll_files, parked: only in b (added), only in a (removed), or changed, with the first field
Amounts are exact, as texts. In CSV (UTF-8) a text that a spreadsheet would run as a formula has an apostrophe in front. Totals are on
standard error. --html writes one page that needs no other file: names of reps and periods, totals by period and currency, then the largest
differences of each organization with their lines. A page that would be too long says how much is left out; its totals are complete.
Exit codes: 0 nothing differs; 1 it could not be done; 2 the command line is wrong; 3 something differs.`

const replayHelp = `
Reads only Kafka or an archive, and writes only to {ELASTICSEARCH_INDEX_PREFIX}-sandbox-*: rights to these are enough. In Kafka it uses a consumer
group of its own ({KAFKA_GROUP_ID}-sandbox-NAME). Without --until-time, a partition without --until-offset is replayed up to its present end.
With --org an offset needs no partition: --org org_1 --until-offset 1200.
--from-archive reads an archive (npm run archive) and needs no Kafka, nor settings for it. It verifies the archive first, and refuses a damaged one
by name. The sandbox is the one that a replay from Kafka makes up to the same offsets: diff compares it with generations and sandboxes of the topic,
and either replay continues the other. --until-time then needs a later record in each partition.
--until-time uses the times of the records in Kafka: everything before the first later record of a partition is replayed. It must be over: each
partition has a later record, or the time is 30 s ago. It is refused if an earlier record follows a later one there (with --org only its records count).
The same command with --name continues a replay that was stopped.
Other commands call a sandbox sandbox:NAME; list --sandbox lists sandboxes, drop sandbox:NAME deletes one.
--rules names a module (.ts or .js). Its default export is a function that gets the built-in table of rules and returns another one, as
tools/rules.ts describes. rules check tries it first: npm run projection -- replay --rules ./capped.ts, then diff the two.`
