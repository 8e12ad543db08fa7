import { expect, test } from 'vitest'
import { exitCodes } from '../../commands/failures.ts'
import { runProgram } from '../../commands/program.ts'

/** Runs a command line. Returns its action with options, its output and its exit code. */
const said = async (...args: string[]) => {
  const called: unknown[] = []
  const text = { out: '', error: '' }
  const action = (name: string) => async (options: unknown) => {
    called.push(name, options)
    return exitCodes.notAll
  }
  const code = await runProgram(
    args,
    {
      list: action('list'),
      count: action('count'),
      show: action('show'),
      again: action('again'),
      createKey: action('createKey'),
      listKeys: action('listKeys'),
      revokeKey: action('revokeKey'),
      listGenerations: action('listGenerations'),
      status: action('status'),
      rebuild: action('rebuild'),
      verify: action('verify'),
      swap: action('swap'),
      rollback: action('rollback'),
      adopt: action('adopt'),
      drop: action('drop'),
      exportOrganization: action('exportOrganization'),
      listSubjects: action('listSubjects'),
      reportSubject: action('reportSubject'),
      eraseSubject: action('eraseSubject'),
      showTotals: action('showTotals'),
      replay: action('replay'),
      diff: action('diff'),
      explain: action('explain'),
      listSandboxes: action('listSandboxes'),
      dropSandbox: action('dropSandbox'),
      validate: action('validate'),
      checkRules: action('checkRules'),
      doctor: action('doctor'),
      follow: action('follow'),
      reference: action('reference'),
      rotateKey: action('rotateKey'),
      upgradeKeys: action('upgradeKeys'),
    },
    { out: more => (text.out += more), error: more => (text.error += more) },
  )
  return { called, code, ...text }
}

test('an option that is missing has a default', async () => {
  expect(await said('parked', 'list')).toMatchObject({
    called: ['list', { filter: {}, order: 'oldest', limit: 50, json: false }],
    code: exitCodes.notAll,
  })
  expect((await said('parked', 'count')).called).toEqual(['count', { filter: {}, json: false }])
  expect((await said('parked', 'publish-again', '--all')).called).toEqual([
    'again',
    { positions: [], filter: {}, publish: false, force: false, waitSeconds: 60, json: false },
  ])
})

test('keys are created, listed and revoked with the given options', async () => {
  expect((await said('keys', 'create', '--org', 'org_1', '--name', 'Payroll Ä')).called).toEqual([
    'createKey',
    { org: 'org_1', name: 'Payroll Ä', permissions: ['read'], expiresAt: null, waitSeconds: 60, json: false },
  ])
  expect((await said('keys', 'create', '--org', 'org_1', '--name', '', '--no-read', '--json')).called).toEqual([
    'createKey',
    { org: 'org_1', name: '', permissions: [], expiresAt: null, waitSeconds: 60, json: true },
  ])
  const limited = ['--permission', 'payouts:read', '--permission', 'reps:read', '--expires-at', '2999-01-01T00:00:00Z']
  expect((await said('keys', 'create', '--org', 'org_1', '--name', 'x', ...limited)).called?.[1]).toMatchObject({
    permissions: ['payouts:read', 'reps:read'],
    expiresAt: '2999-01-01T00:00:00Z',
  })
  const rotated = await said('keys', 'rotate', '--org', 'org_1', '--id', 'key_1', '--name', 'y', '--json')
  expect(rotated.called).toEqual([
    'rotateKey',
    { org: 'org_1', id: 'key_1', name: 'y', expiresAt: null, waitSeconds: 60, json: true },
  ])
  expect((await said('projection', 'upgrade-keys', '--from', '7')).called).toEqual([
    'upgradeKeys',
    { from: 7, json: false },
  ])
  for (const wrong of [
    ['--permission', 'write'],
    ['--permission', 'reps:read', '--no-read'],
    ['--expires-at', 'tomorrow'],
  ]) {
    const refused = await said('keys', 'create', '--org', 'org_1', '--name', 'x', ...wrong)
    expect([refused.called, refused.code]).toEqual([[], exitCodes.usage])
  }
  expect((await said('keys', 'list', '--org', 'org_1', '--json')).called).toEqual([
    'listKeys',
    { org: 'org_1', json: true },
  ])
  expect((await said('keys', 'revoke', '--org', 'org_1', '--id', 'key_1', '--wait', '5')).called).toEqual([
    'revokeKey',
    { org: 'org_1', id: 'key_1', waitSeconds: 5 },
  ])
})

