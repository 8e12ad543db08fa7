/** `commission close` on real services: a period with replaced payouts, payroll, parked records and two currencies. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import type { CloseManifest } from '../../tools/evidence/close-manifest.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  keyRevoked,
  line,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  sha256,
} from '../support/events.ts'
import { partitionOf } from '../support/model-record.ts'
import { readTable } from '../support/parquet.ts'
import { untilCaughtUp } from '../support/processes.ts'
import { type Projection, startProjection } from '../support/projection.ts'
import { fileScope } from '../support/scope.ts'

const org_id = newId('org')
const foreign = newId('org')
const secret = newKeyText()
const file = fileScope()
const folder = mkdtempSync(join(tmpdir(), 'commission-close-'))
const at = (...names: string[]): string => join(folder, ...names)
let settings: Record<string, string>
let projection: Projection
let publicKey = ''

const payout = (
  id: string,
  rep_id: string,
  net_amount: string,
  more: Partial<Parameters<typeof payoutCalculated>[0]> = {},
) => payoutCalculated({ org_id, id, rep_id, net_amount, ...more })
const february = 'period_February'
/** The partition of the organization, and the one into which a wrong partitioner puts some of its records. */
const own = partitionOf(org_id, 2)
const other = 1 - own

/** The first month. Then what came later. */
const january: readonly Outgoing[] = [
  periodRecorded({ org_id, name: 'January <2026>' }),
  periodRecorded({ org_id, id: february }),
  ...['rep_1', 'rep_2', 'rep_3', 'rep_4'].map(id => repRecorded({ org_id, id, name: `Name of ${id}` })),
  keyCreated({ org_id, id: 'key_Reader', name: 'Payroll', text: secret, permissions: ['payouts:read'] }),
  keyCreated({ org_id, id: 'key_Old' }),
  keyRevoked({ org_id, id: 'key_Old' }),
  payout('payout_1', 'rep_1', '100.10'),
  payout('payout_2', 'rep_1', '120.5000000001', {
    supersedes_id: 'payout_1',
    line_items: [line({ id: 'line_1', amount: '120.5' }), line({ id: 'line_2', amount: '0.0000000001' })],
  }),
  payout('payout_3', 'rep_2', '-7.25', { currency: 'USD' }),
  payout('payout_4', 'rep_3', '50', { currency: 'USD' }),
  payout('payout_5', 'rep_3', '40', { supersedes_id: 'payout_4' }),
  payout('payout_6', 'rep_1', '999', { period_id: february }),
  payout('payout_7', 'rep_unknown', '1'),
  { ...payout('payout_Elsewhere', 'rep_2', '12'), partition: other },
  { ...payout('payout_OtherKey', 'rep_2', '13'), key: foreign, partition: other },
  payrollRecorded({ org_id, id: 'payroll_1', amount: '100.10' }),
  payrollVoided({ org_id, id: 'payroll_2', reverses_id: 'payroll_1', amount: '-100.10' }),
  payrollRecorded({ org_id, id: 'payroll_3', amount: '120.50' }),
  payrollRecorded({ org_id, id: 'payroll_4', rep_id: 'rep_4', amount: '3', period_id: february }),
  // Another organization, with ids of the same form.
  periodRecorded({ org_id: foreign, name: 'Foreign period' }),
  repRecorded({ org_id: foreign, name: 'Foreign rep' }),
  keyCreated({ org_id: foreign, id: 'key_Foreign', name: 'Foreign key' }),
  payoutCalculated({ org_id: foreign, id: 'payout_Foreign', net_amount: '777' }),
  payoutCalculated({ org_id: foreign, id: 'payout_ForeignParked', rep_id: 'rep_unknown' }),
  payrollRecorded({ org_id: foreign, id: 'payroll_Foreign', amount: '777' }),
  // The last change.
  repRecorded({ org_id, id: 'rep_4', name: 'Another name' }),
]
const later: readonly Outgoing[] = [
  payout('payout_8', 'rep_1', '1', { supersedes_id: 'payout_2' }),
  payout('payout_9', 'rep_unknown', '1'),
  { ...payout('payout_ElsewhereLater', 'rep_2', '14'), partition: other },
  keyCreated({ org_id, id: 'key_Later' }),
  keyRevoked({ org_id, id: 'key_Reader' }),
]

const close = (out: string, ...more: string[]) =>
  runCommand(['close', '--org', org_id, '--period', 'period_1', '--out', at(out), ...more], settings)
