/**
 * The rules of this project that neither the compiler nor the linter knows. They look at text, not at syntax: fast, and
 * blind to what is hidden on purpose (a name put together at run time, a client made by another name). A quote within a
 * regular expression can end a string for them where there is none.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const notOurs = new Set(['node_modules', 'target', '.git', '.cache'])

const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (notOurs.has(entry.name) || entry.name.endsWith('.log')) return []
    return entry.isDirectory() ? filesIn(path) : [path]
  })

const comment = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/
const string = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/
const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

/** A source as it is, without its comments, and without its strings too; all three have the same lines. */
const sourceOf = (path: string) => {
  const text = readFileSync(join(root, path), 'utf8')
  const either = new RegExp(`(${string.source})|${comment.source}`, 'g')
  const spoken = text.replace(either, (found, isString) => (isString === undefined ? blank(found) : found))
  return { path, text, spoken, code: spoken.replace(new RegExp(string, 'g'), blank) }
}
type Source = ReturnType<typeof sourceOf>

const files = filesIn('.')
const sources = files.filter(path => path.endsWith('.ts')).map(sourceOf)
const within = (...folders: string[]): Source[] =>
  sources.filter(({ path }) => folders.some(folder => path.startsWith(`${folder}/`)))
const product = within('schemas', 'projector', 'api', 'commands')
const tests = sources.filter(({ path }) => path.endsWith('.test.ts'))

/** Programs of their own: they read the environment, build clients, talk to a person. */
const isProgram = ({ path }: Source): boolean =>
  path.endsWith('/main.ts') || path === 'projector/topics.ts' || /^(?:services|demo|bench)\//.test(path)

/** Where a pattern stands: file, line and what was found. */
const places = (all: readonly Source[], part: 'text' | 'spoken' | 'code', pattern: RegExp): string[] =>
  all.flatMap(source =>
    [...source[part].matchAll(new RegExp(pattern, 'g'))].map(({ 0: found, index }) => {
      const line = source[part].slice(0, index).split('\n').length
      return `${source.path}:${line}: ${found.trim()}`
    }),
  )

const importsOf = ({ path, spoken }: Source): { from: string; target: string }[] =>
  [...spoken.matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, target = '']) => ({
    from: path,
    target: target.startsWith('.') ? normalize(join(dirname(path), target)) : target,
  }))
const imports = sources.flatMap(importsOf)
const into = (...folders: string[]) =>
  imports.filter(({ target }) => folders.some(folder => target.startsWith(`${folder}/`)))
const outOf = (folder: string) => imports.filter(({ from }) => from.startsWith(`${folder}/`))

test('the rules have something to look at', () => {
  for (const folder of ['schemas', 'projector', 'api', 'commands', 'services', 'demo', 'bench', 'test']) {
    expect([folder, within(folder).length > 0]).toEqual([folder, true])
  }
  expect(outOf('projector').length).toBeGreaterThan(50)
})

describe('folders', () => {
  test('schemas/ stands alone: nothing of ours from elsewhere, no I/O, no framework', () => {
    const allowed = /^(?:schemas\/(?:[a-z]+\/)?[a-z-]+\.ts|typebox|ajv\/dist\/2020\.js|decimal\.js)$/
    expect(outOf('schemas').filter(({ target }) => !allowed.test(target))).toEqual([])
  })

  test('projector/ and api/ know each other through schemas/ only', () => {
    const ours = /^(?:schemas|projector|api|commands|services|demo|bench|test)\//
    const foreign = (folder: string) =>
      outOf(folder).filter(
        ({ target }) => ours.test(target) && !target.startsWith('schemas/') && !target.startsWith(`${folder}/`),
      )
    expect([...foreign('projector'), ...foreign('api')]).toEqual([])
  })

  test('commands/ stands on the product only', () => {
    const ours = /^(?:services|demo|bench|test)\//
    expect(outOf('commands').filter(({ target }) => ours.test(target))).toEqual([])
  })

  test('nothing but a test imports from test/', () => {
    expect(into('test').filter(({ from }) => !from.startsWith('test/'))).toEqual([])
  })

  test('no file is a place for everything', () => {
    expect(files.filter(path => /(?:^|\/)(?:utils?|helpers?|common|shared|misc)(?:\.|\/)/.test(path))).toEqual([])
  })
})

