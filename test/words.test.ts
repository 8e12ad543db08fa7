/** The words of this project: one definition for each exported name, standard terms for names, plain sentences. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (path: string) => ({ path, text: readFileSync(join(root, path), 'utf8') })
const product = globSync('{schemas,projector,api,commands,services,demo,bench}/**/*.ts', { cwd: root }).map(read)
const everything = [
  ...product,
  ...globSync(['test/**/*.ts', '*.md', 'docs/**/*.md', 'test/*.md'], { cwd: root })
    .filter(path => path !== 'test/words.test.ts')
    .map(read),
]

/** Each match with its file and line. */
const find = (files: readonly { path: string; text: string }[], pattern: RegExp): string[] =>
  files.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map(({ 0: found, index }) => {
      const line = text.slice(0, index).split('\n').length
      return `${path}:${line}: ${found.trim()}`
    }),
  )

test('an exported name has one definition', () => {
  const definition = /^export (?:async )?(?:const|function\*?|class|type) (\w+)/gm
  const files = Map.groupBy(
    product.flatMap(({ path, text }) => [...text.matchAll(definition)].map(([, name]) => ({ name, path }))),
    ({ name }) => name,
  )
  const paths = [...files].map(([name, found]) => [name, [...new Set(found.map(({ path }) => path))]] as const)
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
  ['hurry', 'the effect: endDelay'],
  ['judge', 'assess'],
])('no name of the product has the word %s; the term is %s', ([word]) => {
  const inName = new RegExp(`(?:\\b|_)${word}(?=[A-Z_\\d]|s?\\b)`, 'g')
  const withoutText = product.map(({ path, text }) => ({ path, text: text.replace(NOT_CODE, blank) }))
  expect(find(withoutText, inName)).toEqual([])
})
const NOT_CODE = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g
const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

test.for([
  /(?<=^|[.:;] |\/\*\* |\/\/ |\* )(?:What|Whoever|Whatever|That which|Of what) (?!is |are |does |do |happens )/gm,
  /\b(?:so many|such that|how-many\w*|let go of|it is that|that there (?:is|are)|just then|by itself)\b/g,
])('no comment, message or page has a sentence that must be read twice: %s', pattern => {
  expect(find(everything, pattern)).toEqual([])
})
