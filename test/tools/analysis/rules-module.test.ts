import { hash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type AnyRules, builtInRules } from '../../../core/ledger/rules/rules.ts'
import { loadRules, tableIn } from '../../../tools/analysis/rules-module.ts'

const type = 'commission.rep.recorded.v1'
const placed = { data: {}, names: {}, hash: '', seq: 7, at: 0 } as unknown as Parameters<AnyRules['decide']>[0]
const state = {} as Parameters<AnyRules['decide']>[1]
const withRep = (rules: object): AnyRules =>
  tableIn({ ...builtInRules, [type]: { ...builtInRules[type], ...rules } }, 'a.js')[type]

/** Writes a module and returns its path. */
const moduleOf = async (text: string, name = 'mine.js'): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'rules-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, name), text)
  return join(folder, name)
}
const refusalOf = async (text: string): Promise<string> =>
  loadRules(await moduleOf(text)).then(
    () => 'loaded',
    (error: Error) => `${error.name}: ${error.message}`,
  )

test('a module replaces some rules, and keeps the others', async () => {
  const text = `export default rules => ({ ...rules, '${type}': { ...rules['${type}'], decide: () => ({ outcome: 'parked', code: 'id_reused' }) } })`
  const { table, identity } = await loadRules(await moduleOf(text))
  expect(table[type].decide(placed, state)).toEqual({ outcome: 'parked', code: 'id_reused' })
  expect(table['commission.period.recorded.v1']).toBe(builtInRules['commission.period.recorded.v1'])
  expect(identity).toEqual({ name: 'mine.js', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
  expect((await loadRules(await moduleOf(`${text} `))).identity.sha256).not.toBe(identity.sha256)
})

test('a module is another one if a file that it imports has another text, wherever the files are', async () => {
  const text = `import { cap } from './rates/caps.js'\nexport default rules => (cap, './no-file.js', rules)`
  const module = await moduleOf(text)
  const file = (name: string): string => join(dirname(module), name)
  await mkdir(file('rates'))
  await writeFile(file('rates/caps.js'), "import { rate } from '../rate.js'\nexport const cap = 2 * rate")
  await writeFile(file('rate.js'), "import './mine.js'\nexport const rate = 5")
  const digestOf = async (of: string): Promise<string> => (await loadRules(of)).identity.sha256
  const before = await digestOf(module)
  expect(before).not.toBe(hash('sha256', text))
  const copy = `${dirname(module)}-copy`
  onTestFinished(() => rm(copy, { recursive: true }))
  await cp(dirname(module), copy, { recursive: true })
  expect(await digestOf(join(copy, 'mine.js'))).toBe(before)
  await writeFile(join(copy, 'rate.js'), "import './mine.js'\nexport const rate = 6")
  expect(await digestOf(join(copy, 'mine.js'))).not.toBe(before)
})

test('a module that imports nothing but this program is known by its text alone', async () => {
  const example = 'docs/examples/without-adjustments.ts'
  expect((await loadRules(example)).identity.sha256).toBe(hash('sha256', await readFile(example)))
})

test('a module may be written in TypeScript', async () => {
  const { table } = await loadRules(await moduleOf('export default <Table>(rules: Table): Table => rules', 'mine.ts'))
  expect(table).toEqual(builtInRules)
})

test.for([
  ['is not there', '', 'no-such-file.js: '],
  ['does not parse', 'export default (', 'CommandError: mine.js cannot be loaded: '],
  [
    'throws',
    '\nthrow new RangeError("CANARY")',
    'CommandError: mine.js cannot be loaded: RangeError in mine.js, line 2',
  ],
  ['has no default export', 'export const rules = 1', 'CommandError: mine.js has no function as its default export'],
  [
    'throws when called',
    'export default () => { null.x }',
    'CommandError: mine.js gives no rules: TypeError in mine.js, line 1',
  ],
  ['returns nothing', 'export default () => undefined', 'CommandError: mine.js gives no table of rules'],
  [
    'lacks a type',
    `export default ({ '${type}': _, ...rest }) => rest`,
    `CommandError: mine.js has no reads, thenReads and decide for ${type}`,
  ],
  [
    'misspells a type',
    `export default rules => ({ ...rules, 'commission.rep.recorded': {} })`,
    'CommandError: mine.js gives rules for unknown event types: commission.rep.recorded',
  ],
] as const)('a module that %s is refused with a clear message', async ([what, text, expected]) => {
  // Here vitest loads the module: the error of a module that does not parse is not the one of Node.
  if (what === 'does not parse') return expect(await refusalOf(text)).toContain(expected)
  if (what !== 'is not there') return expect(await refusalOf(text)).toBe(expected)
  await expect(loadRules('no-such-file.js')).rejects.toThrow('the rules cannot be read: no-such-file.js')
})

test('rules that fail while deciding are reported with their place, and without the content of the record', () => {
  const failing = withRep({
    decide: () => {
      throw new RangeError('CANARY')
    },
  })
  expect(() => failing.decide(placed, state)).toThrow(
    /^a\.js failed on a commission\.rep\.recorded\.v1 at offset 7: RangeError in rules-module\.test\.ts, line \d+$/,
  )
  expect(() => withRep({ decide: () => undefined }).decide(placed, state)).toThrow(
    'a.js gives no decision on a commission.rep.recorded.v1 at offset 7',
  )
})

test.for([{ outcome: 'applied' }, { outcome: 'parked' }, { outcome: 'parked', code: 'whatever' }, null])(
  'an incomplete decision is refused: %j',
  decision => {
    const { decide } = withRep({ decide: () => decision })
    expect(() => decide(placed, state)).toThrow('a.js gives no decision on')
  },
)
