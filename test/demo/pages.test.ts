import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { apiSettings, archiveS3Settings, projectorSettings, topicSettings } from '../../core/runtime/settings.ts'
import { parkCodes, refusals } from '../../schemas/errors.ts'
import { eventExamples } from '../../schemas/reference/examples.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (page: string) => readFileSync(join(root, page), 'utf8')
const publishing = read('docs/publishing.md')

test('docs/publishing.md has the whole data of a calculated payout', () => {
  const blocks = [...publishing.matchAll(/```json\n(\{\n.+?)```/gs)].map(([, json = '']) => JSON.parse(json))
  expect(blocks).toEqual([eventExamples['commission.payout.calculated.v1']])
})

test('docs/errors.md has a heading for each code: refusals, then park codes in the order of the checks', () => {
  const codes = [...read('docs/errors.md').matchAll(/^### `(\w+)`$/gm)].map(([, code]) => code)
  expect(codes).toEqual([...Object.keys(refusals), ...parkCodes])
})

test('docs/settings.md lists every setting', () => {
  const all = Object.entries({ ...topicSettings, ...projectorSettings, ...apiSettings, ...archiveS3Settings })
  const settings = all.flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]))
  const listed = [...read('docs/settings.md').matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name]) => name)
  expect(settings.filter(name => !listed.includes(name))).toEqual([])
})

test('docs/operating.md is short enough to read at night', () => {
  expect(read('docs/operating.md').split('\n').length - 1).toBeLessThanOrEqual(250)
})

/** As GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const pages = globSync(['*.md', 'docs/**/*.md', 'contract/*.md', 'client/*.md', 'client/python/*.md', 'test/*.md'], {
  cwd: root,
})

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

  test('links to headings that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#:]*)#([^)]+)\)/g)].map(([, target = '', anchor = '']) => ({
      target,
      anchor,
    }))
    const dangling = links.filter(({ target, anchor }) => {
      const headings = target === '' ? text : read(join(dirname(page), target))
      return ![...headings.matchAll(/^#+ (.+)$/gm)].some(([, heading = '']) => anchorOf(heading) === anchor)
    })
    expect(dangling).toEqual([])
  })

  test('names files that exist', () => {
    const named =
      /`((?:schemas|core|projector|api|tools|client|deploy|demo|services|bench|docs|test|contract)\/[\w./-]+\.(?:ts|md))`/g
    expect(missing([...text.matchAll(named)].map(([, file = '']) => join(root, file)))).toEqual([])
  })
})

test('docs/README.md links to each page of docs/', () => {
  const index = [...read('docs/README.md').matchAll(/\]\((\w+\.md)[)#]/g)].map(([, target]) => target)
  const all = globSync('docs/*.md', { cwd: root }).map(path => basename(path))
  expect(all.filter(page => page !== 'README.md' && !index.includes(page))).toEqual([])
})

test('each page of docs/ begins with whom it serves', () => {
  const all = globSync('docs/*.md', { cwd: root })
  expect(all.filter(page => !/^# [^\n]+\n\n(?:For|This page is for) /.test(read(page)))).toEqual([])
})

test('README.md is short enough to be read at once', () => {
  expect(read('README.md').split('\n').length - 1).toBeLessThanOrEqual(130)
})

test('docs/decisions/README.md links to each decision once', () => {
  const index = [...read('docs/decisions/README.md').matchAll(/\]\((\d{4}-[^)]+)\)/g)].map(([, target]) => target)
  const decisions = globSync('docs/decisions/[0-9]*.md', { cwd: root }).map(path => basename(path))
  expect(index.sort()).toEqual(decisions.sort())
})
