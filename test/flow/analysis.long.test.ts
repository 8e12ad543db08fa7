/** `commission projection diff` and `explain` on a story with known figures, as an analyst runs them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { columns } from '../../tools/documents/rows.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import {
  line,
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  step,
} from '../support/events.ts'
import { readFromKafka } from '../support/in-kafka.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { browserProgram } from '../support/programs.ts'
import { createRandom } from '../support/random.ts'
import { fileScope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { organizationsIn } from '../support/streams.ts'
import { createTopics, type Published, type Topics } from '../support/topics.ts'

const PARTITIONS = 3
const file = fileScope()
const [org_id = '', other = ''] = organizationsIn(createRandom(7), [1, 1], PARTITIONS)
let topics: Topics
let prefix: string
let published: Published[]

/** A name that a page must show and never run. */
const hostile = '<script>document.title = "run"</script><img src="x" onerror="document.title = 1">'

const story: Readonly<Record<string, Outgoing>> = {
  rep: repRecorded({ org_id, name: hostile }),
  otherRep: repRecorded({ org_id: other }),
  period: periodRecorded({ org_id, name: hostile }),
  first: payoutCalculated({ org_id, id: 'payout_1' }),
  dollars: payoutRecorded({ org_id, id: 'payout_9', rep_id: 'rep_unknown' }),
  paid: payrollRecorded({ org_id, id: 'payroll_1', payout_id: 'payout_1' }),
  second: payoutCalculated({
    org_id,
    id: 'payout_2',
    supersedes_id: 'payout_1',
    net_amount: '85.50',
    line_items: [line({ amount: '90.50' }), line({ id: 'line_2', category: 'recovered', amount: '-5.00' })],
    calculation_trace: [step({ strategy_version: '2' }), step({ step: 2, strategy: 'tier' })],
  }),
  voided: payrollVoided({ org_id, id: 'payroll_2', reverses_id: 'payroll_1', amount: '-100.00' }),
  paidAgain: payrollRecorded({ org_id, id: 'payroll_3', payout_id: 'payout_2', amount: '80.00' }),
}
/** The partition and offset of an event of the story. */
const placeOf = (name: string): Published => {
  const found = published[Object.keys(story).indexOf(name)]
  if (found === undefined) throw new Error(`the story has no ${name}`)
  return found
}
const positionOf = (name: string): string => `${topics.events}:1:${placeOf(name).offset}`

const settings = (): Record<string, string> => ({ ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
const projection = (...args: string[]): Promise<Ran> => runCommand(['projection', ...args], settings())
const replay = async (...args: string[]): Promise<void> => {
  const ran = await projection('replay', ...args)
  expect(ran, ran.said).toMatchObject({ code: 0 })
}

beforeAll(async () => {
  topics = await createTopics(file, { partitions: PARTITIONS })
  prefix = createPrefix(file)
  published = await topics.publish(Object.values(story))
  await untilCaughtUp(await startProjector(file, { topics, prefix }))
  const rules = join(import.meta.dirname, '..', 'support', 'bonus-rules.ts')
  await replay('--name', 'same')
  await replay('--name', 'bonus', '--rules', rules)
  await replay('--name', 'early', '--org', org_id, '--until-offset', String(placeOf('second').offset))
})

test('two equal generations have no difference, in any format', async () => {
  for (const format of ['table', 'ndjson']) {
    const ran = await projection('diff', 'g1', 'sandbox:same', '--format', format)
    expect(ran, ran.said).toMatchObject({ code: 0, said: expect.stringContaining('no differences: 2 organizations') })
    expect(ran.out.toString()).toBe('')
  }
  const csv = await projection('diff', 'g1', 'sandbox:same', '--format', 'csv')
  expect(csv.out.toString()).toBe(`${columns.join(',')}\r\n`)
})

const nothing = Object.fromEntries(columns.map(column => [column, null]))
const rep_1 = { organization: org_id, rep: 'rep_1', period: 'period_1' }

test('other rules differ in exactly what they change: money, lines and records', async () => {
  const ran = await projection('diff', 'sandbox:same', 'sandbox:bonus', '--json')
  expect(ran.code, ran.said).toBe(3)
  const record = { ...nothing, ...rep_1, row: 'record', kind: 'payouts', change: 'changed', field: 'net_amount' }
  const rows = [
    { ...nothing, ...rep_1, row: 'owed', currency: 'EUR', a: '85.50', b: '95.50', difference: '10.00' },
    {
      ...nothing,
      ...rep_1,
      row: 'line',
      kind: 'payouts',
      id: 'line_bonus',
      change: 'added',
      category: 'adjusted',
      currency: 'EUR',
      b: '10.00',
      difference: '10.00',
    },
    { ...record, id: 'payout_1', a: '100.00', b: '110.00' },
    { ...record, id: 'payout_2', a: '85.50', b: '95.50' },
  ]
  expect(jsonLines(ran)).toEqual(rows)
  expect(ran.said).toContain('owed EUR: 85.50 in sandbox:same, 95.50 in sandbox:bonus, difference 10.00\n')
  expect(ran.said).toContain('paid EUR: 80.00 in sandbox:same, 80.00 in sandbox:bonus, difference 0.00\n')
  expect(ran.said).toContain('1 of 2 organizations differ: in 1 amounts owed, 0 paid, 1 lines, 2 records')

  const csv = await projection('diff', 'sandbox:same', 'sandbox:bonus', '--format', 'csv')
  const [heading, ...lines] = csv.out.toString().trimEnd().split('\r\n')
  expect(heading).toBe(columns.join(','))
  expect(lines).toEqual(
    rows.map(row => columns.map(column => (row as Record<string, unknown>)[column] ?? '').join(',')),
  )
  const table = await projection('diff', 'sandbox:same', 'sandbox:bonus')
  expect(table.out.toString()).toContain(`${org_id}\nmoney\n`)
  expect(table.out.toString()).toMatch(/owed {2}rep_1 {2}period_1 {2}EUR +85\.50 +95\.50 +10\.00\n/)
})

test('diff --html writes a page for people in place of rows, whole or not at all', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'commission-diff-'))
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  const page = join(folder, 'page.html')
  symlinkSync(join(folder, 'other'), `${page}.${crypto.randomUUID()}.new`)
  const ran = await projection('diff', 'sandbox:same', 'sandbox:bonus', '--html', page)
  expect(ran, ran.said).toMatchObject({ code: 3, said: expect.stringContaining(`written into ${page}\n`) })
  expect(ran.out.toString()).toBe('')
  expect(readdirSync(folder)).toEqual(['page.html'])
  expect(readFileSync(page, 'utf8')).not.toMatch(/<script|<img/)

  const equal = await projection('diff', 'g1', 'sandbox:same', '--html', page)
  expect(equal, equal.said).toMatchObject({ code: 0 })
  expect(readFileSync(page, 'utf8')).toContain('<p>no differences: 2 organizations</p>')

  const nowhere = await projection('diff', 'g1', 'sandbox:same', '--html', join(folder, 'nowhere', 'page.html'))
  expect(nowhere).toMatchObject({ code: 1, said: `${join(folder, 'nowhere')} cannot be used: ENOENT\n` })
})