test('every option reaches its command', async () => {
  const filter = [
    '--code',
    'rep_unknown',
    'id_reused',
    '--org',
    'org_1',
    '--type',
    't',
    '--topic',
    'a.b',
    '--partition',
    '0',
  ]
  const meant = { code: ['rep_unknown', 'id_reused'], org: 'org_1', type: 't', topic: 'a.b', partition: 0 }
  expect((await said('parked', 'list', ...filter, '--newest', '--limit', '7', '--json')).called).toEqual([
    'list',
    { filter: meant, order: 'newest', limit: 7, json: true },
  ])
  expect((await said('parked', 'publish-again', ...filter, '--publish', '--force', '--wait', '5')).called).toEqual([
    'again',
    { positions: [], filter: meant, publish: true, force: true, waitSeconds: 5, json: false },
  ])
  const position = { topic: 'a.b', partition: 2, offset: 17 }
  expect((await said('parked', 'show', 'a.b:2:17', '--raw')).called).toEqual(['show', { position, as: 'raw' }])
  const { called } = await said('parked', 'publish-again', 'a.b:2:17', 'a.b:2:18', '--dry-run')
  expect(called[1]).toMatchObject({ positions: [position, { ...position, offset: 18 }], publish: false })
})

test.for([
  ['a key without an organization', ['keys', 'create', '--name', 'x']],
  ['a key without a name', ['keys', 'create', '--org', 'org_1']],
  ['a name that is too long', ['keys', 'create', '--org', 'org_1', '--name', 'x'.repeat(1_001)]],
  ['an invalid key id', ['keys', 'revoke', '--org', 'org_1', '--id', 'CANARY']],
  ['an unknown command', ['parked', 'remove']],
  ['no command', ['parked']],
  ['an unknown option', ['parked', 'list', '--hurry']],
  ['an invalid code', ['parked', 'list', '--code', 'CANARY']],
  ['an invalid organization', ['parked', 'count', '--org', 'acme']],
  ['a limit of 0', ['parked', 'list', '--limit', '0']],
  ['a limit over the maximum', ['parked', 'list', '--limit', '10001']],
  ['both orders', ['parked', 'list', '--newest', '--oldest']],
  ['a missing position', ['parked', 'show']],
  ['an invalid position', ['parked', 'show', 'a:b']],
  ['two output formats', ['parked', 'show', 'a:0:0', '--json', '--raw']],
  ['nothing to publish', ['parked', 'publish-again', '--publish']],
  ['a position and a filter', ['parked', 'publish-again', 'a:0:0', '--org', 'org_1']],
  ['all and a filter', ['parked', 'publish-again', '--all', '--org', 'org_1']],
  ['a dry run that publishes', ['parked', 'publish-again', '--all', '--publish', '--dry-run']],
] as const)('%s is a usage error, and nothing is done', async ([, args]) => {
  expect(await said(...args)).toMatchObject({ called: [], code: exitCodes.usage, out: '' })
})

test('help is not an error, needs no settings, and shows how to pass arguments through npm', async () => {
  const { code, out, called } = await said('parked', 'list', '--help')
  expect([code, called]).toEqual([exitCodes.done, []])
  expect(out).toContain('Usage: npm run parked -- list [options]')
  expect((await said('parked', '--help')).out).toContain('Exit codes: 0 done')
})

