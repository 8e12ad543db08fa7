/** The standard output of commands, in front of a slow reader. */
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createOutput } from '../../tools/output.ts'

test('a write into a full output resolves when its reader has read; before that it is immediate', async () => {
  let read = (): void => undefined
  const stream = new Writable({
    highWaterMark: 4,
    write: (_chunk, _encoding, done) => {
      read = done
    },
  })
  const out = createOutput(stream)
  expect(out('abc')).toBe(undefined)
  let resolved = false
  const writing = out('def')?.then(() => {
    resolved = true
  })
  await new Promise(resolve => setImmediate(resolve))
  expect(resolved).toBe(false)
  read()
  await new Promise(resolve => setImmediate(resolve))
  read()
  await writing
  expect(resolved).toBe(true)
})
