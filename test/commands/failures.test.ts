/** The messages with which commands end. */
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { CommandError, messageOf } from '../../commands/failures.ts'

test.runIf(existsSync('/dev/full'))('an error of an open file has its code, and is no defect', async () => {
  await using full = await open('/dev/full', 'w')
  const error = await full.writeFile('text').catch((caught: unknown) => caught)
  expect(messageOf(error)).toBe('a file cannot be used: ENOSPC')
})

test('an error of a connection is not taken for one of a file', () => {
  const error = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
  expect(messageOf(error)).toBe('a defect: Error')
})

test('the error of a cleanup does not hide the error before it', async () => {
  const failing = async (): Promise<void> => {
    await using stack = new AsyncDisposableStack()
    stack.defer(() => {
      throw new CommandError('the lock cannot be removed')
    })
    throw new CommandError('the files do not add up')
  }
  const error = await failing().catch((caught: unknown) => caught)
  expect(messageOf(error)).toBe('the files do not add up; after that the lock cannot be removed')
})
