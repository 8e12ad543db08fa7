/** `commission projection export`: writes an organization as of one moment to files. */
import type { Moment } from '../../../core/reading/index.ts'
import { defineCommand } from '../../command.ts'
import { generationOption, orgOption, signOption } from '../arguments.ts'
import { asOfOption } from './as-of.ts'

type Flags = {
  readonly org: string
  readonly generation?: string
  readonly asOf?: Moment
  readonly out: string
  readonly add?: boolean
  readonly parquet?: boolean
  readonly csv?: boolean
  readonly open?: boolean
  readonly sign?: string
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption())
      .addOption(generationOption())
      .addOption(asOfOption())
      .requiredOption('--out <directory>', 'target directory; created if missing')
      .option('--add', 'adds what changed since the last part to a copy in parts; the first part has everything')
      .option('--parquet', 'writes Parquet tables too')
      .option('--csv', 'writes the same tables as CSV too, each value with the characters of the API')
      .option('--open', 'opens sealed texts with the keys of SEAL_KEYS_DIR; without it they stay sealed')
      .addOption(signOption())
      .option('--json', 'prints the manifest at the end'),
  help: `
Writes reps, periods, payouts (current then), their statements and payroll_files of the live generation or of --generation, each as the API answers it,
and manifest.json: the moment, number of records, bytes and SHA-256 of each file, what is owed and paid by currency, and a digest of all. Fails if the
files do not add up to the projection's totals, or have another number of reps or periods. The same moment gives the same bytes. The same command
continues an export that was stopped or killed; it checks a finished one and leaves it unchanged. Only one export at a time may write into a directory.
With --add the directory is a copy that grows: the first run writes part-000001 with everything, and each later one a part with the records of the
changes since. All parts together must add up to the totals. Each part has the files and the tables of an export, and is signed like one.
Nothing is added to a copy with texts about people who were forgotten since: the error names them.
Names, e-mail addresses and labels that were published sealed stay sealed; with --open they are opened, and empty with "erased": true if the key
was destroyed; a key that is destroyed meanwhile is an error. With --sign the manifest is signed in manifest.note; commission verify checks it (docs/evidence.md). Reads only Elasticsearch. Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong.`,
  asked: ({
    org,
    generation,
    asOf,
    out,
    add = false,
    parquet = false,
    csv = false,
    open = false,
    sign,
    json = false,
  }: Flags) => ({
    org,
    generation,
    asOf,
    out,
    add,
    parquet,
    csv,
    open,
    sign,
    json,
  }),
  run: async ({ add, ...options }, { exporting }) => {
    const steps = await exporting(options)
    if (add) return await (await import('../../export/add-part.ts')).addPart(options, steps)
    return await (await import('../../export/export.ts')).exportOrganization(options, steps)
  },
})
