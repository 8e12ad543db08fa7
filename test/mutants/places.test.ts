import { expect, test } from 'vitest'
import { placeOf, placesIn } from './places.ts'

const SOURCE = `import { a } from './a.ts'

/** One. */
export const one = (): number => {
  const inner = 1
  return inner
}

export class Many<Item> {
  readonly #items: Item[] = []

  /** Takes one. */
  async take(item: Item): Promise<void> {
    if (item === a) return
    this.#items.push(item)
  }
  get size(): number {
    return this.#items.length
  }
}

type Two = { readonly b: 2 }
`

test('a place is a declaration of a file, or a member of a class, and ends where the next one begins', () => {
  expect(placesIn(SOURCE).map(({ name }) => name)).toEqual([
    'one',
    'Many',
    'Many.#items',
    'Many.take',
    'Many.size',
    'Two',
  ])
  const texts = new Map(placesIn(SOURCE).map(({ name, from, to }) => [name, SOURCE.slice(from, to)]))
  expect(texts.get('one')).toMatch(/^export const one[\s\S]*return inner\n}\n\n$/)
  expect(texts.get('Many.take')).toMatch(/^ {2}async take[\s\S]*push\(item\)\n {2}}\n$/)
  expect(texts.get('Two')).toBe('type Two = { readonly b: 2 }\n')
})

test('a text is in the innermost place', () => {
  expect(
    ['return inner', 'push(item)', 'class Many', 'b: 2', "from './a.ts'"].map(text => placeOf(SOURCE, text)),
  ).toEqual(['one', 'Many.take', 'Many', 'Two', undefined])
})