const verify = async (name: string) => {
  const ran = await runCommand(['verify', at(name), '--json', '--key', publicKey], {})
  return { code: ran.code, differences: (jsonLines(ran)[0] as { differences: string[] }).differences }
}
const manifestOf = (name: string) => JSON.parse(readFileSync(at(name, 'manifest.json'), 'utf8')) as CloseManifest
const rows = (name: string, of: string) =>
  readFileSync(at(name, `${of}.ndjson`), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map(text => JSON.parse(text) as Record<string, unknown>)
const idsIn = (name: string, of: string) => rows(name, of).map(({ id }) => id)
const bytesOf = (name: string) =>
  Object.fromEntries(readdirSync(at(name)).map(of => [of, readFileSync(at(name, of)).toString('base64')]))

beforeAll(async () => {
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  projection = await startProjection(file, january, { partitions: 2 })
  settings = commandSettings(projection.topics, projection.prefix)
  const made = await runCommand(['evidence', 'key', '--name', 'close', '--out', at('close.key')], {})
  publicKey = made.out.toString().trim()
  const ran = await close('first', '--sign', at('close.key'))
  expect(ran.code, ran.said).toBe(0)
})

test('a close has the records of the period as of the last change, and nothing of another organization or period', () => {
  expect(manifestOf('first')).toMatchObject({ organization: org_id, period: 'period_1', as_of: 'rep_4.2' })
  expect(idsIn('first', 'periods')).toEqual(['period_1'])
  expect(idsIn('first', 'payouts')).toEqual(['payout_2', 'payout_3', 'payout_5'])
  expect(idsIn('first', 'statements')).toEqual(idsIn('first', 'payouts'))
  expect(idsIn('first', 'payroll_files')).toEqual(['payroll_1', 'payroll_2', 'payroll_3'])
  expect(idsIn('first', 'changes')).toEqual([
    ...['payout_1', 'payout_2', 'payout_3', 'payout_4', 'payout_5'],
    ...['payroll_1', 'payroll_2', 'payroll_3'],
  ])
  expect(idsIn('first', 'reps')).toEqual(['rep_1', 'rep_2', 'rep_3'])
  for (const name of readdirSync(at('first'))) {
    const text = readFileSync(at('first', name), 'latin1')
    expect([name, text.match(/foreign/i)?.[0]]).toEqual([name, undefined])
    expect([name, text.includes(secret), text.includes(sha256(secret))]).toEqual([name, false, false])
  }
})

test('its control totals are exact, and say how what is owed came about', () => {
  expect(manifestOf('first').control_totals).toEqual([
    {
      currency: 'EUR',
      first_payouts: 1,
      first_amount: '100.1',
      replacements: 2,
      replaced_amount: '60.4000000001',
      owed_count: 2,
      owed_amount: '160.5000000001',
      payments: 2,
      payments_amount: '220.6',
      voids: 1,
      voids_amount: '-100.1',
      paid_count: 3,
      paid_amount: '120.5',
      open_amount: '40.0000000001',
    },
    expect.objectContaining({
      currency: 'USD',
      first_payouts: 2,
      first_amount: '42.75',
      replaced_amount: '-50',
      owed_count: 1,
      owed_amount: '-7.25',
      paid_amount: '0',
      open_amount: '-7.25',
    }),
  ])
  expect(rows('first', 'replacements')).toEqual([
    expect.objectContaining({ payout_id: 'payout_2', replaces_id: 'payout_1', difference: '20.4000000001' }),
    expect.objectContaining({ payout_id: 'payout_5', before: '50', after: '40', difference: null }),
  ])
  const page = readFileSync(at('first', 'report.html'), 'utf8')
  expect(page).toContain('<h1>Close of January &lt;2026&gt;</h1>')
  expect(page.indexOf('160.5000000001')).toBeLessThan(page.indexOf('payout_2'))
})

test('it names parked records of all partitions by position and code, and the keys that could read, without any content or secret', () => {
  const published = projection.topics.published()
  const parked = rows('first', 'parked').map(({ position, code, type }) => {
    const { events } = projection.topics
    const at = published.find(({ stream, partition, offset }) => {
      return stream === 'events' && `${events}:${partition}:${offset}` === position
    })
    return [code, type, at?.partition, JSON.parse(String(at?.value)).id]
  })
  const type = 'commission.payout.calculated.v1'
  expect(parked).toHaveLength(3)
  expect(parked).toEqual(
    expect.arrayContaining([
      [expect.any(String), type, own, 'payout_7'],
      ['partition_mismatch', type, other, 'payout_Elsewhere'],
      ['org_mismatch', type, other, 'payout_OtherKey'],
    ]),
  )
  expect(rows('first', 'keys')).toEqual([
    { id: 'key_Old', name: 'Test', permissions: 'read', expires_at: null, allowed_networks: null, revoked: true },
    {
      id: 'key_Reader',
      name: 'Payroll',
      permissions: 'payouts:read',
      expires_at: null,
      allowed_networks: null,
      revoked: false,
    },
  ])
})

test('tables have the same records, with exact amounts', async () => {
  const { rows: changes } = await readTable(at('first', 'changes.parquet'))
  expect(changes.map(({ id }) => id)).toEqual(idsIn('first', 'changes'))
  const { rows: totals } = await readTable(at('first', 'control_totals.parquet'))
  expect(String(totals[0]?.owed_amount)).toBe('160.5000000001')
  expect(readFileSync(at('first', 'reconciliation.csv'), 'utf8')).toContain(
    'EUR,owed,160.5000000001,160.5000000001,160.5000000001,160.5000000001\r\n',
  )
})

test('the same change gives the same bytes, also after later changes, and a later close has them', async () => {
  await projection.topics.publish(later)
  await untilCaughtUp(projection.projector)
  const { as_of, keys_position, parked_positions } = manifestOf('first')
  const ends = parked_positions.map(({ topic, partition, offset }) => `${topic}:${partition}:${offset}`)
  expect(ends).toEqual([expect.stringMatching(`^[^:]*:${other}:`)])
  const again = await close(
    'again',
    '--as-of',
    as_of,
    '--keys-until',
    String(keys_position.offset),
    ...ends.flatMap(end => ['--parked-until', end]),
    '--sign',
    at('close.key'),
  )
  expect(again.code, again.said).toBe(0)
  expect(bytesOf('again')).toEqual(bytesOf('first'))
  expect(again.said).toContain('records parked after --parked-until, and in no file: 2')

  const closed = await close('later')
  expect(closed.code, closed.said).toBe(0)
  expect(idsIn('later', 'payouts')).toEqual(['payout_3', 'payout_5', 'payout_8'])
  // One was parked after the last change. It could have changed the sums of the period: somebody must look at it.
  expect(rows('later', 'parked')).toHaveLength(5)
  expect(idsIn('later', 'keys')).toEqual(['key_Later', 'key_Old', 'key_Reader'])
  expect(rows('later', 'keys').map(({ revoked }) => revoked)).toEqual([false, true, true])
})

test('it is checked with the public key only, and one changed byte of each file is named', async () => {
  expect(await verify('first')).toEqual({ code: 0, differences: [] })
  await cp(at('first'), at('changed'), { recursive: true })
  for (const name of ['payouts.ndjson', 'changes.csv', 'control_totals.parquet', 'report.html', 'keys.ndjson']) {
    const bytes = readFileSync(at('changed', name))
    const changed = Buffer.from(bytes)
    const place = bytes.length >> 1
    changed[place] = (changed[place] ?? 0) ^ 1
    writeFileSync(at('changed', name), changed)
    const { code, differences } = await verify('changed')
    expect([name, code, differences]).toEqual([name, 3, [expect.stringContaining(at('changed', name))]])
    writeFileSync(at('changed', name), bytes)
  }
})

test('who read is added from an audit log', async () => {
  const read = { audit: true, org_id, key_id: 'key_Reader', route: '/api/v1/payouts', status: 200 }
  const lines = [
    { ...read, time: '2026-03-02T00:00:00.000Z', count: 2 },
    { level: 30, msg: 'a line of the log' },
    { ...read, time: '2026-03-01T00:00:00.000Z', count: 3 },
    { ...read, org_id: foreign, key_id: 'key_Foreign', time: '2026-03-01T00:00:00.000Z', count: 9 },
    { ...read, time: '2026-03-03T00:00:00.000Z', status: 429, count: 0 },
  ]
  writeFileSync(at('audit.ndjson'), lines.map(one => `${JSON.stringify(one)}\n`).join(''))
  expect((await close('read', '--audit', at('audit.ndjson'))).code).toBe(0)
  const [first, last] = ['2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z']
  expect(rows('read', 'reads')).toEqual([
    { key_id: 'key_Reader', route: '/api/v1/payouts', requests: 2, records: 5, first, last },
  ])
  expect(readFileSync(at('read', 'report.html'), 'utf8')).toContain('<h2>Who read</h2>')
})

test('a directory that is not empty, an unknown period and a period of another organization are refused, and nothing is left', async () => {
  const before = readdirSync(folder)
  expect(await close('first')).toMatchObject({ code: 1, said: expect.stringContaining('is not empty') })
  for (const period of ['period_nothing', 'period_Foreign']) {
    const ran = await runCommand(['close', '--org', org_id, '--period', period, '--out', at('never')], settings)
    expect([ran.code, ran.said]).toEqual([1, expect.stringContaining(`has no period ${period} as of`)])
  }
  const early = await close('never', '--as-of', 'period_1.1')
  expect([early.code, early.said]).toEqual([0, expect.stringContaining('closed period_1')])
  rmSync(at('never'), { recursive: true })
  expect(readdirSync(folder)).toEqual(before)
})
