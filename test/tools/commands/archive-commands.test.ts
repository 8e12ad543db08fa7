import { expect, test } from 'vitest'
import { exitCodes } from '../../../tools/failures.ts'
import { said } from '../../support/command-line.ts'

test('an archive needs a directory; verify takes one, and options behind it', async () => {
  expect((await said('archive', '--to', 'a', '--to', 'b', '--follow')).called).toEqual([
    'archive',
    { to: ['a', 'b'], follow: true, maxRate: Number.POSITIVE_INFINITY, json: false },
  ])
  expect(await said('archive')).toMatchObject({ called: [], code: exitCodes.usage })
  expect((await said('archive', 'verify', 'a', '--json')).called).toEqual([
    'archive verify',
    { address: 'a', maxRate: Number.POSITIVE_INFINITY, json: true },
  ])
  expect((await said('restore', '--from', 'a')).called).toEqual([
    'restore',
    { from: 'a', maxRate: Number.POSITIVE_INFINITY, json: false },
  ])
  expect((await said('projection', 'adopt', '--archive', 'a')).called).toEqual([
    'projection adopt',
    { archive: 'a', json: false },
  ])
  expect((await said('projection', 'adopt')).called).toEqual(['projection adopt', { archive: undefined, json: false }])
  expect(await said('restore')).toMatchObject({ called: [], code: exitCodes.usage })
})

test('archive verify, restore, adopt and replay take several public keys; adopt and replay only beside an archive', async () => {
  const keys = ['--key', 'a', '--key', 'b']
  for (const line of [
    ['archive', 'verify', 'a'],
    ['restore', '--from', 'a'],
    ['restore', '--from', 'a', '--redact', 'org_1', 'rep_1', '--changes', 'b'],
    ['projection', 'adopt', '--archive', 'a'],
    ['projection', 'replay', '--from-archive', 'a'],
  ]) {
    expect((await said(...line, ...keys)).called[1]).toMatchObject({ keys: ['a', 'b'] })
  }
  for (const command of ['adopt', 'replay']) {
    expect(await said('projection', command, ...keys)).toMatchObject({ called: [], code: exitCodes.usage })
  }
})

test('archive, its verify, and restore take a limit of records a second', async () => {
  const limit = ['--max-rate', '20000']
  for (const line of [
    ['archive', '--to', 'a'],
    ['archive', 'verify', 'a'],
    ['restore', '--from', 'a'],
    ['restore', '--from', 'a', '--redact', 'org_1', 'rep_1', '--changes', 'b'],
  ]) {
    expect((await said(...line, ...limit)).called[1]).toMatchObject({ maxRate: 20_000 })
  }
  expect(await said('restore', '--from', 'a', '--max-rate', '0')).toMatchObject({ called: [], code: exitCodes.usage })
})
