import { expect, test } from 'vitest'
import { exitCodes } from '../../../tools/failures.ts'
import { said } from '../../support/command-line.ts'

test('a replay takes offsets or a time, for all organizations or one', async () => {
  const nothing = {
    name: undefined,
    until: undefined,
    org: undefined,
    rules: undefined,
    fromArchive: undefined,
    maxRate: Infinity,
    json: false,
  }
  expect((await said('projection', 'replay')).called).toEqual(['projection replay', nothing])
  expect(
    (await said('projection', 'replay', '--until-offset', '0:5', '--until-offset', '2:7', '--name', 'mine')).called,
  ).toMatchObject([
    'projection replay',
    {
      name: 'mine',
      until: {
        offsets: [
          { partition: 0, offset: 5 },
          { partition: 2, offset: 7 },
        ],
      },
    },
  ])
  expect(
    (await said('projection', 'replay', '--org', 'org_1', '--until-offset', '5', '--rules', './a.ts')).called,
  ).toMatchObject([
    'projection replay',
    { org: 'org_1', until: { offsets: [{ partition: undefined, offset: 5 }] }, rules: './a.ts' },
  ])
  expect(
    (await said('projection', 'replay', '--until-time', '1970-01-01T00:00:01Z', '--max-rate', '5', '--json')).called,
  ).toMatchObject(['projection replay', { until: { time: 1_000 }, maxRate: 5, json: true }])
  expect((await said('projection', 'replay', '--from-archive', './archive')).called).toMatchObject([
    'projection replay',
    { fromArchive: './archive' },
  ])
  for (const wrong of [
    ['--until-offset', '5'],
    ['--until-offset', '0:5', '--until-offset', '0:6'],
    ['--until-offset', '0:5', '--until-time', '1970-01-01T00:00:01Z'],
    ['--until-time', 'yesterday'],
    ['--name', 'sandbox:s1'],
    ['--org', 'acme'],
  ]) {
    expect(await said('projection', 'replay', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})

test('sandboxes are listed and dropped by name, and exports take a moment', async () => {
  expect((await said('projection', 'list', '--sandbox', '--json')).called).toEqual([
    'projection list',
    { sandbox: true, json: true },
  ])
  expect((await said('projection', 'drop', 'sandbox:s1')).called).toEqual([
    'projection drop',
    { generation: 'sandbox:s1', json: false },
  ])
  expect((await said('projection', 'export', '--org', 'org_1', '--out', 'x', '--as-of', 'rep_1.2')).called).toEqual([
    'projection export',
    {
      add: false,
      org: 'org_1',
      out: 'x',
      asOf: { kind: 'change', name: { kind: 'reps', id: 'rep_1', ordinal: 2 } },
      parquet: false,
      csv: false,
      open: false,
      json: false,
    },
  ])
  const both = await said('projection', 'export', '--org', 'org_1', '--out', 'x', '--csv', '--parquet')
  expect(both.called?.[1]).toMatchObject({ csv: true, parquet: true })
  expect((await said('projection', 'totals', '--org', 'org_1', '--csv')).called?.[1]).toMatchObject({
    csv: true,
    json: false,
  })
  for (const wrong of [
    ['export', '--org', 'org_1'],
    ['totals'],
    ['totals', '--org', 'org_1', '--kind', 'day'],
    ['totals', '--org', 'org_1', '--csv', '--json'],
  ]) {
    expect(await said('projection', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
  expect(await said('projection', 'drop', 'sandbox:')).toMatchObject({ called: [], code: exitCodes.usage })
})

test('diff takes two generations or sandboxes, and explain takes one payout or one deal', async () => {
  expect((await said('projection', 'diff', 'g1', 'sandbox:s1')).called).toEqual([
    'projection diff',
    { a: 'g1', b: 'sandbox:s1', org: undefined, format: 'table', html: undefined },
  ])
  expect((await said('projection', 'diff', 'g1', 'g2', '--org', 'org_1', '--format', 'csv')).called).toMatchObject([
    'projection diff',
    { org: 'org_1', format: 'csv' },
  ])
  expect((await said('projection', 'diff', 'g1', 'g2', '--html', 'x.html')).called).toMatchObject([
    'projection diff',
    { format: 'table', html: 'x.html' },
  ])
  expect((await said('projection', 'diff', 'g1', 'g2', '--json')).called).toMatchObject([
    'projection diff',
    { format: 'ndjson' },
  ])
  expect((await said('projection', 'explain', 'payout_1', '--org', 'org_1')).called).toEqual([
    'projection explain',
    { org: 'org_1', id: 'payout_1', generation: undefined, json: false },
  ])
  expect(
    (await said('projection', 'explain', 'payout_1', '--org', 'org_1', '--generation', 'sandbox:s1', '--json')).called,
  ).toMatchObject(['projection explain', { generation: 'sandbox:s1', json: true }])
  expect((await said('projection', 'explain', 'deal_1', '--org', 'org_1')).called).toMatchObject([
    'projection explain',
    { org: 'org_1', id: 'deal_1' },
  ])
  for (const wrong of [
    ['diff', 'g1'],
    ['diff', 'g1', 'sandbox'.toUpperCase()],
    ['diff', 'g1', 'g2', '--format', 'xml'],
    ['diff', 'g1', 'g2', '--format', 'csv', '--json'],
    ['diff', 'g1', 'g2', '--html', 'x.html', '--json'],
    ['diff', 'g1', 'g2', '--html', 'x.html', '--format', 'csv'],
    ['explain', 'payout_1'],
    ['explain', 'deal_1'],
    ['explain', 'rep_1', '--org', 'org_1'],
  ]) {
    expect(await said('projection', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})

test('rules check takes a module and a file of records', async () => {
  expect((await said('projection', 'rules', 'check', 'mine.ts')).called).toEqual([
    'projection rules check',
    { module: 'mine.ts', records: undefined, json: false },
  ])
  expect(
    (await said('projection', 'rules', 'check', 'mine.ts', '--records', 'log.ndjson', '--json')).called,
  ).toMatchObject(['projection rules check', { records: 'log.ndjson', json: true }])
  expect(await said('projection', 'rules', 'check')).toMatchObject({ called: [], code: exitCodes.usage })
  expect((await said('projection', 'rules', 'check', '--help')).out).toContain('3 it is not deterministic')
})

test('the help of the commands for analysts shows their options and exit codes', async () => {
  expect((await said('projection', 'replay', '--help')).out).toContain('--until-time <instant>')
  expect((await said('projection', 'diff', '--help')).out).toContain('3 something differs')
  expect((await said('projection', 'explain', '--help')).out).toContain('published position')
})

test('a close takes the positions of an earlier one, and none of parked records by a plain 0', async () => {
  const close = (...more: string[]) => said('close', '--org', 'org_1', '--period', 'period_1', '--out', 'd', ...more)
  const named = await close('--keys-until', '7', '--parked-until', 'events:0:5', '--parked-until', 'events:4:9')
  expect(named.called).toMatchObject([
    'close',
    {
      keysUntil: 7,
      parkedUntil: [
        { topic: 'events', partition: 0, offset: 5 },
        { topic: 'events', partition: 4, offset: 9 },
      ],
    },
  ])
  const none = await close('--parked-until', '0')
  expect(none.called).toMatchObject(['close', { parkedUntil: [] }])
  for (const wrong of [['all'], ['0:5'], ['events:0:5', '--parked-until', 'events:0:6']]) {
    expect(await close('--parked-until', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})
