/** `commission projection export` and `totals` on a random stream. Prints its seed; FLOW_SEED sets it. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cp, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { Exact } from '../../schemas/money.ts'
import type { Manifest } from '../../tools/export/manifest.ts'
import { foldAll } from '../support/agreement.ts'
import { commandSettings, type Ran, runCommand } from '../support/commands.ts'
import type { Item, Model, ModelChange } from '../support/model.ts'
import { partitionOf } from '../support/model-record.ts'
import { readTable } from '../support/parquet.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { fileScope } from '../support/scope.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import type { Topics } from '../support/topics.ts'
import { totalsOf } from '../support/totals.ts'

const PARTITIONS = 3
const seed = seedOfRun()
const random = createRandom(seed)
const [org = '', neighbour = ''] = organizationsIn(random, [1, 1], PARTITIONS)
const file = fileScope()
const folder = mkdtempSync(join(tmpdir(), 'commission-export-'))
let topics: Topics
let model: Model
let prefix: string

beforeAll(async () => {
  console.log(`seed ${seed}`)
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  ;({ topics, prefix } = await startProjection(
    file,
    createStream(random, [org, neighbour], PARTITIONS, { reps: 3, periods: 3 }).take(500),
    { partitions: PARTITIONS },
  ))
  model = foldAll(topics).model
})

const run = (...args: string[]): Promise<Ran> => runCommand(['projection', ...args], commandSettings(topics, prefix))
const inFolder = (name: string): string => join(folder, name)
const exportInto = (name: string, ...more: string[]): Promise<Ran> =>
  run('export', '--org', org, '--out', inFolder(name), ...more)
const read = (name: string, of: string): string => readFileSync(join(inFolder(name), of), 'utf8')
const itemsIn = (name: string, of: string): Item[] =>
  read(name, `${of}.ndjson`)
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line) as Item)
const everyFile = (name: string): Record<string, string> =>
  Object.fromEntries(readdirSync(inFolder(name)).map(of => [of, read(name, of)]))

/** A change about in the middle of the history. */
const middle = (): ModelChange => {
  const changes = model.changes(org)
  return changes[Math.floor(changes.length / 2)] as ModelChange
}
const names = ['reps', 'periods', 'payouts', 'payroll_files'] as const

test('an export as of a change has the records of the lists at that change, one per line, and a manifest with their sums', async () => {
  const { id, seq } = middle()
  expect(await exportInto('then', '--as-of', id)).toMatchObject({ code: 0 })
  const view = model.view(org, seq + 1)
  for (const name of names) expect(itemsIn('then', name)).toEqual(view[name])
  const current = new Set(view.payouts.map(payout => payout.id))
  expect(itemsIn('then', 'statements')).toEqual(view.statements.filter(statement => current.has(String(statement.id))))

  const manifest = JSON.parse(read('then', 'manifest.json')) as Manifest
  expect(manifest).toMatchObject({
    organization: org,
    as_of: id,
    position: { topic: topics.events, partition: partitionOf(org, PARTITIONS), offset: seq + 1 },
    rules_version: RULES_VERSION,
  })
  const whole = (what: string) => ({ period_id: 'all', currency: what })
  const sums = totalsOf(
    view.payouts.map(payout => ({ ...payout, ...whole(String(payout.currency)) })),
    view.payroll_files.map(record => ({ ...record, ...whole(String(record.currency)) })),
  ) as { currency: string; owed_amount: string; owed_count: number; paid_amount: string; paid_count: number }[]
  const expected = (of: 'owed' | 'paid') =>
    Object.fromEntries(sums.flatMap(row => (row[`${of}_count`] > 0 ? [[row.currency, row[`${of}_amount`]]] : [])))
  expect([manifest.owed, manifest.paid]).toEqual([expected('owed'), expected('paid')])
  for (const [name, { records, bytes }] of Object.entries(manifest.files)) {
    expect([name, records, bytes]).toEqual([
      name,
      itemsIn('then', name).length,
      Buffer.byteLength(read('then', `${name}.ndjson`)),
    ])
  }
})

