import { expect, onTestFinished, test } from 'vitest'
import { checkRedis } from '../../../tools/doctor/check-redis.ts'
import { startRespServer } from '../../support/resp-server.ts'

test('the doctor asks Redis for a write that changes nothing', async () => {
  const asked: (readonly string[])[] = []
  const { url } = await startRespServer({ onTestFinished }, command => {
    asked.push(command)
    return '_\r\n'
  })
  expect(await checkRedis(url, 'p')).toBeUndefined()
  // Only an existing key is set.
  const script = "return redis.call('set', KEYS[1], '0', 'EX', '1', 'XX')"
  expect(asked).toEqual([['EVAL', script, '1', 'p-rate:doctor']])
})

test.each([
  ["-READONLY You can't write against a read only replica.\r\n", 'refuses with READONLY'],
  ["-NOPERM this user has no permissions to run the 'set' command\r\n", 'refuses with NOPERM'],
  ['', 'does not answer'],
])('the doctor says why a Redis would not count: %j', async (answer, why) => {
  const { url } = await startRespServer({ onTestFinished }, () => answer)
  expect(await checkRedis(url, 'p')).toBe(why)
})

test('the doctor says that a Redis that takes writes refuses the scripts with which the API counts', async () => {
  const { url } = await startRespServer({ onTestFinished }, ([name]) =>
    name === 'EVAL' ? "-NOPERM this user has no permissions to run the 'eval' command\r\n" : '_\r\n',
  )
  expect(await checkRedis(url, 'p')).toBe('refuses with NOPERM')
})

test('the doctor says that no Redis answers', async () => {
  expect(await checkRedis('redis://127.0.0.1:1', 'p')).toBe('does not answer')
})