test.skipIf(browserProgram === undefined)(
  'a browser shows the page of diff --html, runs no name and loads nothing',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'commission-diff-'))
    file.onTestFinished(async () => rmSync(folder, { recursive: true }))
    const path = join(folder, 'page.html')
    const ran = await projection('diff', 'sandbox:early', 'g1', '--html', path)
    expect(ran, ran.said).toMatchObject({ code: 3 })
    // The sandbox of Chromium refuses to run as root, the usual user in a container.
    const browser = await chromium.launch({ executablePath: browserProgram ?? '', args: ['--no-sandbox'] })
    file.onTestFinished(() => browser.close())
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 } })
    const wrong: string[] = []
    page.on('console', message => void wrong.push(message.text()))
    page.on('pageerror', error => void wrong.push(String(error)))
    page.on('request', request => void (request.url() === pathToFileURL(path).href || wrong.push(request.url())))
    await page.goto(pathToFileURL(path).href)
    expect(wrong).toEqual([])
    expect(await page.title()).toBe('Differences: sandbox:early and g1')
    expect(await page.locator('h2').allInnerTexts()).toEqual([
      'All organizations',
      'Largest differences in EUR',
      org_id,
    ])
    expect(await page.locator('h3').first().innerText()).toBe(`${hostile} rep_1, ${hostile} period_1`)
    const rows = (await page.locator('tr').allInnerTexts()).map(row => row.replaceAll('\t', ' '))
    for (const row of [
      'owed EUR 100.00 85.50 -14.50',
      `${hostile} period_1 EUR 100.00 85.50 -14.50 100.00 80.00 -20.00`,
      'line_1 Commission earned changed: amount EUR 100.00 90.50 -9.50',
      'line_2 Commission recovered added EUR - -5.00 -5.00',
      'payroll_files payroll_3 added - -',
    ]) {
      expect(rows.map(text => text.trim())).toContain(row)
    }
    const screenshots = process.env.SCREENSHOTS
    if (screenshots !== undefined) await page.screenshot({ path: join(screenshots, 'diff.png'), fullPage: true })

    // On a phone nothing is cut: a row is a card, and is still a row for a screen reader.
    await page.setViewportSize({ width: 320, height: 640 })
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(320)
    expect(await page.getByRole('row').filter({ hasText: 'line_1' }).count()).toBe(1)
  },
)