test('the same moment gives the same bytes, even from an interrupted export', async () => {
  const { id } = middle()
  await exportInto('again', '--as-of', id)
  expect(everyFile('again')).toEqual(everyFile('then'))

  // As after a kill: payouts have a partial last line, and the files after them are missing.
  await cp(inFolder('then'), inFolder('cut'), { recursive: true })
  for (const of of ['manifest.json', 'statements.ndjson', 'payroll_files.ndjson']) rmSync(join(inFolder('cut'), of))
  const partial = join(inFolder('cut'), 'payouts.ndjson.partial')
  await rename(join(inFolder('cut'), 'payouts.ndjson'), partial)
  const bytes = readFileSync(partial)
  writeFileSync(partial, bytes.subarray(0, Math.floor(bytes.length * 0.6)))
  writeFileSync(
    join(inFolder('cut'), 'manifest.partial.json'),
    JSON.stringify({ organization: org, as_of: id, rules_version: RULES_VERSION }),
  )
  // Without a moment: the partial manifest has it.
  expect(await exportInto('cut')).toMatchObject({ code: 0 })
  expect(everyFile('cut')).toEqual(everyFile('then'))
})

test('a finished export is checked and kept, and an export of another moment or organization is not overwritten', async () => {
  const { id } = middle()
  const before = everyFile('again')
  expect(await exportInto('again', '--as-of', id)).toMatchObject({ code: 0, said: expect.stringContaining('already') })
  const of = (ran: Ran) => [ran.code, ran.said]
  expect(of(await exportInto('again', '--as-of', model.changes(org)[3]?.id ?? ''))).toEqual([
    1,
    expect.stringContaining(id),
  ])
  expect(of(await run('export', '--org', neighbour, '--out', inFolder('again')))).toEqual([
    1,
    expect.stringContaining(org),
  ])
  expect(everyFile('again')).toEqual(before)
  writeFileSync(join(inFolder('again'), 'reps.ndjson'), `${read('again', 'reps.ndjson')} `)
  expect(of(await exportInto('again', '--as-of', id))).toEqual([1, expect.stringContaining('reps.ndjson')])
})

test('on a full disk an export names the file that it cannot write, and continues once there is room', async () => {
  const { id } = middle()
  const args = ['projection', 'export', '--org', org, '--as-of', id, '--out', inFolder('full')]
  // `ulimit -f` limits the size of a file: a longer write fails as on a full disk.
  const limited = ['-c', 'ulimit -f 4 && exec "$@"', 'sh', process.execPath, 'tools/main.ts', ...args]
  const cwd = join(import.meta.dirname, '..', '..')
  const full = spawnSync('/bin/sh', limited, { cwd, env: commandSettings(topics, prefix), encoding: 'utf8' })
  expect([full.status, full.stderr]).toEqual([1, expect.stringMatching(/ndjson\.partial cannot be written: EFBIG/)])
  expect(readdirSync(inFolder('full'))).not.toContain('manifest.json')
  expect(readdirSync(inFolder('full')).filter(name => name.endsWith('.lock'))).toEqual([])
  expect(await exportInto('full', '--as-of', id)).toMatchObject({ code: 0 })
  expect(everyFile('full')).toEqual(everyFile('then'))
})

test('a change of another organization, an unknown id or a future instant is not a moment', async () => {
  const theirs = model.changes(neighbour).findLast(({ id }) => !model.changes(org).some(change => change.id === id))
  for (const moment of [theirs?.id ?? '', 'payout_nobody', '9999-01-01T00:00:00Z']) {
    const ran = await exportInto('never', '--as-of', moment)
    expect([moment, ran.code, ran.said]).toEqual([moment, 1, expect.stringContaining('--as-of')])
  }
  expect((await exportInto('never', '--as-of', 'yesterday')).code).toBe(2)
  for (const command of [['export', '--out', inFolder('never')], ['totals']]) {
    const ran = await run(...command, '--org', 'org_nobody')
    expect([ran.code, ran.said]).toEqual([1, expect.stringContaining('nothing was ever published for org_nobody')])
  }
  for (const directory of ['/proc/nope', inFolder('a/b'), join(inFolder('then'), 'reps.ndjson')]) {
    const ran = await run('export', '--org', org, '--out', directory)
    expect([ran.code, ran.said]).toEqual([1, expect.stringContaining('cannot be used')])
  }
})

