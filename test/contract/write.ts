/**
 * `npm run contract` writes the files of `contract/`, `deploy/access/` and `deploy/monitoring/dashboards/`,
 * docs/errors.md, docs/access.md, docs/logs.md, docs/metrics.md, the picture of docs/analysts.md and the schema of the
 * chart's values with the configuration of its nginx. Run it after a change of a schema, of the rules, of the settings,
 * of the rights, of a panel, of a log line, of a metric or of the nginx example.
 * With `--records` it makes the records anew: those of the golden log, and one for each way in which data can be
 * invalid. With `--release` it stores the present documents as those of the last release, for the test of
 * compatibility.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type GoldenRecord, goldenRecordOf, isSmall, LOG, linesIn, PARTITIONS } from '../golden/golden.ts'
import { makeBad } from '../support/bad-event.ts'
import { refused } from '../support/bad-events.ts'
import { ACCESS_FILES, ACCESS_PAGE, accessFiles, accessPage } from './access-files.ts'
import { EXPLORER_CONFIGURATION, explorerConfiguration, VALUES_SCHEMA, valuesSchema } from './chart-files.ts'
import { currentDocuments } from './compatibility.ts'
import { CONTRACT, contractFiles, storedLog } from './contract.ts'
import { DASHBOARDS, dashboardFiles } from './dashboards.ts'
import { ERRORS_PAGE, errorsPage } from './errors-page.ts'
import { LOGS_PAGE, logsPage, productLines } from './logs-page.ts'
import { METRICS_PAGE, metricsPage } from './metrics-page.ts'
import { TOTALS_PICTURE, totalsPicture } from './totals-picture.ts'

const newLog = (): GoldenRecord[] => {
  const golden: GoldenRecord[] = linesIn(LOG).map(line => JSON.parse(line))
  const invalid = Object.values(refused.data_invalid)
    .map((make, index) => goldenRecordOf(makeBad(make, `org_c${index}`, PARTITIONS).bad, golden.length + index))
    .filter(isSmall)
  return [...golden, ...invalid]
}

if (process.argv.includes('--release')) {
  await writeFile(join(import.meta.dirname, 'released.json'), `${JSON.stringify(currentDocuments())}\n`)
}
const log = process.argv.includes('--records') ? newLog() : storedLog()
const writeAll = async (folder: string, files: ReadonlyMap<string, string>): Promise<void> => {
  for (const [path, content] of files) {
    const file = join(folder, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, content)
  }
}
await writeAll(CONTRACT, await contractFiles(log))
await writeAll(ACCESS_FILES, accessFiles())
await writeAll(DASHBOARDS, dashboardFiles())
await writeFile(ACCESS_PAGE, accessPage())
await writeFile(ERRORS_PAGE, errorsPage())
await writeFile(LOGS_PAGE, logsPage(productLines()))
await writeFile(METRICS_PAGE, metricsPage())
await writeFile(TOTALS_PICTURE, totalsPicture())
await writeFile(VALUES_SCHEMA, valuesSchema())
await writeFile(EXPLORER_CONFIGURATION, explorerConfiguration())
