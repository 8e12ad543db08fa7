import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mutants } from './mutants.ts'

const root = join(import.meta.dirname, '..', '..')

test('there are at least 24 planted bugs with different names', () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
  expect(mutants.length).toBeGreaterThanOrEqual(24)
})

test.each(mutants)('can still be planted: $name', async ({ file, find, replace }) => {
  const text = await readFile(join(root, file), 'utf8')
  expect(text.split(find)).toHaveLength(2)
  expect(replace).not.toBe(find)
})
