import { expect, test } from 'vitest'
import { exitCodes } from '../../tools/failures.ts'
import { said, saidIn } from '../support/command-line.ts'

test('an option that is missing has a default', async () => {
  expect(await said('parked', 'list')).toMatchObject({
    called: ['parked list', { filter: {}, order: 'oldest', limit: 50, json: false }],
    code: exitCodes.notAll,
  })
  expect((await said('parked', 'count')).called).toEqual(['parked count', { filter: {}, json: false }])
  expect((await said('parked', 'publish-again', '--all')).called).toEqual([
    'parked publish-again',
    { positions: [], filter: {}, publish: false, force: false, waitSeconds: 60, json: false },
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
  expect(
    (await said('parked', 'list', ...filter, '--newest', '--after', 'a.b:2:17', '--limit', '7', '--json')).called,
  ).toEqual([
    'parked list',
    { filter: meant, order: 'newest', after: { topic: 'a.b', partition: 2, offset: 17 }, limit: 7, json: true },
  ])
  expect((await said('parked', 'publish-again', ...filter, '--publish', '--force', '--wait', '5')).called).toEqual([
    'parked publish-again',
    { positions: [], filter: meant, publish: true, force: true, waitSeconds: 5, json: false },
  ])
  const position = { topic: 'a.b', partition: 2, offset: 17 }
  expect((await said('parked', 'show', 'a.b:2:17', '--raw')).called).toEqual(['parked show', { position, as: 'raw' }])
  expect((await said('parked', 'show', 'a.b', '2', '17', '--raw')).called).toEqual([
    'parked show',
    { position, as: 'raw' },
  ])
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
  ['an invalid position in three words', ['parked', 'show', 'a', '0', 'b']],
  ['two words of a position', ['parked', 'show', 'a', '0']],
  ['three words, of which one is a position', ['parked', 'show', 'a:0:1', '0', '1']],
  ['two positions', ['parked', 'show', 'a:0:1', 'a:0:2']],
  ['two output formats', ['parked', 'show', 'a:0:0', '--json', '--raw']],
  ['nothing to publish', ['parked', 'publish-again', '--publish']],
  ['a position and a filter', ['parked', 'publish-again', 'a:0:0', '--org', 'org_1']],
  ['all and a filter', ['parked', 'publish-again', '--all', '--org', 'org_1']],
  ['a dry run that publishes', ['parked', 'publish-again', '--all', '--publish', '--dry-run']],
] as const)('%s is a usage error, and nothing is done', async ([, args]) => {
  expect(await said(...args)).toMatchObject({ called: [], code: exitCodes.usage, out: '' })
})

test('help is not an error and needs no settings', async () => {
  const { code, out, called } = await said('parked', 'list', '--help')
  expect([code, called]).toEqual([exitCodes.done, []])
  expect(out).toContain('Usage: commission parked list [options]')
  expect((await said('parked', '--help')).out).toContain('Exit codes: 0 done')
})

test('the commands for generations take their options, and no others', async () => {
  expect((await said('projection', 'list', '--json')).called).toEqual([
    'projection list',
    { sandbox: false, json: true },
  ])
  expect((await said('projection', 'status')).called).toEqual([
    'projection status',
    { generation: undefined, org: undefined, json: false },
  ])
  expect((await said('projection', 'rebuild')).called).toEqual([
    'projection rebuild',
    { maxRate: Infinity, unlessSpare: false, json: false },
  ])
  expect((await said('projection', 'rebuild', '--max-rate', '200')).called).toMatchObject([
    'projection rebuild',
    { maxRate: 200 },
  ])
  expect((await said('projection', 'verify', 'g1', 'g2')).called).toEqual([
    'projection verify',
    { a: 'g1', b: 'g2', org: undefined, json: false },
  ])
  expect((await said('projection', 'verify', 'g1', 'g2', '--org', 'org_1')).called).toMatchObject([
    'projection verify',
    { org: 'org_1' },
  ])
  expect((await said('projection', 'swap', 'g2')).called).toEqual([
    'projection swap',
    { generation: 'g2', force: undefined, json: false },
  ])
  expect((await said('projection', 'swap', 'g2', '--force', 'why')).called).toMatchObject([
    'projection swap',
    { force: 'why' },
  ])
  expect((await said('projection', 'rollback')).called).toEqual([
    'projection rollback',
    { force: undefined, json: false },
  ])
  expect((await said('projection', 'drop', 'g1')).called).toEqual([
    'projection drop',
    { generation: 'g1', json: false },
  ])
  expect((await said('projection', 'drop', 'g1', '--json')).called).toEqual([
    'projection drop',
    { generation: 'g1', json: true },
  ])
  expect((await said('projection', 'parked', 'count')).called).toEqual([
    'projection parked count',
    { filter: {}, json: false },
  ])
  const rewound = await said('projection', 'rewind', '--snapshot-start', '2026-02-03T05:05:00.5+01:00', '--json')
  const snapshotStart = Date.parse('2026-02-03T04:05:00.500Z')
  expect(rewound.called).toEqual(['projection rewind', { snapshotStart, json: true }])
  for (const wrong of [
    ['rewind'],
    ['rewind', '--snapshot-start', 'yesterday'],
    ['drop'],
    ['drop', '../x'],
    ['verify', 'g1'],
    ['rebuild', '--max-rate', '0'],
    ['swap', 'G1'],
  ]) {
    expect(await said('projection', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})

test('help has the commands in groups by task', async () => {
  const { out, code } = await said('--help')
  expect(code).toBe(exitCodes.done)
  const titles = [...out.matchAll(/^(\S.*):$/gm)].map(([, title]) => title)
  expect(titles).toEqual([
    'Options',
    'Start and check an installation',
    'Publish',
    'Rebuild and analyse',
    'Keep and forget',
    'Shell',
    'Commands',
  ])
})

test('a misspelt command names the near one', async () => {
  expect(await said('parkd')).toMatchObject({
    code: exitCodes.usage,
    error: expect.stringContaining('Did you mean parked?'),
  })
  expect((await said('projection', 'rebiuld')).error).toContain('Did you mean rebuild?')
  expect((await said('parked', 'list', '--limt', '1')).error).toContain('Did you mean --limit?')
})

test('--version tells the version', async () => {
  expect(await said('--version')).toMatchObject({ code: exitCodes.done, out: '1.2.3\n' })
})

test('help fits a narrow terminal, and stays as it is without one', async () => {
  for (const args of [['--help'], ['projection', 'diff', '--help'], ['archive', '--help'], ['keys', '--help']]) {
    const { out } = await saidIn(80, ...args)
    const wide = out.split('\n').filter(line => line.length > 80 && line.trim().includes(' '))
    expect(wide, args.join(' ')).toEqual([])
  }
  expect((await said('projection', 'diff', '--help')).out).toContain(
    'replay\ntwice up to the same offsets, with and without --rules.',
  )
})

test('keys that are made without a permission may read everything', async () => {
  expect((await said('keys', 'create', '--org', 'org_1', '--name', 'x')).called[1]).toMatchObject({
    permissions: ['read'],
  })
})
