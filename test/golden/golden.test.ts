/** Changes of the rules, of documents or of the reading of records must not change past decisions. */
import { expect, test } from 'vitest'
import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { parkCodes } from '../../schemas/errors.ts'
import { eventSchemas } from '../../schemas/events.ts'
import { sha256 } from '../support/bodies.ts'
import { DOCUMENTS, LOG, linesIn, projectLog } from './golden.ts'

const log = linesIn(LOG).map(line => JSON.parse(line))
const [header = '', ...expected] = linesIn(DOCUMENTS)

test('the golden log gives the same documents as before under this version of the rules', async () => {
  const { lines } = await projectLog(log)
  const differing = lines.filter((line, place) => line !== expected[place]).slice(0, 3)
  const told = 'Did you change the rules on purpose? Raise RULES_VERSION and run: npm run golden'
  expect(differing, told).toEqual([])
  expect(lines.length, told).toBe(expected.length)
  expect(JSON.parse(header), 'the documents are from another version of the rules; run: npm run golden').toEqual({
    rules_version: RULES_VERSION,
  })
})

/** SHA-256 of the lines of API keys that the last program with version 1 alone made of this log. */
const FIRST_KEYS = 'a14635619699b25cf843b654451b581ee86f9535e01acaf135cefaae8a7e21f7'

test('API keys that version 1 of their rules decides have the bytes that it gave them', async () => {
  const { lines } = await projectLog(log, Number.POSITIVE_INFINITY)
  const ofKeys = lines.filter(line => line.startsWith('["api-keys"'))
  expect(sha256(ofKeys.join('\n'))).toBe(FIRST_KEYS)
})

test('the golden log has every type of event, duplicates, every park code but two, and chains', async () => {
  const { lines, outcomes } = await projectLog(log)
  expect(log.length).toBeGreaterThan(300)
  for (const type of Object.values(eventSchemas).flatMap(schemas => Object.keys(schemas))) {
    expect(outcomes).toContain(`${type} applied`)
  }
  const codes = new Set(outcomes.map(outcome => outcome.split(' ').at(-1)))
  // No record of the log was in such a batch. A chain of 10,000 records would make up most of the log.
  expect([...parkCodes].filter(code => !codes.has(code))).toEqual(['batch_undecodable', 'chain_too_long'])
  expect(outcomes.filter(outcome => outcome.endsWith(' duplicate')).length).toBeGreaterThan(10)
  const lengths = lines.map(line => JSON.parse(line)[3].body?.payouts?.length ?? 0)
  expect(Math.max(...lengths)).toBeGreaterThanOrEqual(4)
})
