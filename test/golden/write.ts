/**
 * `npm run golden` writes the golden documents under the current rules; with `--log` the log too. Run it only after an
 * intended change of the rules, with a higher RULES_VERSION.
 */
import { writeFileSync } from 'node:fs'
import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { makeBad } from '../support/bad-event.ts'
import { refused } from '../support/bad-events.ts'
import { type Outgoing, periodRecorded, repRecorded } from '../support/events.ts'
import { applied, duplicates } from '../support/good-events.ts'
import { createRandom } from '../support/random.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import {
  DOCUMENTS,
  type GoldenRecord,
  goldenRecordOf,
  isSmall,
  LOG,
  linesIn,
  PARTITIONS,
  projectLog,
} from './golden.ts'

const newLog = (): GoldenRecord[] => {
  const random = createRandom(20_261_122)
  const stream = createStream(random, organizationsIn(random, [0, 1, 1, 5], PARTITIONS), PARTITIONS).take(160)
  let number = 0
  const alone = (make: (org: string) => readonly Outgoing[]): Outgoing[] => {
    const org = `org_g${++number}`
    return [repRecorded({ org_id: org }), periodRecorded({ org_id: org }), ...make(org)]
  }
  const odd = [
    ...Object.values(applied).map(make => (org: string) => [make(org)]),
    ...Object.values(duplicates),
    // Two of each reason.
    ...Object.values(refused).flatMap(makes =>
      Object.values(makes)
        .slice(0, 2)
        .map(make => (org: string) => {
          const { before, bad } = makeBad(make, org, PARTITIONS)
          return [...before, bad]
        }),
    ),
  ].flatMap(alone)
  return [...stream, ...odd].map((record, index) => goldenRecordOf(record, index)).filter(isSmall)
}

const write = (file: string, lines: readonly string[]): void => writeFileSync(file, `${lines.join('\n')}\n`)

if (process.argv.includes('--log'))
  write(
    LOG,
    newLog().map(record => JSON.stringify(record)),
  )
const { lines } = await projectLog(linesIn(LOG).map(line => JSON.parse(line)))
write(DOCUMENTS, [JSON.stringify({ rules_version: RULES_VERSION }), ...lines])