test('a sandbox of one organization is compared only in that one, as of its bound', async () => {
  const ran = await projection('diff', 'sandbox:early', 'g1', '--json')
  expect(ran, ran.said).toMatchObject({ code: 3, said: expect.stringContaining(`only ${org_id}`) })
  expect(
    jsonLines(ran).map(({ row, kind, id, change, a, b }) => [row, kind, id, change, a, b].join(' ').trim()),
  ).toEqual([
    'owed    100.00 85.50',
    'paid    100.00 80.00',
    'line payouts line_1 changed 100.00 90.50',
    'line payouts line_2 added  -5.00',
    'record payouts payout_1 changed null payout_2',
    'record payouts payout_2 added',
    'record statements payout_2 added',
    'record payroll_files payroll_2 added',
    'record payroll_files payroll_3 added',
  ])
  expect(await projection('diff', 'sandbox:early', 'g1', '--org', other)).toMatchObject({ code: 1 })
})

test('a single organization may be equal; a generation that does not exist cannot be compared', async () => {
  expect(await projection('diff', 'sandbox:same', 'sandbox:bonus', '--org', other)).toMatchObject({ code: 0 })
  expect(await projection('diff', 'g1', 'g1')).toMatchObject({ code: 1 })
  expect(await projection('diff', 'g1', 'g7')).toMatchObject({
    code: 1,
    said: expect.stringContaining('no generation g7'),
  })
  expect(await projection('diff', 'g1', 'sandbox:s7')).toMatchObject({
    code: 1,
    said: 'there is no sandbox:s7 (npx commission projection list --sandbox)\n',
  })
})

const explained = async (...args: string[]) => {
  const ran = await projection('explain', '--org', org_id, ...args)
  expect(ran, ran.said).toMatchObject({ code: 0, said: '' })
  return ran
}

test('a payout is explained by its chain, with the event and the changes of each step, and by its payments', async () => {
  const [explanation] = jsonLines(await explained('payout_1', '--json'))
  const { timestamp } = await readFromKafka(topics, 1, placeOf('second').offset)
  expect(explanation).toMatchObject({
    generation: 'g1',
    organization: org_id,
    rep: 'rep_1',
    period: 'period_1',
    payout: 'payout_1',
    current: 'payout_2',
    as_of: `${topics.events}:1:${published.length}`,
    steps: [
      {
        payout: 'payout_1',
        replaced_by: 'payout_2',
        position: positionOf('first'),
        net_amount: '100.00',
        net_difference: null,
        trace_steps: 1,
      },
      {
        payout: 'payout_2',
        replaces: 'payout_1',
        event: 'commission.payout.calculated.v1',
        position: positionOf('second'),
        at: new Date(Number(timestamp)).toISOString(),
        net_amount: '85.50',
        net_difference: '-14.50',
        categories: [
          { category: 'earned', total: '90.50', difference: '-9.50' },
          { category: 'recovered', total: '-5.00', difference: '-5.00' },
        ],
        strategies: [
          { strategy: 'flat-rate', change: 'changed', versions_before: ['1'], versions: ['2'] },
          { strategy: 'tier', change: 'appears', versions_before: [], versions: ['1'] },
        ],
      },
    ],
    payroll: [
      { id: 'payroll_1', payout_id: 'payout_1', reverses_id: null, amount: '100.00', position: positionOf('paid') },
      { id: 'payroll_2', payout_id: 'payout_1', reverses_id: 'payroll_1', amount: '-100.00' },
      { id: 'payroll_3', payout_id: 'payout_2', amount: '80.00', position: positionOf('paidAgain') },
    ],
    balances: [{ currency: 'EUR', owed: '85.50', paid: '80.00', still_owed: '5.50' }],
  })
  const text = (await explained('payout_2')).out.toString()
  expect(text).toContain('   net 85.50 EUR (-14.50), earned 85.50 EUR (-14.50)\n')
  expect(text).toContain('\nEUR: 85.50 owed, 80.00 paid, 5.50 still owed\n')
})

test('a payout in a sandbox is explained as it is there: under its rules and at its bound', async () => {
  const [bonus] = jsonLines(await explained('payout_2', '--generation', 'sandbox:bonus', '--json'))
  expect(bonus?.balances).toEqual([{ currency: 'EUR', owed: '95.50', paid: '80.00', still_owed: '15.50' }])
  const [early] = jsonLines(await explained('payout_1', '--generation', 'sandbox:early', '--json'))
  expect(early).toMatchObject({ current: 'payout_1', steps: [{ replaced_by: null }], payroll: [{ id: 'payroll_1' }] })
})

test('a payout that does not exist, or belongs to another organization, is not explained', async () => {
  for (const [id, org] of [
    ['payout_9', org_id],
    ['payout_1', other],
  ] as const) {
    expect(await projection('explain', id, '--org', org)).toMatchObject({
      code: 1,
      said: `there is no ${id} of ${org} in g1\n`,
    })
  }
})
