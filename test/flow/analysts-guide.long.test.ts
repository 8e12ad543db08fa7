/** Runs every command of docs/analysts.md and docs/reading.md, in order, in one shell, on the data of the demo. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { createSigningKey, textOfSigningKey } from '../../core/runtime/index.ts'
import { expectedOf } from '../../demo/data/expected.ts'
import { makeOrganizations } from '../../demo/data/organization.ts'
import { dealOf } from '../../demo/report.ts'
import { Exact } from '../../schemas/money.ts'
import { instantToNanoseconds } from '../../schemas/values.ts'
import type { Manifest } from '../../tools/export/manifest.ts'
import { writeTables } from '../../tools/export/tables.ts'
import { commandSettings } from '../support/commands.ts'
import { installDuckdb, queryDuckdb } from '../support/duckdb.ts'
import type { Outgoing } from '../support/events.ts'
import { curlInTime, fetchInTime } from '../support/in-time.ts'
import type { Item } from '../support/model.ts'
import { type Api, startApi, untilCaughtUp } from '../support/processes.ts'
import { pythonProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { lineTotalsOf, totalsOf } from '../support/totals.ts'

const PARTITIONS = 3
const root = join(import.meta.dirname, '..', '..')
const blocksOf = (page: string): string[] =>
  [...readFileSync(join(root, 'docs', page), 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)].map(
    ([, commands = '']) => commands,
  )
const blocks = blocksOf('analysts.md')
const file = fileScope()
const [organization] = makeOrganizations(1, { years: 2, partitions: PARTITIONS })
if (organization === undefined) throw new Error('the demo has no organization')
const expected = expectedOf(organization.id, organization.sent)
const [replaced] = expected.superseded
const deal = dealOf(replaced)
const settings: Record<string, string> = {}
let api: Api

beforeAll(async () => {
  const { topics, prefix, projector } = await startProjection(file, [], { partitions: PARTITIONS })
  const keysFirst = organization.sent.toSorted(
    (a, b) => Number(b.stream === 'api-keys') - Number(a.stream === 'api-keys'),
  )
  await topics.publish(keysFirst.map(({ stream, message }) => ({ stream, ...message }) as Outgoing))
  await untilCaughtUp(projector)
  const folder = mkdtempSync(join(tmpdir(), 'commission-guide-'))
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  const API_CHECKPOINT_KEY_FILE = join(folder, 'checkpoint.key')
  writeFileSync(API_CHECKPOINT_KEY_FILE, `${textOfSigningKey(createSigningKey('api.example.com/checkpoints'))}\n`)
  api = await startApi(file, prefix, { settings: { API_CHECKPOINT_KEY_FILE } })
  Object.assign(settings, commandSettings(topics, prefix), {
    KAFKA_GROUP_ID: prefix,
    API: api.url,
    KEY: organization.keys.reading.text,
    ORG: organization.id,
    PAYOUT: String(replaced?.id),
    REP: String(replaced?.rep_id),
    PERIOD: String(replaced?.period_id),
    DEAL: deal,
  })
})

/** Runs commands in a shell that stops at the first failure. */
const run = async (commands: string, more: Record<string, string>) => {
  const PATH = [dirname(process.execPath), more.PATH ?? process.env.PATH].join(':')
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd: root,
    env: { ...settings, ...more, PATH, HOME: process.env.HOME },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, said] = ['', '']
  child.stdout.setEncoding('utf8').on('data', text => (out += text))
  child.stderr.setEncoding('utf8').on('data', text => (said += text))
  const [code] = await once(child, 'close')
  return { code, out, said }
}

