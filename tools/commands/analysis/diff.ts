/** `commission projection diff`: compares two generations or sandboxes. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import type { DiffOptions } from '../../generations/diff.ts'
import { parseGenerationOrSandbox, parseId } from '../arguments.ts'

const diffFormats = ['table', 'csv', 'ndjson'] as const satisfies readonly DiffOptions['format'][]

type Flags = {
  readonly org?: string
  readonly format: (typeof diffFormats)[number]
  readonly json?: true
  readonly html?: string
}

export default defineCommand({
  options: command =>
    command
      .argument('<a>', 'a generation, or sandbox:NAME', parseGenerationOrSandbox)
      .argument('<b>', 'the other one', parseGenerationOrSandbox)
      .addOption(new Option('--org <id>', 'only of this organization').argParser(parseId('org')))
      .addOption(
        new Option('--format <format>', 'output format').choices(diffFormats).default('table').conflicts('json'),
      )
      .addOption(new Option('--json', 'the same as --format ndjson'))
      .addOption(new Option('--html <file>', 'writes a page for people into this file').conflicts(['format', 'json'])),
  help: `
Reads each side as of its own published positions. Compares the content of records, not their offsets: to see only what other rules change, replay
twice up to the same offsets, with and without --rules. A sandbox of one organization limits the comparison to it.

CSV and NDJSON have rows of one shape: row, organization, rep, period, kind, id, change, field, category, currency, a, b, difference (b minus a).
  owed, paid  by rep, period and currency: net amounts of current payouts, and amounts that left through payroll; only if they differ
  line        of each rep and period whose current payout differs: a line that was added, removed or changed (first field that differs)
  record      reps, periods, payouts, statements, payroll_files, parked: only in b (added), only in a (removed), or changed, with the first field
Amounts are exact, as texts. In CSV (UTF-8) a text that a spreadsheet would run as a formula has an apostrophe in front. Totals are on
standard error. --html writes one page that needs no other file: names of reps and periods, totals by period and currency, then the largest
differences of each organization with their lines. A page that would be too long says how much is left out; its totals are complete.
Exit codes: 0 nothing differs; 1 it could not be done; 2 the command line is wrong; 3 something differs.`,
  asked: (a: string, b: string, { org, format, json, html }: Flags) => ({
    a,
    b,
    org,
    format: json ? ('ndjson' as const) : format,
    html,
  }),
  run: async (options, { readContext, out }) =>
    (await import('../../generations/diff.ts')).diff(options, { ...readContext(), out }),
})