test('the default moment is the last change; Parquet tables have the same records, and separate lines and steps', async () => {
  const ran = await exportInto('now', '--parquet', '--json')
  expect(ran.code).toBe(0)
  const manifest = JSON.parse(ran.out.toString()) as Manifest
  expect(manifest.as_of).toBe(model.changes(org).at(-1)?.id)
  const table = async (name: string) => (await readTable(join(inFolder('now'), `${name}.parquet`))).rows
  const exact = (amount: unknown): string => new Exact(String(amount)).toFixed()
  const view = model.view(org)
  for (const name of names) {
    const rows = await table(name)
    expect(rows.map(({ id }) => id)).toEqual(view[name].map(({ id }) => id))
  }
  for (const name of ['net_amount', 'earned_amount']) {
    expect((await table('payouts')).map(row => exact(row[name]))).toEqual(view.payouts.map(row => exact(row[name])))
  }
  expect((await table('payroll_files')).map(({ amount }) => exact(amount))).toEqual(
    view.payroll_files.map(({ amount }) => exact(amount)),
  )
  const inside = (list: string, of: readonly Item[]): Item[] =>
    of.flatMap(item => (item[list] as unknown as Item[]).map(one => ({ ...one, payout_id: String(item.id) })))
  expect((await table('line_items')).map(({ payout_id, id, amount }) => [payout_id, id, exact(amount)])).toEqual(
    inside('line_items', view.payouts).map(({ payout_id, id, amount }) => [payout_id, id, exact(amount)]),
  )
  const current = view.payouts.map(({ id }) => view.statements.find(statement => statement.id === id) as Item)
  expect(
    (await table('calculation_steps')).map(({ payout_id, step, inputs }) => [
      payout_id,
      step,
      JSON.parse(String(inputs)),
    ]),
  ).toEqual(inside('calculation_trace', current).map(({ payout_id, step, inputs }) => [payout_id, step, inputs]))
})

test('totals are available as a table, as JSON and as a picture', async () => {
  const { id, seq } = middle()
  const view = model.view(org, seq + 1)
  const svg = inFolder('totals.svg')
  const ran = await run('totals', '--org', org, '--as-of', id, '--json', '--svg', svg)
  expect(ran.code).toBe(0)
  const { totals, as_of } = JSON.parse(ran.out.toString()) as { totals: Item[]; as_of: string }
  expect(as_of).toBe(id)
  const plain = totals.map(({ period: _, still_owed: __, ...row }) => row)
  const inOrder = (rows: readonly unknown[]) => rows.map(row => JSON.stringify(row)).toSorted()
  expect(inOrder(plain)).toEqual(inOrder(totalsOf(view.payouts, view.payroll_files)))
  const picture = readFileSync(svg, 'utf8')
  expect(picture).toMatch(/^<svg /)
  for (const { currency } of totals) expect(picture).toContain(`>${currency}</text>`)
  const years = await run('totals', '--org', org, '--as-of', id, '--kind', 'year', '--json')
  expect(
    JSON.parse(years.out.toString()).totals.every((row: Item) =>
      view.periods.some(({ id, kind }) => id === row.period_id && kind === 'year'),
    ),
  ).toBe(true)
  expect(JSON.parse(years.out.toString()).totals.length).toBeLessThan(totals.length)
  const table = await run('totals', '--org', org, '--as-of', id)
  expect(table.out.toString().trimEnd().split('\n')).toHaveLength(totals.length + 1)
})