test('every command of docs/analysts.md does what the guide says', async () => {
  expect(blocks.length).toBeGreaterThanOrEqual(6)
  const folder = mkdtempSync(join(tmpdir(), 'commission-guide-'))
  // The test sets $OUT to a folder that it can read.
  const commands = blocks
    .filter(block => !/^python3|duckdb|--from-archive/m.test(block))
    .join('')
    .replace('$(mktemp -d)', folder)
  expect(commands).toContain(folder)
  try {
    const { code, out, said } = await run(curlInTime(commands), {})
    expect({ code, said: code === 0 ? '' : said }).toEqual({ code: 0, said: '' })
    const in_ = (...names: string[]): string => readFileSync(join(folder, ...names), 'utf8')
    const manifestOf = (name: string) => JSON.parse(in_(name, 'manifest.json')) as Manifest
    const items = (name: string, of: string): Item[] =>
      in_(name, `${of}.ndjson`)
        .split('\n')
        .slice(0, -1)
        .map(line => JSON.parse(line) as Item)

    // As of the superseded payout, that payout is current. Now another one is.
    expect(items('then', 'payouts').at(-1)).toMatchObject({ id: replaced?.id, superseded_by_id: null })
    expect(items('now', 'payouts').map(({ id }) => id)).toEqual(expected.payouts.map(({ id }) => id))
    expect(manifestOf('then')).toMatchObject({ as_of: replaced?.id, organization: organization.id })
    expect(existsSync(join(folder, 'now', 'line_items.parquet'))).toBe(true)
    expect(in_('owed-and-paid.svg')).toContain('<svg')
    // The first table has every period with an amount owed or paid.
    const rows = totalsOf(items('now', 'payouts'), items('now', 'payroll_files')) as { period_id: string }[]
    for (const { period_id } of rows) expect(out).toContain(period_id)
    expect(out).toContain(String(replaced?.id))

    const whatIf = in_('what-if.csv').trimEnd().split('\n')
    expect(whatIf[0]).toContain('row,organization')
    expect(whatIf.slice(1).some(line => line.startsWith('line,') && line.includes('adjusted'))).toBe(true)
    const checked = readFileSync(join(root, 'docs', 'analysts.md'), 'utf8').match(
      /^without-adjustments\.ts loads[^`]*/m,
    )
    expect(out).toContain(checked?.[0])
    expect(in_('what-if.html')).toContain('<h1>Differences: sandbox:asis and sandbox:without</h1>')
    const since = in_('since.ndjson')
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as { id?: string; change?: string })
    expect(since.some(({ id }) => id?.endsWith(String(expected.payouts.at(-1)?.id)))).toBe(true)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the job of the guide replays an archive without Kafka, and its page names what other rules change', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'commission-guide-'))
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  const job = blocks.find(block => block.includes('--from-archive')) ?? 'exit 9'
  expect(job).toContain('unset KAFKA_BROKERS')
  const { code, out, said } = await run(job, { OUT: folder, CI_JOB_ID: '7' })
  expect({ code, said: code === 0 ? '' : said }).toEqual({ code: 0, said: '' })
  const page = readFileSync(join(folder, 'paid.html'), 'utf8')
  expect(page).toContain('<h1>Differences: sandbox:main7 and sandbox:branch7</h1>')
  expect(page).toContain(organization.id)
  expect(out).toContain(String(replaced?.period_id))
})

test('every request of docs/reading.md gets the answer that the page shows', async () => {
  const { code, out, said } = await run(curlInTime(blocksOf('reading.md').join('')).replaceAll('\n', '\necho\n'), {})
  expect({ code, said }).toEqual({ code: 0, said: '' })
  const answers = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { data: Item[] })
  const [list, byIds, ofRep, open, ofDeal, past, then, changes, waited, since, history, checkpoint] = answers
  expect(answers.length).toBe(12)
  expect(byIds?.data.map(({ id }) => id)).toEqual([replaced?.id])
  const ofPair = ({ rep_id, period_id }: Item) => rep_id === replaced?.rep_id && period_id === replaced?.period_id
  expect(open?.data).toMatchObject({
    totals: totalsOf(
      (expected.payouts as readonly Item[]).filter(ofPair),
      (expected.payroll_files as readonly Item[]).filter(ofPair),
    ),
  })
  const lines = lineTotalsOf(expected.payouts as readonly Item[], deal)
  expect(lines.length).toBeGreaterThan(0)
  expect(ofDeal?.data).toMatchObject({ totals: [], line_totals: lines })
  expect(since?.data).toEqual({ last_change_id: null, last_sequence: 0, totals: [] })
  expect(waited?.data).toEqual(changes?.data)
  const current = expected.payouts.filter(({ rep_id }) => rep_id === replaced?.rep_id)
  expect(current.length).toBeGreaterThan(1)
  expect(ofRep?.data.map(({ id }) => id)).toEqual(current.map(({ id }) => id))
  expect([list?.data.length, past?.data, changes?.data.length]).toEqual([2, [], 2])
  expect(then?.data.length).toBeGreaterThan(0)
  expect(history?.data.map(({ id }) => id)).toContain(replaced?.id)
  const begin = `commission checkpoint 1\\norganization ${organization.id}\\nline rules-`
  expect(JSON.stringify(checkpoint)).toContain(begin)
})

test.skipIf(pythonProgram === undefined)('the notebook of the guide proves that its copy is complete', async () => {
  const { code, out, said } = await eventually(async () => {
    const ran = await run(blocks.find(block => block.startsWith('python3')) ?? 'exit 9', {})
    // The API gives each request few seconds.
    expect(ran.said).not.toContain('HTTP Error 503')
    return ran
  })
  expect({ code, said }).toEqual({ code: 0, said: '' })
  const { reps, periods, payouts, payroll_files } = expected
  const counts = [
    `${reps.length} reps`,
    `${periods.length} periods`,
    `${payouts.length} payouts`,
    `${payroll_files.length} payroll_files`,
  ]
  expect(out).toContain(counts.join(', '))
  expect(out).toContain('adds up to the totals')
})

let installed: Promise<string> | undefined
const programFolder = (): Promise<string> => (installed ??= installDuckdb(file))

/** Of `/totals`, and of a row of the recipe. */
type TotalsRow = {
  readonly period_id: string
  readonly currency: string
  readonly owed: string
  readonly payouts: number
  readonly paid: string
  readonly records: number
}
const inOrder = (rows: readonly TotalsRow[]): string[] =>
  rows
    .map(({ period_id, currency, owed, payouts, paid, records }) =>
      [period_id, currency, new Exact(owed), Number(payouts), new Exact(paid), Number(records)].join(' '),
    )
    .toSorted()

test.skipIf(pythonProgram === undefined)('DuckDB adds an export up to the totals of the API', async () => {
  const duckdb = await programFolder()
  const folder = mkdtempSync(join(tmpdir(), 'commission-guide-'))
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  const recipe = blocks.find(block => block.includes('duckdb')) ?? 'exit 9'
  const commands = `npx commission projection export --org "$ORG" --out "$OUT/now" --parquet\n${recipe}`
  const { code, out, said } = await run(commands, { OUT: folder, PATH: `${duckdb}:${process.env.PATH}` })
  expect(code, said).toBe(0)
  const answer = await fetchInTime(api, '/totals', organization.keys.reading.text)
  const { totals } = ((await answer.json()) as { data: { totals: Record<string, never>[] } }).data
  const expectedRows = totals.map(({ owed_amount, owed_count, paid_amount, paid_count, open_amount: _, ...row }) => ({
    ...row,
    owed: owed_amount,
    payouts: owed_count,
    paid: paid_amount,
    records: paid_count,
  })) as unknown as TotalsRow[]
  const [head = '', ...lines] = out.trimEnd().split('\n')
  const names = head.split(',')
  const rows = lines.map(line => Object.fromEntries(line.split(',').map((cell, at) => [names[at], cell])))
  const of = (wanted: (rep: string) => boolean): TotalsRow[] =>
    rows.filter(({ rep_id = '' }) => wanted(rep_id)) as unknown as TotalsRow[]
  expect(inOrder(of(rep => rep === 'NULL'))).toEqual(inOrder(expectedRows))
  const payments = [...expected.payouts, ...expected.payroll_files]
  const reps = new Set(payments.map(({ rep_id, period_id, currency }) => `${rep_id} ${period_id} ${currency}`))
  expect(of(rep => rep.startsWith('rep_'))).toHaveLength(reps.size)

  const texts = await queryDuckdb(
    duckdb,
    join(folder, 'now'),
    "SELECT id, net_amount::TEXT AS amount, typeof(net_amount) AS type FROM 'payouts.parquet'",
  )
  expect(new Set(texts.map(({ type }) => type))).toEqual(new Set(['DECIMAL(38,10)']))
  expect(texts.map(({ id, amount }) => [id, new Exact(String(amount))])).toEqual(
    expected.payouts.map(({ id, net_amount }) => [id, new Exact(String(net_amount))]),
  )
})

test.skipIf(pythonProgram === undefined)('DuckDB reads the extremes of every type exactly', async () => {
  const duckdb = await programFolder()
  const folder = mkdtempSync(join(tmpdir(), 'commission-guide-'))
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  const records = {
    reps: ['0000-02-29', '9999-12-31'].map(started_on => ({ id: 'rep_1', started_on })),
    periods: [],
    payouts: [
      ['9'.repeat(28), `-${'9'.repeat(40)}.${'9'.repeat(40)}`, '0000-01-01T00:00:00+23:59'],
      [`-${'9'.repeat(28)}`, '1', '9999-12-31T23:59:59.999999Z'],
    ].map(([net_amount, earned_amount, recorded_at]) => ({ net_amount, earned_amount, recorded_at, line_items: [] })),
    statements: [],
    payroll_files: [`0.${'1'.repeat(38)}`, `-0.${'9'.repeat(38)}`].map(amount => ({ amount })),
  }
  for (const [name, of] of Object.entries(records)) {
    writeFileSync(join(folder, `${name}.ndjson`), of.map(record => `${JSON.stringify(record)}\n`).join(''))
  }
  await writeTables(folder, () => undefined, new AbortController().signal)
  const read = (query: string) => queryDuckdb(duckdb, folder, query)
  const columns = 'net_amount::TEXT AS net_amount, earned_amount, epoch_us(recorded_at) AS recorded_at'
  expect(await read(`SELECT ${columns} FROM 'payouts.parquet'`)).toEqual(
    records.payouts.map(({ net_amount, earned_amount, recorded_at }) => ({
      net_amount: `${net_amount}.${'0'.repeat(10)}`,
      earned_amount,
      recorded_at: Number((instantToNanoseconds(String(recorded_at)) ?? 0n) / 1_000n),
    })),
  )
  const amounts = await read("SELECT amount::TEXT AS amount FROM 'payroll_files.parquet'")
  expect(amounts.map(({ amount }) => new Exact(String(amount)).toFixed())).toEqual(
    records.payroll_files.map(({ amount }) => amount),
  )
  expect(await read("SELECT started_on - DATE '1970-01-01' AS days FROM 'reps.parquet'")).toEqual(
    [-719_469, 2_932_896].map(days => ({ days })),
  )
  await expect(read("SELECT sum(earned_amount) FROM 'payouts.parquet'")).rejects.toThrow(/sum\(VARCHAR\)/)
})
