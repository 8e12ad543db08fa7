/** A copy of an organization of the demo that grows while events are published, read by DuckDB. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeOrganizations } from '../../demo/data/organization.ts'
import { Exact } from '../../schemas/money.ts'
import { foldAll } from '../support/agreement.ts'
import { commandSettings, type Ran, runCommand } from '../support/commands.ts'
import { installDuckdb, queryDuckdb } from '../support/duckdb.ts'
import type { Outgoing } from '../support/events.ts'
import type { Item } from '../support/model.ts'
import { untilCaughtUp } from '../support/processes.ts'
import { pythonProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { fileScope } from '../support/scope.ts'

const root = join(import.meta.dirname, '..', '..')
const file = fileScope()
const exact = (amount: unknown): string => new Exact(String(amount)).toFixed()
const everyFile = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(name => /^(?:last-part|part-\d+).*\.\w+$/.test(name))
      .map(name => [name, readFileSync(join(folder, name), 'latin1')]),
  )

test.skipIf(pythonProgram === undefined)(
  'DuckDB reads the parts as the current state after each of them, exactly as /totals has it',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'commission-growing-'))
    file.onTestFinished(async () => rmSync(folder, { recursive: true }))
    const [organization] = makeOrganizations(1, { years: 1, partitions: 3 })
    if (organization === undefined) throw new Error('the demo has no organization')
    const org = organization.id
    const records = organization.sent
      .filter(({ stream }) => stream !== 'api-keys')
      .map(({ stream, message }) => ({ stream, ...message }) as Outgoing)
    const { topics, prefix, projector } = await startProjection(file, [], { partitions: 3 })
    const thirds = [1, 2, 3].map(third => Math.floor((records.length * third) / 3))
    const settings = commandSettings(topics, prefix)
    const run = (...args: string[]): Promise<Ran> => runCommand(args, settings)
    const [copy, again, key] = ['copy', 'again', 'key'].map(name => join(folder, name)) as [string, string, string]
    const publicKey = (await run('evidence', 'key', '--name', 'example.org', '--out', key)).out.toString().trim()
    const add = (out: string, ...more: string[]) =>
      run('projection', 'export', '--org', org, '--out', out, '--add', '--parquet', '--sign', key, ...more)
    const duckdb = await installDuckdb(file)
    const views = readFileSync(join(root, 'docs', 'examples', 'current.sql'), 'utf8')
    const read = (query: string) => queryDuckdb(duckdb, copy, `${views}\n${query}`)

    const ends: string[] = []
    for (const [index, to] of thirds.entries()) {
      await topics.publish(records.slice(thirds[index - 1] ?? 0, to))
      await untilCaughtUp(projector)
      const { model } = foldAll(topics)
      const view = model.view(org)
      expect(await add(copy), `up to ${to}`).toMatchObject({
        code: 0,
        said: expect.stringContaining('parts; the last one is'),
      })
      const end = model.changes(org).at(-1)?.id ?? ''
      ends.push(end)

      expect(await read('FROM problems')).toEqual([])
      const rows = await read(
        'SELECT period_id, currency, owed::TEXT AS owed, payouts, paid::TEXT AS paid, records FROM totals',
      )
      const said = JSON.parse((await run('projection', 'totals', '--org', org, '--json')).out.toString())
      const line = (...cells: unknown[]): string => cells.join(' ')
      expect(said.as_of).toBe(end)
      expect(
        rows
          .map(row => line(row.period_id, row.currency, exact(row.owed), row.payouts, exact(row.paid), row.records))
          .sort(),
      ).toEqual(
        said.totals
          .map((row: Item) =>
            line(
              row.period_id,
              row.currency,
              exact(row.owed_amount),
              row.owed_count,
              exact(row.paid_amount),
              row.paid_count,
            ),
          )
          .sort(),
      )
      const idsOf = (items: readonly Record<string, unknown>[]) => items.map(({ id }) => String(id)).sort()
      for (const name of ['reps', 'periods', 'payouts', 'payroll_files'] as const) {
        expect(idsOf(await read(`SELECT id FROM ${name}`)), name).toEqual(idsOf(view[name]))
      }
      const pairs = (items: readonly Record<string, unknown>[], field: string) =>
        items.map(item => line(item.id, item[field])).sort()
      expect(pairs(await read('SELECT id, status FROM reps'), 'status')).toEqual(pairs(view.reps, 'status'))
      const names = pairs(await read('SELECT id, name FROM periods'), 'name')
      expect(names).toEqual(pairs(view.periods, 'name'))
      const lines = await read('SELECT payout_id, id, amount::TEXT AS amount FROM line_items')
      expect(lines.map(item => line(item.payout_id, item.id, exact(item.amount))).sort()).toEqual(
        view.payouts
          .flatMap(payout =>
            (payout.line_items as unknown as Item[]).map(item => line(payout.id, item.id, exact(item.amount))),
          )
          .sort(),
      )
    }
    // These amounts have more decimal places than the type of the first part.
    const steps = await read('SELECT payout_id, step, output_amount::TEXT AS output FROM calculation_steps')
    const { statements, payouts } = foldAll(topics).model.view(org)
    const current = new Set(payouts.map(({ id }) => id))
    expect(steps.map(step => [step.payout_id, step.step, exact(step.output)].join(' ')).sort()).toEqual(
      statements
        .filter(({ id }) => current.has(String(id)))
        .flatMap(({ id, calculation_trace }) =>
          (calculation_trace as unknown as Item[]).map(step => [id, step.step, exact(step.output_amount)].join(' ')),
        )
        .sort(),
    )
    const parts = ['part-000001', 'part-000002', 'part-000003']
    expect(readdirSync(copy).sort()).toEqual(['last-part.json', ...parts])
    // Otherwise nothing was replaced across parts, and the test proves little.
    const replacing = await read("SELECT id FROM 'part-00000[23]/payouts.parquet' WHERE supersedes_id IS NOT NULL")
    expect(replacing.length).toBeGreaterThan(0)
    for (const part of parts) {
      expect(await run('verify', join(copy, part), '--key', publicKey)).toMatchObject({ code: 0 })
    }

    const problemsWithout = async (part: string): Promise<unknown[]> => {
      const torn = join(folder, `torn-${part}`)
      cpSync(copy, torn, { recursive: true })
      rmSync(join(torn, part), { recursive: true })
      return (await queryDuckdb(duckdb, torn, `${views}\nFROM problems`)).map(({ problem }) => problem)
    }
    // The parts that remain are a whole copy, as of an earlier change.
    expect(await problemsWithout('part-000003')).toEqual(['part-000003 is lost, or is another one'])
    const problems = await problemsWithout('part-000002')
    const continues = 'part-000003/manifest.json does not continue the part before it'
    expect(problems).toContainEqual(expect.stringContaining(continues))
    expect(problems).toContainEqual(expect.stringMatching(/^paid \w+: the tables have /))

    // The same ends give the same bytes, also if each run is killed on its way.
    for (const end of ends) {
      const args = [
        'projection',
        'export',
        '--org',
        org,
        '--out',
        again,
        '--add',
        '--parquet',
        '--sign',
        key,
        '--as-of',
        end,
      ]
      const child = spawn(process.execPath, ['tools/main.ts', ...args], { cwd: root, env: settings, stdio: 'ignore' })
      const closed = once(child, 'close')
      const isOnItsWay = () => spawnSync('ls', [join(again, 'unfinished')]).status === 0 || child.exitCode !== null
      await expect.poll(isOnItsWay, { timeout: 240_000 }).toBe(true)
      child.kill('SIGKILL')
      await closed
      expect(await add(again, '--as-of', end)).toMatchObject({ code: 0 })
    }
    expect(everyFile(again)).toEqual(everyFile(copy))
  },
)
