/** Validators of other languages give the verdicts of `contract/records.ndjson`, from `contract/` alone. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { CONTRACT, storedRecords } from '../contract/contract.ts'
import { goProgram, javaProgram, mavenProgram, pythonProgram } from '../support/programs.ts'

const validators = [
  { folder: 'python', validator: 'jsonschema', programs: [pythonProgram] },
  { folder: 'go', validator: 'santhosh-tekuri/jsonschema', programs: [goProgram] },
  { folder: 'java', validator: 'networknt json-schema-validator', programs: [javaProgram, mavenProgram] },
] as const

const expected = storedRecords().flatMap(({ type, schema }, index) => (type === null ? [] : [`${index + 1} ${schema}`]))

for (const { folder, validator, programs } of validators) {
  test.skipIf(programs.includes(undefined))(`${validator} gives the verdict of the schema on each record`, async () => {
    const copy = await mkdtemp(join(tmpdir(), `commission-validator-${folder}-`))
    try {
      await cp(join(import.meta.dirname, '../validators', folder), copy, { recursive: true })
      const env = { ...process.env, CONTRACT }
      const { stdout } = await promisify(execFile)('sh', ['run.sh'], { cwd: copy, env })
      expect(stdout.trimEnd().split('\n')).toEqual(expected)
      expect(expected.length).toBeGreaterThan(500)
    } finally {
      await rm(copy, { recursive: true, force: true })
    }
  })
}
