/** Runs the recipes of docs/examples/load/ with their real programs, and compares exact sums with /totals. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { makeOrganizations } from '../../demo/data/organization.ts'
import { Exact } from '../../schemas/money.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import type { Item } from '../support/model.ts'
import { startApi, untilCaughtUp } from '../support/processes.ts'
import { pythonProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { installPython } from '../support/python.ts'
import { fileScope } from '../support/scope.ts'
import { totalsOf } from '../support/totals.ts'

const scope = fileScope()
const recipes = join(import.meta.dirname, '../../docs/examples/load')
const run = promisify(execFile)
/** More digits than a double has, or than the sums of Python and pandas keep by default. */
const LARGE = '9007199254740993123.0000000001'

const setUp = async () => {
  const [organization] = makeOrganizations(1, { years: 1, partitions: 1 })
  if (organization === undefined) throw new Error('the demo has no organization')
  const all = organization.sent
    .toSorted((a, b) => Number(b.stream === 'api-keys') - Number(a.stream === 'api-keys'))
    .map(({ stream, message }) => ({ stream, ...message }) as Outgoing)
  const half = Math.floor(all.length * 0.7)
  const org_id = organization.id
  const large = [
    repRecorded({ org_id, id: 'rep_Large' }),
    repRecorded({ org_id, id: 'rep_Small' }),
    periodRecorded({ org_id, id: 'period_Large' }),
    payoutCalculated({ org_id, rep_id: 'rep_Large', period_id: 'period_Large', net_amount: LARGE }),
    payoutCalculated({ org_id, id: 'payout_Small', rep_id: 'rep_Small', period_id: 'period_Large', net_amount: '0.1' }),
  ]
  const { topics, prefix, projector } = await startProjection(scope, [], { partitions: 1 })
  const publish = async (records: readonly Outgoing[]) => {
    await topics.publish(records)
    await untilCaughtUp(projector)
  }
  const otherKey = newKeyText()
  const other = { org_id: newId('org') }
  // Another organization with fewer changes. One amount has more decimal places than the query of the changes keeps.
  const few = [
    ...[keyCreated({ ...other, text: otherKey }), repRecorded(other), periodRecorded(other), payrollRecorded(other)],
    payoutCalculated({ ...other, net_amount: '0.00000000005' }),
  ]
  await publish([...few, ...all.slice(0, half)])
  const api = await startApi(scope, prefix)
  const { url } = api
  const folder = mkdtempSync(join(tmpdir(), 'commission-load-'))
  scope.onTestFinished(async () => rmSync(folder, { recursive: true, force: true }))
  const KEY = organization.keys.reading.text
  const env = { ...process.env, API: url, KEY, RUNTIME__DLTHUB_TELEMETRY: 'false', DLT_DATA_DIR: join(folder, 'dlt') }
  const ask = async (path: string) => JSON.parse(await (await fetchInTime(api, path, KEY)).text()).data
  return {
    ...{ folder, ask, api: url, key: KEY, organization: organization.id, settings: commandSettings(topics, prefix) },
    publishRest: () => publish([...all.slice(half), ...large]),
    otherKey,
    start: (program: string, ...given: readonly string[]) =>
      run(program, given, { cwd: folder, env, maxBuffer: 256 * 1024 * 1024 }),
    /** Runs a program in a folder of its own with a key. */
    startIn: (name: string, key: string, program: string, ...given: readonly string[]) => {
      const cwd = join(folder, name)
      mkdirSync(cwd, { recursive: true })
      return run(program, given, { cwd, env: { ...env, KEY: key, DLT_DATA_DIR: join(cwd, 'dlt') } })
    },
  }
}

type Total = {
  readonly period_id: string
  readonly currency: string
  readonly owed: string
  readonly payouts: number | string
  readonly paid: string
  readonly records: number | string
}
/** Rows with exact amounts in one form: the text of a sum may have more zeros, and counts may be texts. */
const inOneForm = (rows: readonly Total[]): string[] =>
  rows
    .map(({ period_id, currency, owed, payouts, paid, records }) =>
      [period_id, currency, new Exact(owed), payouts, new Exact(paid), records].join(' '),
    )
    .toSorted()

