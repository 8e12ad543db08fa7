/** Validators of other languages give the verdicts of `contract/records.ndjson`, from `contract/` alone. */
import { expect, test } from 'vitest'
import { CONTRACT, storedRecords } from '../contract/contract.ts'
import { goProgram, javaProgram, mavenProgram, pythonProgram } from '../support/programs.ts'
import { runCopy } from '../support/run-copy.ts'

const validators = [
  { folder: 'python', validator: 'jsonschema', programs: [pythonProgram] },
  { folder: 'go', validator: 'santhosh-tekuri/jsonschema', programs: [goProgram] },
  { folder: 'java', validator: 'networknt json-schema-validator', programs: [javaProgram, mavenProgram] },
] as const

const expected = storedRecords().flatMap(({ type, schema }, index) => (type === null ? [] : [`${index + 1} ${schema}`]))

for (const { folder, validator, programs } of validators) {
  test.skipIf(programs.includes(undefined))(`${validator} gives the verdict of the schema on each record`, async () => {
    expect(await runCopy(`validators/${folder}`, { CONTRACT })).toEqual(expected)
    expect(expected.length).toBeGreaterThan(500)
  })
}
