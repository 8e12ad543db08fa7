/** The words of this project: one definition for each exported name, standard terms for names, plain sentences. */
import { expect, test } from 'vitest'
import { files, find, sourceOf, sources, within } from './support/sources.ts'

const product = within(
  'schemas',
  'core',
  'projector',
  'api',
  'tools',
  'services',
  'demo',
  'bench',
  'explorer',
  'client/mcp',
)
const pages = files.filter(path => path.endsWith('.md')).map(sourceOf)
const everything = [...sources.filter(({ path }) => path !== 'test/words.test.ts'), ...pages]

test('an exported name has one definition', () => {
  const definition = /^export (?:async )?(?:const|function\*?|class|type) (\w+)/gm
  const definitions = Map.groupBy(
    product.flatMap(({ path, spoken }) => [...spoken.matchAll(definition)].map(([, name]) => ({ name, path }))),
    ({ name }) => name,
  )
  const paths = [...definitions].map(([name, found]) => [name, [...new Set(found.map(({ path }) => path))]] as const)
  expect(paths.length).toBeGreaterThan(500)
  expect(paths.filter(([, all]) => all.length > 1)).toEqual([])
})

/** Words of a private language. The glossary of the README and docs/architecture.md have the words in their place. */
test.for<[word: string, term: string]>([
  ['place', 'index, kind, ref, sortValue, offset, location: the one that is meant'],
  ['patience', 'retryOptions'],
  ['gather', 'batch'],
  ['slots', 'semaphore'],
  ['tampering', 'testHooks'],
  ['crowd', 'connections, load'],
  ['hurry', 'the effect: shortened'],
  ['judge', 'assess'],
])('no name of the product has the word %s; the term is %s', ([word]) => {
  const capitals = word.toUpperCase()
  const inName = new RegExp(`(?:\\b|_)(?:${word}(?=[A-Z_\\d]|s?\\b)|${capitals}(?=[_\\d]|S?\\b))`, 'g')
  expect(find(product, 'code', inName)).toEqual([])
})

test.for([
  /(?<=^|[.:;] |\/\*\* |\/\/ |\* )(?:What|Whoever|Whatever|That which|Of what) (?!is |are |does |do |happens )/gm,
  /\b(?:so many|such that|how-many\w*|let go of|it is that|that there (?:is|are)|just then|by itself)\b/g,
])('no comment, message or page has a sentence that must be read twice: %s', pattern => {
  expect(find(everything, 'text', pattern)).toEqual([])
})