/** The first loads, then more changes, then the second loads, which have to find them. */
const load = async () => {
  const environments = ['dlt', 'singer', 'airbyte', 'pandas'].map(name =>
    installPython(scope, join(recipes, `requirements-${name}.txt`)),
  )
  const [all, dlt = '', singer = '', airbyte = '', pandas = ''] = await Promise.all([setUp(), ...environments])
  const { folder, start, startIn, ask, api, key, otherKey, publishRest, organization, settings } = all
  const store = (name: string, content: object) => writeFileSync(join(folder, name), JSON.stringify(content))
  store('singer.json', {})
  store('airbyte.json', { api, key })
  const stream = { name: 'changes', json_schema: {}, supported_sync_modes: ['full_refresh', 'incremental'] }
  store('catalog.json', {
    streams: [{ stream, sync_mode: 'incremental', destination_sync_mode: 'append', cursor_field: ['sequence'] }],
  })

  const runDlt = (recipe: string) => start(join(dlt, 'python'), join(recipes, recipe))
  const tap = (config: string, ...state: readonly string[]) => [
    ...[join(recipes, 'singer_tap.py'), '--config', config],
    ...state,
  ]
  const storeState = (name: string, messages: readonly Message[]) =>
    store(name, messages.findLast(({ type }) => type === 'STATE')?.value as object)
  const runSinger = async (...state: readonly string[]) => {
    const messages = linesOf((await start(join(singer, 'python'), ...tap('singer.json', ...state))).stdout)
    storeState('singer-state.json', messages)
    return messages.flatMap(({ type, record }) => (type === 'RECORD' ? [record as Item] : []))
  }
  const runAirbyte = async (...state: readonly string[]) => {
    const manifest = ['--manifest-path', join(recipes, 'airbyte.yaml')]
    const given = ['read', ...manifest, '--config', 'airbyte.json', '--catalog', 'catalog.json', ...state]
    const messages = linesOf((await start(join(airbyte, 'source-declarative-manifest'), ...given)).stdout)
    store('airbyte-state.json', [messages.findLast(({ type }) => type === 'STATE')?.state])
    return messages.flatMap(({ type, record }) => (type === 'RECORD' ? [(record as { data: Item }).data] : []))
  }

  /** Loads of the other organization, each in a folder of its own. `again` goes on with the key of the large one. */
  const dltOf = (of: string) => startIn('other-dlt', of, join(dlt, 'python'), join(recipes, 'dlt_changes.py'))
  const singerOf = (of: string, ...state: readonly string[]) =>
    startIn('other-singer', of, join(singer, 'python'), ...tap('../singer.json', ...state))
  const others = {
    dlt: { first: () => dltOf(otherKey), again: (of: string) => dltOf(of) },
    singer: {
      first: async () => storeState('other-singer/state.json', linesOf((await singerOf(otherKey)).stdout)),
      again: (of: string) => singerOf(of, '--state', 'state.json'),
    },
  }

  await runDlt('dlt_changes.py')
  const first = { singer: await runSinger(), airbyte: await runAirbyte() }
  await publishRest()
  await runDlt('dlt_changes.py')
  await runDlt('dlt_lists.py')
  const second = {
    singer: await runSinger('--state', 'singer-state.json'),
    airbyte: await runAirbyte('--state', 'airbyte-state.json'),
  }
  const totals = (await ask('/totals')).totals as readonly Item[]
  const expected = inOneForm(
    totals.map(row => ({
      ...{ period_id: String(row.period_id), currency: String(row.currency) },
      ...{ owed: String(row.owed_amount), payouts: Number(row.owed_count) },
      ...{ paid: String(row.paid_amount), records: Number(row.paid_count) },
    })),
  )
  /** The rows of a query of the loaded tables. */
  const query = async (sql: string, from: 'commission' | 'other-dlt/commission' = 'commission') => {
    const program = [
      'import duckdb, json, sys',
      'rows = duckdb.connect(sys.argv[2]).execute(sys.argv[1])',
      'names = [column[0] for column in rows.description]',
      'print(json.dumps([dict(zip(names, map(str, row))) for row in rows.fetchall()]))',
    ].join('\n')
    const { stdout } = await start(join(dlt, 'python'), '-c', program, sql, `${from}.duckdb`)
    return JSON.parse(stdout) as readonly Total[]
  }
  return {
    ...{ folder, start, key, organization, settings, pandas, totals, expected, query, first, second, others, otherKey },
  }
}
let started: ReturnType<typeof load> | undefined
const loaded = () => (started ??= load())

type Message = { readonly type: string } & Readonly<Record<string, unknown>>
const linesOf = (text: string): Message[] =>
  text
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Message)

const totalsOfLoaded = () => readFileSync(join(recipes, 'totals-of-changes.sql'), 'utf8')

/** The totals of all changes, as the test itself adds them. */
const totalsOfChanges = (changes: readonly Item[]) => {
  const replaced = new Set(changes.map(({ supersedes_id }) => supersedes_id))
  const current = (kind: string) =>
    changes.flatMap(change => (change.kind === kind && !replaced.has(change.id) ? [change.record as Item] : []))
  return totalsOf(current('payouts'), current('payroll_files'))
}

