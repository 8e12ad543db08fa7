/** `commission close`: one folder about a period, for an auditor. */
import { Option } from 'commander'
import type { Moment } from '../../../core/reading/index.ts'
import { defineCommand } from '../../command.ts'
import type { RecordPosition } from '../../parked/find.ts'
import { asOfOption } from '../analysis/as-of.ts'
import { addParkedEnd, numberOption, orgOption, parseId, signOption } from '../arguments.ts'

type Flags = {
  readonly org: string
  readonly period: string
  readonly asOf?: Moment
  readonly keysUntil?: number
  readonly parkedUntil?: readonly RecordPosition[]
  readonly out: string
  readonly audit?: string
  readonly sign?: string
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption())
      .addOption(new Option('--period <id>', 'the period').argParser(parseId('period')).makeOptionMandatory())
      .addOption(asOfOption())
      .addOption(
        numberOption(
          '--keys-until <offset>',
          'keys as of this offset of their topic (default: all), as keys_position of an earlier close says it',
          0,
          Number.MAX_SAFE_INTEGER,
        ),
      )
      .addOption(
        new Option(
          '--parked-until <topic:partition:offset>',
          'of this partition, records that were parked before this offset (default: all), as parked_positions of an earlier close says it; ' +
            'repeat it for each partition, or say 0 if it has none',
        ).argParser(addParkedEnd),
      )
      .requiredOption('--out <directory>', 'target directory; created, or empty')
      .option('--audit <file>', 'the audit log of the API: adds who read')
      .addOption(signOption())
      .option('--json', 'prints the manifest at the end'),
  help: `
Writes the records of the period as of one change: payouts, statements, payroll records and changes, the reps that they name, replaced payouts, control
totals, parked records of the organization, and the keys that could read, each as lines of JSON, CSV and Parquet; report.html, a page for
people with the reconciliation first; manifest.json with the digest of each file. Counts everything from the changes, from the records and from
the lines of the payouts, and fails unless all of these and the totals of the projection are equal. The same change gives the same bytes,
with --keys-until and --parked-until as its manifest says if there are more keys and parked records since.
The directory is there whole or not at all, and is never written over. Texts that were published sealed stay sealed. Reads only Elasticsearch.
Exit codes: 0 done; 1 it could not be done, or the period does not reconcile; 2 the command line is wrong.`,
  asked: ({ org, period, asOf, keysUntil, parkedUntil, out, audit, sign, json = false }: Flags) => ({
    org,
    period,
    asOf,
    keysUntil,
    parkedUntil,
    out,
    audit,
    sign,
    json,
  }),
  run: async (options, { closing }) => (await import('../../evidence/close.ts')).closePeriod(options, await closing()),
})