/**
 * The rooms of each part, in the order in which they may import: each from those before it. `ground` are files beside
 * the rooms that each room may import; all other files beside them put the rooms together.
 */
const rooms: Readonly<Record<string, { readonly order: readonly string[]; readonly ground: readonly string[] }>> = {
  schemas: {
    order: ['stored', 'reference'],
    ground: [
      'answer-form',
      'errors',
      'events',
      'limits',
      'money',
      'resources',
      'settings',
      'timezones',
      'validate',
      'values',
    ],
  },
  projector: {
    order: ['event', 'rules', 'kafka', 'elasticsearch', 'generations', 'flow', 'stream', 'admin'],
    ground: ['failures', 'health', 'limits'],
  },
  api: {
    order: ['capacity', 'elasticsearch', 'read', 'http', 'access', 'answer', 'admin'],
    ground: ['failures', 'limits', 'pace', 'time-limits'],
  },
  commands: {
    order: ['documents', 'generations', 'parked', 'keys', 'export', 'analysis'],
    ground: ['context', 'failures', 'kafka', 'limits', 'live', 'terminal'],
  },
  demo: { order: ['data', 'check', 'run'], ground: [] },
  bench: { order: ['rig', 'processes', 'report', 'figures'], ground: ['peers'] },
}

describe('rooms', () => {
  test.each(Object.entries(rooms))('of %s import from the rooms before them', (part, { order, ground }) => {
    const roomOf = (path: string): string => path.split('/')[1] ?? ''
    const found = new Set(
      within(part)
        .map(({ path }) => roomOf(path))
        .filter(name => !name.endsWith('.ts') && name !== 'peers'),
    )
    expect([...found].sort()).toEqual(order.toSorted())
    const mayImport = (from: string, target: string): boolean =>
      order.includes(target)
        ? order.indexOf(target) <= order.indexOf(from)
        : ground.includes(target.replace(/\.ts$/, ''))
    const wrong = outOf(part).filter(
      ({ from, target }) =>
        target.startsWith(`${part}/`) && order.includes(roomOf(from)) && !mayImport(roomOf(from), roomOf(target)),
    )
    expect(wrong).toEqual([])
  })

  test('have at most 16 files', () => {
    const folders = Map.groupBy(
      within('schemas', 'projector', 'api', 'commands', 'services', 'demo', 'bench'),
      ({ path }) => dirname(path),
    )
    expect(
      [...folders].filter(([, { length }]) => length > 16).map(([folder, { length }]) => `${folder}: ${length}`),
    ).toEqual([])
  })

  test('are mirrored by their tests', () => {
    const paths = new Set(sources.map(({ path }) => path))
    const names = Map.groupBy(
      within(...Object.keys(rooms)),
      ({ path }) => `${path.split('/')[0]}/${path.split('/').at(-1)}`,
    )
    const elsewhere = tests.flatMap(({ path }) => {
      const [, part = '', ...rest] = path.replace(/\.test\.ts$/, '.ts').split('/')
      if (!(part in rooms) || paths.has(`${part}/${rest.join('/')}`)) return []
      const one = names.get(`${part}/${rest.at(-1)}`)
      return one === undefined ? [] : [`${path}: it is about ${one.map(source => source.path).join(', ')}`]
    })
    expect(elsewhere).toEqual([])
  })
})