test.skipIf(pythonProgram === undefined)('the recipes have at most 45 lines each', () => {
  for (const name of ['dlt_changes.py', 'dlt_lists.py', 'singer_tap.py', 'airbyte.yaml', 'pandas_totals.py']) {
    expect([name, readFileSync(join(recipes, name), 'utf8').split('\n').length - 1 <= 45]).toEqual([name, true])
  }
})

test.skipIf(pythonProgram === undefined)(
  'dlt loads all changes and later ones, and they add up to the totals',
  async () => {
    const { query, expected } = await loaded()
    expect(inOneForm(await query(totalsOfLoaded()))).toEqual(expected)
    expect(expected.join()).toContain('9007199254740993123.1000000001')
  },
)

test.skipIf(pythonProgram === undefined)(
  'the query of the changes fails if one is missing or there twice, and where a cast would round',
  async () => {
    const { query, others } = await loaded()
    const harmed = (harm: string) => query(`BEGIN; ${harm} FROM pay.changes WHERE sequence = 2; ${totalsOfLoaded()}`)
    await expect(harmed('DELETE')).rejects.toThrow('Error: changes are missing or there twice')
    await expect(harmed('INSERT INTO pay.changes SELECT *')).rejects.toThrow(
      'Error: changes are missing or there twice',
    )
    await others.dlt.first()
    const rounded = query(totalsOfLoaded(), 'other-dlt/commission')
    await expect(rounded).rejects.toThrow('Error: an amount has more than 10 decimal places')
  },
)

test.skipIf(pythonProgram === undefined).each(['dlt', 'singer'] as const)(
  '%s goes on with the same organization only',
  async tool => {
    const { key, otherKey, others } = await loaded()
    const { first, again } = others[tool]
    await first()
    await again(otherKey)
    await expect(again(key)).rejects.toThrow('another organization, new rules or lost records')
  },
)

test.skipIf(pythonProgram === undefined)(
  'singer gives no change a second time after a state that does not name its last change',
  async () => {
    const { folder, otherKey, others } = await loaded()
    await others.singer.first()
    const file = join(folder, 'other-singer/state.json')
    const { bookmarks } = JSON.parse(readFileSync(file, 'utf8'))
    const { last_id, ...changes } = bookmarks.changes
    expect([last_id, changes.replication_key_value]).toEqual([expect.any(String), expect.any(Number)])
    writeFileSync(file, JSON.stringify({ bookmarks: { changes } }))
    const { stdout } = await others.singer.again(otherKey)
    expect(linesOf(stdout).filter(({ type }) => type === 'RECORD')).toEqual([])
  },
)

test.skipIf(pythonProgram === undefined)('dlt loads the lists, and they add up to the totals', async () => {
  const { query, expected } = await loaded()
  const rows = await query(`
    SELECT period_id, currency, sum(owed) AS owed, count(owed) AS payouts, sum(paid) AS paid, count(paid) AS records FROM (
      SELECT period_id, currency, net_amount::DECIMAL(38, 10) AS owed, NULL::DECIMAL(38, 10) AS paid FROM pay.payouts
      UNION ALL SELECT period_id, currency, NULL, amount::DECIMAL(38, 10) FROM pay.payroll_files
    ) GROUP BY ALL`)
  const none = (amount: string): string => (amount === 'None' ? '0' : amount)
  expect(inOneForm(rows.map(row => ({ ...row, owed: none(row.owed), paid: none(row.paid) })))).toEqual(expected)
})

test.skipIf(pythonProgram === undefined).each(['singer', 'airbyte'] as const)(
  '%s reads all changes, then only later ones, and they add up to the totals',
  async tool => {
    const { first, second, totals } = await loaded()
    const sequences = [...first[tool], ...second[tool]].map(({ sequence }) => sequence)
    expect(sequences).toEqual(sequences.map((_, at) => at + 1))
    expect(second[tool].length).toBeGreaterThan(100)
    expect(totalsOfChanges([...first[tool], ...second[tool]])).toEqual(totals)
  },
)

test.skipIf(pythonProgram === undefined)('pandas adds an export up to the totals', async () => {
  const { folder, start, organization, settings, pandas, expected } = await loaded()
  const out = join(folder, 'export')
  const parameters = ['projection', 'export', '--org', organization, '--out', out, '--csv']
  expect((await runCommand(parameters, settings)).code).toBe(0)
  const { stdout, stderr } = await start(join(pandas, 'python'), join(recipes, 'pandas_totals.py'), out)
  const [head, ...rows] = stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split(','))
  expect([head, stderr]).toEqual([['period_id', 'currency', 'owed', 'payouts', 'paid', 'records'], ''])
  const totals = rows.map(row => Object.fromEntries(row.map((value, at) => [head?.[at], value])) as unknown as Total)
  expect(inOneForm(totals)).toEqual(expected)
})
