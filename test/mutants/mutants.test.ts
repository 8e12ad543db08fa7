import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mutants } from './mutants.ts'
import { placeOf, plant, readPlaces } from './places.ts'

const root = join(import.meta.dirname, '..', '..')
const places = readPlaces(root)

test('there are at least 24 planted bugs with different names', () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
  expect(mutants.length).toBeGreaterThanOrEqual(24)
})

test.each(mutants)('can still be planted: $name', mutant => {
  const { before, after } = plant(mutant, places, root)
  expect(after).not.toBe(before)
})

test('each bug hangs on a named place, and names a file only where that is needed', () => {
  const wrong = mutants.flatMap(({ name, file, inside, find }) => {
    if (file === undefined || !file.endsWith('.ts')) return []
    if (inside !== undefined) return places.get(inside)?.length === 1 ? [`${name}: file is not needed`] : []
    const place = placeOf(readFileSync(join(root, file), 'utf8'), find)
    return [`${name}: inside: '${place}' in place of file`]
  })
  expect(wrong).toEqual([])
})