test('no import comes back to where it began', () => {
  const next = Map.groupBy(imports, ({ from }) => from)
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (path: string, before: readonly string[]): void => {
    if (before.includes(path)) cycles.push([...before.slice(before.indexOf(path)), path].join(' → '))
    if (done.has(path) || before.includes(path)) return
    for (const { target } of next.get(path) ?? []) visit(target, [...before, path])
    done.add(path)
  }
  for (const { path } of sources) visit(path, [])
  expect(cycles).toEqual([])
})

describe('only programs', () => {
  const others = product.filter(source => !isProgram(source))

  test('build clients', () => {
    expect(places(others, 'code', /new (?:kafkajs\.)?(?:Kafka|Client)\(/)).toEqual([])
  })

  test('know the process, the clock and chance', () => {
    expect(places(others, 'code', /\bprocess\.|\bDate\.now\b|\bMath\.random\b/)).toEqual([])
  })

  test('talk to a person: the others have a log', () => {
    expect(places(others, 'code', /\bconsole\./)).toEqual([])
  })
})

describe('types', () => {
  test('are never any', () => {
    expect(places(sources, 'code', /[:<|&]\s*any\b|\bas any\b|\bany\[\]/)).toEqual([])
  })

  test('are never asserted with an exclamation mark', () => {
    expect(places(sources, 'code', /[\w)\]]!(?!=)/)).toEqual([])
  })

  test('are exhausted: a switch has no default but one that proves that nothing is left', () => {
    expect(places(sources, 'code', /\bdefault:\s*return\b(?![^\n]*satisfies never)[^\n]*/)).toEqual([])
  })
})

describe('tests', () => {
  test('all run', () => {
    expect(places(tests, 'code', /\.(?:only|skip|todo|fails)\b/)).toEqual([])
  })

  test('say what is', () => {
    expect(places(tests, 'spoken', /(?:test|describe)(?:\.\w+\([^\n]*\))?\(\s*['"`][^'"`\n]*\bshould\b/)).toEqual([])
  })
})

describe('files', () => {
  test('have at most 320 lines', () => {
    const long = sources.filter(({ text }) => text.split('\n').length - 1 > 320)
    expect(long.map(({ path, text }) => `${path}: ${text.split('\n').length - 1}`)).toEqual([])
  })

  test('have comments that end at 120 columns', () => {
    const wide = (line: string): boolean =>
      line.length > 120 && /^\s*(?:\/\*\*|\*|\/\/) /.test(line) && line.includes(' ', 120 - 40)
    const found = sources.flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, at) => (wide(line) ? [`${path}:${at + 1}`] : [])),
    )
    expect(found).toEqual([])
  })

  test('say at the top what they are for', () => {
    const silent = within('schemas', 'projector', 'api', 'commands', 'services', 'demo', 'bench').filter(
      ({ text }) => !text.startsWith('/**'),
    )
    expect(silent.map(({ path }) => path)).toEqual([])
  })

  test('are finished: nothing is left to do', () => {
    expect(places(sources, 'text', /\b(?:TO(?:)DO|FIX(?:)ME)\b/)).toEqual([])
  })

  test('name no place of a machine, and no host but those anyone may see', () => {
    const texts = files.filter(path =>
      /\.(?:ts|mjs|js|json|md|yml|yaml|xml|sh)$|(?:^|\/)(?:Dockerfile|\.npmrc|run)$/.test(path),
    )
    const all = texts.map(sourceOf)
    expect(places(all, 'text', /\.\.[/]shared|[/](?:work|root|home|Users)[/]/)).toEqual([])

    // The lock file names the homes of packages, but never where they were fetched.
    expect(places(all, 'text', /"resolve[d]":/)).toEqual([])
    const written = all.filter(({ path }) => path !== 'package-lock.json')
    const known = new Set(['example.com', 'maven.apache.org', 'www.w3.org', 'json-schema.org'])
    const hosts = places(written, 'text', /:\/\/(?:[^\s/@'"`]*@)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b/i)
    expect(hosts.filter(place => !known.has(place.split('://')[1] ?? ''))).toEqual([])
  })
})
