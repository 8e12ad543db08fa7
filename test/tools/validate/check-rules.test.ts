import { createReadStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkRules } from '../../../tools/validate/check-rules.ts'
import { runCommand } from '../../support/commands.ts'

const CALCULATED = 'commission.payout.calculated.v1'
const root = join(import.meta.dirname, '../../..')

/** Writes a module and returns its path. */
const moduleOf = async (text: string): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'rules-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'mine.js'), text)
  return join(folder, 'mine.js')
}
/** A module that calls the rules in force for calculated payouts, before or after its own step. */
const deciding = (step: string, before = ''): string =>
  `${before}\nexport default rules => ({ ...rules, '${CALCULATED}': { ...rules['${CALCULATED}'], decide: (event, state) => {
    const decision = rules['${CALCULATED}'].decide(event, state)
    if (decision.outcome !== 'applied') return decision
    const [payout, statement, ...rest] = decision.changes
    ${step}
  } } })`

const check = async (text: string, records?: string) => {
  const out: string[] = []
  const steps = {
    open: (file: string) => createReadStream(file),
    out: (text: string) => void out.push(text),
    now: () => 0,
    signal: new AbortController().signal,
  }
  const code = await checkRules({ module: await moduleOf(text), records, json: true }, steps)
  const found = JSON.parse(out.join(''))
  return { code, found, problems: new Set(found.problems.map(({ problem }: { problem: string }) => problem)) }
}

test('the rules in force pass: deterministic, with equal sums, and no payout differs', async () => {
  const { code, found } = await check('export default rules => rules')
  expect(code).toBe(0)
  expect(found).toMatchObject({
    module: 'mine.js',
    deterministic: true,
    conserving: true,
    problems: [],
    payouts: { differ: 0 },
    outcomes_that_differ: [],
  })
  expect(found.records).toBeGreaterThan(500)
  expect(found.payouts.all).toBeGreaterThan(50)
})

const change = (fields: string): string =>
  `return { ...decision, changes: [{ ...payout, draft: { ...payout.draft, ${fields} } }, statement, ...rest] }`
/** Replaces a text within the JSON of the payout. */
const inBody = (from: string, to: string): string =>
  change(
    `body: Object.assign(Object.create(Object.getPrototypeOf(payout.draft.body)), { text: payout.draft.body.text.replace(${from}, ${to}) })`,
  )

test.for([
  [
    'adds to the net amount alone',
    inBody('/"net_amount":"/', `'"net_amount":"1'`),
    'a payout whose line items do not add up to its net amount',
  ],
  [
    'makes an amount a number',
    inBody('/"net_amount":"([^"]*)"/', `'"net_amount":1'`),
    'a payout with an amount that is no decimal text',
  ],
  [
    'changes an amount for totals alone',
    change(`amount: '1.23'`),
    'a payout whose amount for totals is not its net amount and currency',
  ],
  ['writes into another organization', change(`org_id: 'org_other'`), 'a document of another organization'],
  [
    'says that a new payout is replaced',
    change(`superseded_by_id: 'payout_none'`),
    'a rep and period without exactly one current payout',
  ],
  [
    'keeps a replaced payout current',
    'return { ...decision, changes: [payout, statement, rest[0]] }',
    'a rep and period without exactly one current payout',
  ],
  ['loses the payout of a statement', 'return { ...decision, changes: [statement] }', 'a statement without its payout'],
] as const)('rules do not pass if a module %s', async ([, step, problem]) => {
  const { code, found, problems } = await check(deciding(step))
  expect({ code, deterministic: found.deterministic, conserving: found.conserving }).toEqual({
    code: 3,
    deterministic: true,
    conserving: false,
  })
  expect([...problems]).toContain(problem)
})

test('rules do not pass if a void is not the opposite of its payment', async () => {
  const voided = 'commission.payroll.voided.v1'
  const text = deciding(
    `return { ...decision, changes: [{ ...payout, draft: { ...payout.draft, amount: '7', body: { ...payout.draft.body, amount: '7' } } }, statement, ...rest] }`,
  ).replaceAll(CALCULATED, voided)
  const { code, problems } = await check(text)
  expect([code, [...problems]]).toEqual([3, ['a void that is not the opposite of the record that it reverses']])
})

