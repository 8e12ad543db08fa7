import { expect, test } from 'vitest'
import { exitCodes } from '../../../commands/failures.ts'
import { said } from '../../support/command-line.ts'

test('an archive needs a directory; verify takes one, and options behind it', async () => {
  expect((await said('archive', '--to', 'a', '--to', 'b', '--follow')).called).toEqual([
    'archive',
    { to: ['a', 'b'], follow: true, json: false },
  ])
  expect(await said('archive')).toMatchObject({ called: [], code: exitCodes.usage })
  expect((await said('archive', 'verify', 'a', '--json')).called).toEqual([
    'verifyArchive',
    { directory: 'a', json: true },
  ])
  expect((await said('restore', '--from', 'a')).called).toEqual(['restore', { from: 'a', json: false }])
  expect((await said('projection', 'adopt', '--archive', 'a')).called).toEqual(['adopt', { archive: 'a', json: false }])
  expect((await said('projection', 'adopt')).called).toEqual(['adopt', { archive: undefined, json: false }])
  expect(await said('restore')).toMatchObject({ called: [], code: exitCodes.usage })
})