test('the commands for generations take their options, and no others', async () => {
  expect((await said('projection', 'list', '--json')).called).toEqual(['listGenerations', { json: true }])
  expect((await said('projection', 'status')).called).toEqual([
    'status',
    { generation: undefined, org: undefined, json: false },
  ])
  expect((await said('projection', 'rebuild')).called).toEqual(['rebuild', { maxRate: Infinity, json: false }])
  expect((await said('projection', 'rebuild', '--max-rate', '200')).called).toMatchObject(['rebuild', { maxRate: 200 }])
  expect((await said('projection', 'verify', 'g1', 'g2')).called).toEqual(['verify', { a: 'g1', b: 'g2', json: false }])
  expect((await said('projection', 'swap', 'g2')).called).toEqual([
    'swap',
    { generation: 'g2', force: undefined, json: false },
  ])
  expect((await said('projection', 'swap', 'g2', '--force', 'why')).called).toMatchObject(['swap', { force: 'why' }])
  expect((await said('projection', 'rollback')).called).toEqual(['rollback', { force: undefined, json: false }])
  expect((await said('projection', 'drop', 'g1')).called).toEqual(['drop', { generation: 'g1', json: false }])
  expect((await said('projection', 'drop', 'g1', '--json')).called).toEqual(['drop', { generation: 'g1', json: true }])
  expect((await said('projection', 'parked', 'count')).called).toEqual(['count', { filter: {}, json: false }])
  for (const wrong of [['drop'], ['drop', '../x'], ['verify', 'g1'], ['rebuild', '--max-rate', '0'], ['swap', 'G1']]) {
    expect(await said('projection', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})

test('a replay takes offsets or a time, for all organizations or one', async () => {
  const nothing = {
    name: undefined,
    until: undefined,
    org: undefined,
    rules: undefined,
    maxRate: Infinity,
    json: false,
  }
  expect((await said('projection', 'replay')).called).toEqual(['replay', nothing])
  expect(
    (await said('projection', 'replay', '--until-offset', '0:5', '--until-offset', '2:7', '--name', 'mine')).called,
  ).toMatchObject([
    'replay',
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
    'replay',
    { org: 'org_1', until: { offsets: [{ partition: undefined, offset: 5 }] }, rules: './a.ts' },
  ])
  expect(
    (await said('projection', 'replay', '--until-time', '1970-01-01T00:00:01Z', '--max-rate', '5', '--json')).called,
  ).toMatchObject(['replay', { until: { time: 1_000 }, maxRate: 5, json: true }])
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
  expect((await said('projection', 'list', '--sandbox', '--json')).called).toEqual(['listSandboxes', { json: true }])
  expect((await said('projection', 'drop', 'sandbox:s1')).called).toEqual(['dropSandbox', { name: 's1', json: false }])
  expect((await said('projection', 'export', '--org', 'org_1', '--out', 'x', '--as-of', 'rep_1.2')).called).toEqual([
    'exportOrganization',
    {
      org: 'org_1',
      out: 'x',
      asOf: { kind: 'change', name: { kind: 'reps', id: 'rep_1', ordinal: 2 } },
      parquet: false,
      open: false,
      json: false,
    },
  ])
  for (const wrong of [['export', '--org', 'org_1'], ['totals'], ['totals', '--org', 'org_1', '--kind', 'day']]) {
    expect(await said('projection', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
  expect(await said('projection', 'drop', 'sandbox:')).toMatchObject({ called: [], code: exitCodes.usage })
})

test('subjects are listed, reported and erased by organization and rep', async () => {
  expect((await said('subjects', 'list', 'org_1', '--json')).called).toEqual([
    'listSubjects',
    { org: 'org_1', json: true },
  ])
  expect((await said('subjects', 'report', 'org_1', 'rep_1')).called).toEqual([
    'reportSubject',
    { org: 'org_1', rep: 'rep_1', json: false },
  ])
  const erase = { org: 'org_1', rep: 'rep_1', shared: false, json: false }
  expect((await said('subjects', 'erase', 'org_1', 'rep_1')).called).toEqual([
    'eraseSubject',
    { ...erase, confirm: undefined },
  ])
  expect((await said('subjects', 'erase', 'org_1', 'rep_1', '--confirm', 'rep_1')).called).toEqual([
    'eraseSubject',
    { ...erase, confirm: 'rep_1' },
  ])
  for (const wrong of [['list'], ['report', 'org_1'], ['erase', 'rep_1', 'org_1'], ['erase', 'org_1']]) {
    expect(await said('subjects', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})

test('diff takes two generations or sandboxes, and explain takes one payout', async () => {
  expect((await said('projection', 'diff', 'g1', 'sandbox:s1')).called).toEqual([
    'diff',
    { a: 'g1', b: 'sandbox:s1', org: undefined, format: 'table', html: undefined },
  ])
  expect((await said('projection', 'diff', 'g1', 'g2', '--org', 'org_1', '--format', 'csv')).called).toMatchObject([
    'diff',
    { org: 'org_1', format: 'csv' },
  ])
  expect((await said('projection', 'diff', 'g1', 'g2', '--html', 'x.html')).called).toMatchObject([
    'diff',
    { format: 'table', html: 'x.html' },
  ])
  expect((await said('projection', 'diff', 'g1', 'g2', '--json')).called).toMatchObject(['diff', { format: 'ndjson' }])
  expect((await said('projection', 'explain', 'payout_1', '--org', 'org_1')).called).toEqual([
    'explain',
    { org: 'org_1', payout: 'payout_1', generation: undefined, json: false },
  ])
  expect(
    (await said('projection', 'explain', 'payout_1', '--org', 'org_1', '--generation', 'sandbox:s1', '--json')).called,
  ).toMatchObject(['explain', { generation: 'sandbox:s1', json: true }])
  for (const wrong of [
    ['diff', 'g1'],
    ['diff', 'g1', 'sandbox'.toUpperCase()],
    ['diff', 'g1', 'g2', '--format', 'xml'],
    ['diff', 'g1', 'g2', '--format', 'csv', '--json'],
    ['diff', 'g1', 'g2', '--html', 'x.html', '--json'],
    ['diff', 'g1', 'g2', '--html', 'x.html', '--format', 'csv'],
    ['explain', 'payout_1'],
    ['explain', 'rep_1', '--org', 'org_1'],
  ]) {
    expect(await said('projection', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})

test('rules check takes a module and a file of records', async () => {
  expect((await said('projection', 'rules', 'check', 'mine.ts')).called).toEqual([
    'checkRules',
    { module: 'mine.ts', records: undefined, json: false },
  ])
  expect(
    (await said('projection', 'rules', 'check', 'mine.ts', '--records', 'log.ndjson', '--json')).called,
  ).toMatchObject(['checkRules', { records: 'log.ndjson', json: true }])
  expect(await said('projection', 'rules', 'check')).toMatchObject({ called: [], code: exitCodes.usage })
  expect((await said('projection', 'rules', 'check', '--help')).out).toContain('3 it is not deterministic')
})

test('the help of the commands for analysts shows their options and exit codes', async () => {
  expect((await said('projection', 'replay', '--help')).out).toContain('--until-time <instant>')
  expect((await said('projection', 'diff', '--help')).out).toContain('3 something differs')
  expect((await said('projection', 'explain', '--help')).out).toContain('published position')
})
