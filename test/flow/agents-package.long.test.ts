/** The packed server for agents, installed in an empty project, and an agent on the Python SDK that reads each tool. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { serveExample } from '../support/client-example.ts'
import { npmProgram, pythonProgram } from '../support/programs.ts'
import { runCopy } from '../support/run-copy.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const project = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const programs = [npmProgram, pythonProgram]
type Called = readonly [isError: boolean, structured: Readonly<Record<string, unknown>> | null, text: string]

/** Builds and packs a copy of the package, and installs it alone. Returns its program. */
const installPacked = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-mcp-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const client = join(folder, 'source', 'client')
  const isSource = (path: string): boolean => !/node_modules|dist$|python/.test(path)
  await cp(join(project, 'client'), client, { recursive: true, filter: isSource })
  await cp(join(project, 'contract'), join(folder, 'source', 'contract'), { recursive: true })
  const npm = (cwd: string, ...parameters: readonly string[]) => run('npm', parameters, { cwd })
  await npm(client, 'install')
  const source = join(client, 'mcp')
  await npm(source, 'install')
  await npm(source, 'run', 'build')
  await npm(source, 'pack', '--pack-destination', folder)
  const packed = (await readdir(folder)).find(name => name.endsWith('.tgz')) ?? ''
  const user = join(folder, 'user')
  await mkdir(user)
  await writeFile(join(user, 'package.json'), JSON.stringify({ name: 'user', private: true }))
  await npm(user, 'install', '--ignore-scripts', join(folder, packed))
  const installed = join(user, 'node_modules', 'commission-mcp')
  expect((await readdir(installed)).toSorted()).toEqual(['README.md', 'bin', 'dist', 'package.json'])
  return join(installed, 'bin', 'commission-mcp.mjs')
}

test.skipIf(programs.includes(undefined))(
  'an agent in Python finds all tools and reads the amounts of the API',
  async () => {
    const { api, key } = await serveExample(scope)
    const ask = async (path: string) =>
      JSON.parse(await (await fetch(`${api}${path}`, { headers: { authorization: `Bearer ${key}` } })).text()).data
    const calls = [
      ['list_payouts', {}],
      ['get_totals', { rep_id: 'rep_1' }],
      ['payout_history', { rep_id: 'rep_1', period_id: 'period_1' }],
      ['explain_payout', { id: 'payout_2' }],
      ['list_changes', { after_sequence: 3 }],
      ['list_reps', {}],
      ['list_periods', {}],
      ['list_payroll_records', { period_id: 'period_1' }],
      ['describe_access', {}],
      ['get_payout', { id: 'payout_none' }],
    ]
    const environment = {
      API: api,
      KEY: key,
      NODE: process.execPath,
      PROGRAM: await installPacked(),
      CALLS: JSON.stringify(calls),
    }
    const [names = '', ...lines] = await runCopy('clients/agent', environment)
    expect(names.split(' ')).toHaveLength(10)
    const answers = lines.map(line => JSON.parse(line) as Called)
    const [payouts, totals, history, explained, changes, reps, periods, payroll, access, unknown] = answers
    expect(answers.map(([isError]) => isError)).toEqual(
      calls.map(([, given]) => JSON.stringify(given).includes('none')),
    )
    expect(payouts?.[1]?.data).toMatchObject([{ id: 'payout_2', net_amount: '12.50' }])
    expect(totals?.[1]).toMatchObject(await ask('/totals?rep_id=rep_1'))
    expect(history?.[1]?.data).toMatchObject([{ difference: null }, { difference: { net_amount: '12.5' } }])
    expect(explained?.[2]).toContain('payout_2 of rep_1 for period_1: EUR 12.50 owed')
    expect(changes?.[1]?.data).toMatchObject([{ id: 'payout_2' }, { id: 'payroll_1' }])
    expect(reps?.[1]?.data).toEqual(await ask('/reps'))
    expect(periods?.[1]?.data).toEqual(await ask('/periods'))
    expect(payroll?.[1]?.data).toEqual(await ask('/payroll_files'))
    expect(access?.[1]?.permissions).toHaveLength(7)
    expect(unknown?.[2]).toContain('No record has this id')
    // The text is the same as the structured content, for an agent that reads only text.
    for (const [isError, structured, text] of [payouts, totals, history, changes, reps].filter(
      one => one !== undefined,
    ))
      expect([isError, JSON.parse(text)]).toEqual([false, structured])
  },
)
