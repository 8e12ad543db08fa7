/**
 * Whatever is changed in the rules, in how documents are made or in how records are read: what was once decided is
 * decided again.
 */
import { expect, test } from 'vitest'
import { RULES_VERSION } from '../../projector/rules/rules.ts'
import { parkCodes } from '../../schemas/errors.ts'
import { eventSchemas } from '../../schemas/events.ts'
import { DOCUMENTS, LOG, linesIn, projectLog } from './golden.ts'

const log = linesIn(LOG).map(line => JSON.parse(line))
const [header = '', ...expected] = linesIn(DOCUMENTS)

test('the golden log comes to the very documents it came to under this version of the rules', async () => {
  const { lines } = await projectLog(log)
  const differing = lines.filter((line, place) => line !== expected[place]).slice(0, 3)
  const told = 'Are the rules another on purpose? Raise RULES_VERSION and run: npm run golden'
  expect(differing, told).toEqual([])
  expect(lines.length, told).toBe(expected.length)
  expect(JSON.parse(header), 'the documents are of another version of the rules; run: npm run golden').toEqual({
    rules_version: RULES_VERSION,
  })
})

test('the golden log has every type of event applied, duplicates, every reason to refuse one, and chains', async () => {
  const { lines, outcomes } = await projectLog(log)
  expect(log.length).toBeGreaterThan(300)
  for (const type of Object.values(eventSchemas).flatMap(schemas => Object.keys(schemas))) {
    expect(outcomes).toContain(`${type} applied`)
  }
  const codes = new Set(outcomes.map(outcome => outcome.split(' ').at(-1)))
  // A chain of 10,000 would be most of the log.
  expect([...parkCodes].filter(code => !codes.has(code))).toEqual(['chain_too_long'])
  expect(outcomes.filter(outcome => outcome.endsWith(' duplicate')).length).toBeGreaterThan(10)
  const lengths = lines.map(line => JSON.parse(line)[3].body?.payouts?.length ?? 0)
  expect(Math.max(...lengths)).toBeGreaterThanOrEqual(4)
})
