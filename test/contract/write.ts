/**
 * `npm run contract` writes the files of `contract/` and docs/errors.md. Run it after a change of a schema or of the
 * rules. With `--records` it makes the records anew: those of the golden log, and one for each way in which data can be
 * invalid. With `--release` it stores the present documents as those of the last release, for the test of
 * compatibility.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type GoldenRecord, goldenRecordOf, isSmall, LOG, linesIn, PARTITIONS } from '../golden/golden.ts'
import { makeBad } from '../support/bad-event.ts'
import { refused } from '../support/bad-events.ts'
import { currentDocuments } from './compatibility.ts'
import { CONTRACT, contractFiles, storedLog } from './contract.ts'
import { ERRORS_PAGE, errorsPage } from './errors-page.ts'

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
for (const [path, content] of await contractFiles(log)) {
  const file = join(CONTRACT, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, content)
}
await writeFile(ERRORS_PAGE, errorsPage())
