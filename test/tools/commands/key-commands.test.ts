import { expect, test } from 'vitest'
import { exitCodes } from '../../../tools/failures.ts'
import { said } from '../../support/command-line.ts'

test('keys are created, listed and revoked with the given options', async () => {
  expect((await said('keys', 'create', '--org', 'org_1', '--name', 'Payroll Ä')).called).toEqual([
    'keys create',
    {
      org: 'org_1',
      name: 'Payroll Ä',
      permissions: ['read'],
      expiresAt: null,
      networks: null,
      waitSeconds: 60,
      json: false,
    },
  ])
  expect((await said('keys', 'create', '--org', 'org_1', '--name', '', '--no-read', '--json')).called).toEqual([
    'keys create',
    { org: 'org_1', name: '', permissions: [], expiresAt: null, networks: null, waitSeconds: 60, json: true },
  ])
  const limited = ['--permission', 'payouts:read', '--permission', 'reps:read', '--expires-at', '2999-01-01T00:00:00Z']
  expect((await said('keys', 'create', '--org', 'org_1', '--name', 'x', ...limited)).called?.[1]).toMatchObject({
    permissions: ['payouts:read', 'reps:read'],
    expiresAt: '2999-01-01T00:00:00Z',
  })
  const networks = ['203.0.113.0/24', '2001:db8::/32']
  const within = networks.flatMap(network => ['--network', network])
  for (const command of [
    ['create', '--name', 'x'],
    ['rotate', '--id', 'key_1'],
  ]) {
    expect((await said('keys', ...command, '--org', 'org_1', ...within)).called?.[1]).toMatchObject({ networks })
  }
  const rotated = await said('keys', 'rotate', '--org', 'org_1', '--id', 'key_1', '--name', 'y', '--json')
  expect(rotated.called).toEqual([
    'keys rotate',
    { org: 'org_1', id: 'key_1', name: 'y', expiresAt: null, networks: undefined, waitSeconds: 60, json: true },
  ])
  expect((await said('projection', 'upgrade-keys', '--from', '7')).called).toEqual([
    'projection upgrade-keys',
    { from: 7, json: false },
  ])
  expect((await said('projection', 'upgrade-keys', '--from', '9007199254740991')).called?.[1]).toMatchObject({
    from: Number.MAX_SAFE_INTEGER,
  })
  for (const wrong of ['9007199254740992', '9007199254740993', '1e3', '-1']) {
    const refused = await said('projection', 'upgrade-keys', '--from', wrong)
    expect([refused.called, refused.code]).toEqual([[], exitCodes.usage])
  }
  for (const wrong of [
    ['--permission', 'write'],
    ['--permission', 'reps:read', '--no-read'],
    ['--expires-at', 'tomorrow'],
    ['--network', '203.0.113.7'],
    ['--network', '203.0.113.0/33'],
    ['--network', 'office'],
    Array.from({ length: 21 }, () => ['--network', '203.0.113.0/24']).flat(),
  ]) {
    const refused = await said('keys', 'create', '--org', 'org_1', '--name', 'x', ...wrong)
    expect([refused.called, refused.code]).toEqual([[], exitCodes.usage])
  }
  expect((await said('keys', 'list', '--org', 'org_1', '--json')).called).toEqual([
    'keys list',
    { org: 'org_1', json: true },
  ])
  expect((await said('keys', 'revoke', '--org', 'org_1', '--id', 'key_1', '--wait', '5')).called).toEqual([
    'keys revoke',
    { org: 'org_1', id: 'key_1', waitSeconds: 5, json: false },
  ])
  expect((await said('keys', 'revoke', '--org', 'org_1', '--id', 'key_1', '--json')).called?.[1]).toMatchObject({
    json: true,
  })
})

test('subjects are listed, reported and erased by organization and rep', async () => {
  expect((await said('subjects', 'list', 'org_1', '--json')).called).toEqual([
    'subjects list',
    { org: 'org_1', json: true },
  ])
  expect((await said('subjects', 'report', 'org_1', 'rep_1')).called).toEqual([
    'subjects report',
    { org: 'org_1', rep: 'rep_1', json: false },
  ])
  const erase = { org: 'org_1', rep: 'rep_1', shared: false, json: false }
  expect((await said('subjects', 'erase', 'org_1', 'rep_1')).called).toEqual([
    'subjects erase',
    { ...erase, confirm: undefined },
  ])
  expect((await said('subjects', 'erase', 'org_1', 'rep_1', '--confirm', 'rep_1')).called).toEqual([
    'subjects erase',
    { ...erase, confirm: 'rep_1' },
  ])
  for (const wrong of [['list'], ['report', 'org_1'], ['erase', 'rep_1', 'org_1'], ['erase', 'org_1']]) {
    expect(await said('subjects', ...wrong)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})