test.for([
  ['counts what it has decided', change('hash: String(count++)'), 'let count = 0'],
  ['looks at the clock', change('hash: String(performance.now())'), ''],
  [
    'takes its own effect for an earlier event, as after a crash',
    `return state.payout(event.reads.payout) === null ? decision : { outcome: 'duplicate' }`,
    '',
  ],
  [
    'remembers what it has decided',
    `if (seen.has(event.seq)) return { outcome: 'duplicate' }\nseen.add(event.seq)\nreturn decision`,
    'const seen = new Set()',
  ],
] as const)('rules are not deterministic if a module %s', async ([, step, before]) => {
  const { code, found, problems } = await check(deciding(step, before))
  expect([code, found.deterministic, found.conserving, [...problems]]).toEqual([
    3,
    false,
    true,
    ['another result when it is decided again'],
  ])
})

test('payouts and outcomes that differ from the rules in force are counted, and are no fault', async () => {
  const park = await check(
    deciding(`return event.data.currency === 'EUR' ? { outcome: 'parked', code: 'id_reused' } : decision`),
  )
  expect(park.code).toBe(0)
  expect(park.found.payouts.differ).toBeGreaterThan(0)
  expect(park.found.outcomes_that_differ).toContainEqual({ line: expect.any(Number), outcome: 'id_reused' })
})

test.for([
  [
    'throws',
    `throw new RangeError('CANARY')`,
    /^mine\.js failed on a commission\.payout\.calculated\.v1 at offset \d+: RangeError in mine\.js, line 6$/,
  ],
  [
    'returns nothing',
    'return undefined',
    /^mine\.js gives no decision on a commission\.payout\.calculated\.v1 at offset \d+$/,
  ],
  ['returns a promise', 'return Promise.resolve(decision)', /gives no decision/],
  [
    'returns an empty change',
    'return { ...decision, changes: [null] }',
    /^mine\.js gives wrong references or changes on a commission\.payout\.calculated\.v1 at offset \d+: expected/,
  ],
  [
    'writes at another offset',
    'return { ...decision, changes: [{ ...payout, version: 1 }] }',
    /gives wrong references or changes/,
  ],
  [
    'writes under another key',
    `return { ...decision, changes: [{ ...payout, id: 'x' }] }`,
    /gives wrong references or changes/,
  ],
] as const)(
  'a module that %s is refused with a clear message, without the content of a record',
  async ([, step, message]) => {
    await expect(check(deciding(step))).rejects.toThrow(message)
  },
)

test('a module whose reads are no references is refused', async () => {
  const text = `export default rules => ({ ...rules, '${CALCULATED}': { ...rules['${CALCULATED}'], reads: () => null } })`
  await expect(check(text)).rejects.toThrow(/gives wrong references or changes/)
})

test('the records may be a file of events; a line that is none is refused by its number', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rules-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'log.ndjson')
  const data = {
    org_id: 'org_1',
    id: 'rep_1',
    name: 'A',
    email: null,
    status: 'active',
    started_on: null,
    departed_on: null,
  }
  await writeFile(file, `${JSON.stringify({ type: 'commission.rep.recorded.v1', data })}\n\n`)
  expect((await check('export default rules => rules', file)).found).toMatchObject({ records: 1, payouts: { all: 0 } })
  await writeFile(file, '\n{}\n')
  await expect(check('export default rules => rules', file)).rejects.toThrow(/^line 2: expected/)
})

test('npx commission projection rules check tries the module of the guide without any setting', async () => {
  const ran = await runCommand(['projection', 'rules', 'check', join(root, 'docs/examples/without-adjustments.ts')], {})
  expect([ran.code, ran.said]).toEqual([0, ''])
  expect(ran.out.toString()).toMatch(
    /^without-adjustments\.ts loads, and decides \d+ records\ndeterministic: yes\nkeeps the sums: yes\npayouts that differ from the rules in force: 0 of \d+\nrecords with another outcome: 0\n$/,
  )
  expect(await runCommand(['projection', 'rules', 'check', 'no-such-file.ts'], {})).toMatchObject({
    code: 1,
    said: 'the rules cannot be read: no-such-file.ts\n',
  })
  const wrong = await moduleOf(deciding(change(`amount: '1.23'`)))
  const refused = await runCommand(['projection', 'rules', 'check', wrong], {})
  expect(refused.code).toBe(3)
  expect(refused.out.toString()).toMatch(/keeps the sums: no\n {2}line \d+: a payout whose amount for totals/)
})
