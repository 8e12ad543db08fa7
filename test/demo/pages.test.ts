/** The pages for people say what the code says. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parkCodes, refusals } from '../../schemas/errors.ts'
import { eventSchemas } from '../../schemas/events.ts'
import { apiSettings, projectorSettings, topicSettings } from '../../schemas/settings.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (page: string) => readFileSync(join(root, page), 'utf8')
const readme = read('README.md')
const publishing = read('docs/publishing.md')

test('docs/publishing.md has every code of a refused record, in the order in which they count', () => {
  const table = publishing.slice(publishing.indexOf('| code | the record |'))
  const rows = table.split('\n').filter(line => line.startsWith('| `'))
  const codes = rows.flatMap(row => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, code]) => code))
  expect(codes).toEqual([...parkCodes])
})

test('docs/publishing.md has every type of event', () => {
  for (const type of Object.values(eventSchemas).flatMap(Object.keys)) expect(publishing).toContain(`| \`${type}\` |`)
})

test('README.md says where a record and a request can leave, with every code', () => {
  for (const code of parkCodes) expect(readme).toContain(code)
  for (const [code, status] of Object.entries(refusals)) expect(readme).toContain(`${status} ${code}`)
})

test('docs/operating.md lists every setting', () => {
  const settings = Object.keys({ ...topicSettings, ...projectorSettings, ...apiSettings })
  const listed = [...read('docs/operating.md').matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, name]) => name)
  expect(settings.filter(name => !listed.includes(name))).toEqual([])
})

describe.for(['README.md', 'CONTRIBUTING.md', 'docs/architecture.md', 'docs/publishing.md', 'test/README.md'])(
  '%s',
  page => {
    const text = read(page)
    test.for([...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, target]) => target ?? ''))(
      'points to %s, which is there',
      target => {
        expect(existsSync(join(root, dirname(page), target))).toBe(true)
      },
    )
    test('names files that are there', () => {
      const files = [
        ...text.matchAll(/`((?:schemas|projector|api|commands|demo|services|docs|test)\/[\w./-]+\.(?:ts|md))`/g),
      ]
      expect(files.length).toBeGreaterThan(0)
      for (const [, file] of files) expect(existsSync(join(root, file ?? ''))).toBe(true)
    })
  },
)
