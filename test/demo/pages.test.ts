import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parkCodes, refusals } from '../../schemas/errors.ts'
import { eventSchemas } from '../../schemas/events.ts'
import { apiSettings, projectorSettings, topicSettings } from '../../schemas/settings.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (page: string) => readFileSync(join(root, page), 'utf8')
const readme = read('README.md')
const publishing = read('docs/publishing.md')
const reading = read('docs/reading.md')

test('docs/publishing.md has every park code, in the order of the checks', () => {
  const table = publishing.slice(publishing.indexOf('| code | the record |'))
  const rows = table.split('\n').filter(line => line.startsWith('| `'))
  const codes = rows.flatMap(row => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, code]) => code))
  expect(codes).toEqual([...parkCodes])
})

test('docs/publishing.md has every type of event', () => {
  for (const type of Object.values(eventSchemas).flatMap(Object.keys)) expect(publishing).toContain(`| \`${type}\` |`)
})

test('docs/reading.md has every refusal with its status', () => {
  const listed = [...reading.matchAll(/^\| (\d{3}) `(\w+)` \|/gm)].map(([, status, code]) => `${status} ${code}`)
  expect(listed).toEqual(Object.entries(refusals).map(([code, status]) => `${status} ${code}`))
})

test('README.md links to the tables of park codes and refusals', () => {
  expect(readme).toContain('](docs/publishing.md#when-a-record-is-refused)')
  expect(publishing).toContain('\n## When a record is refused\n')
  expect(readme).toContain('](docs/reading.md#refusals)')
  expect(reading).toContain('\n## Refusals\n')
})

test('docs/operating.md lists every setting', () => {
  const settings = Object.keys({ ...topicSettings, ...projectorSettings, ...apiSettings })
  const listed = [...read('docs/operating.md').matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, name]) => name)
  expect(settings.filter(name => !listed.includes(name))).toEqual([])
})

const pages = globSync(['*.md', 'docs/**/*.md', 'test/*.md'], { cwd: root })

test('there are pages to check', () => {
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/operating.md', 'docs/decisions/README.md']))
})

describe.for(pages)('%s', page => {
  const text = read(page)
  const missing = (paths: readonly string[]): string[] => paths.filter(path => !existsSync(path))

  test('links to pages that exist', () => {
    const targets = [...text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target)
    const ours = targets.filter(target => !/^https?:/.test(target))
    expect(missing(ours.map(target => join(root, dirname(page), target)))).toEqual([])
  })

  test('names files that exist', () => {
    const named = /`((?:schemas|projector|api|commands|demo|services|bench|docs|test)\/[\w./-]+\.(?:ts|md))`/g
    expect(missing([...text.matchAll(named)].map(([, file = '']) => join(root, file)))).toEqual([])
  })
})

test('docs/decisions/README.md links to each decision once', () => {
  const index = [...read('docs/decisions/README.md').matchAll(/\]\((\d{4}-[^)]+)\)/g)].map(([, target]) => target)
  const decisions = globSync('docs/decisions/[0-9]*.md', { cwd: root }).map(path => basename(path))
  expect(index.sort()).toEqual(decisions.sort())
})
