/**
 * Rules of this project that neither the compiler nor the linter checks. The tests match text, not syntax: they are
 * fast, but they miss names that are built at run time and clients that are created under another name.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { files, find, type Source, sourceOf, sources, within } from './support/sources.ts'

const product = within('schemas', 'core', 'projector', 'api', 'tools')
const tests = sources.filter(({ path }) => path.endsWith('.test.ts'))

/** Whether a file is a program. Programs read the environment, build clients and write to the console. */
const isProgram = ({ path }: Source): boolean =>
  path.endsWith('/main.ts') ||
  path === 'projector/topics.ts' ||
  path === 'tools/contexts.ts' ||
  /^(?:services|demo|bench)\//.test(path)

const importsOf = ({ path, spoken }: Source): { from: string; target: string }[] =>
  [...spoken.matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, target = '']) => ({
    from: path,
    target: target.startsWith('.') ? normalize(join(dirname(path), target)) : target,
  }))
const imports = sources.flatMap(importsOf)
const into = (...folders: string[]) =>
  imports.filter(({ target }) => folders.some(folder => target.startsWith(`${folder}/`)))
const outOf = (folder: string) => imports.filter(({ from }) => from.startsWith(`${folder}/`))

test('finds source files in each folder', () => {
  const all = ['schemas', 'core', 'projector', 'api', 'tools', 'services', 'demo', 'bench', 'explorer/src', 'test']
  for (const folder of all) {
    expect([folder, within(folder).length > 0]).toEqual([folder, true])
  }
  expect(outOf('core').length).toBeGreaterThan(50)
})

/** The libraries. Each may import the ones before it, and `schemas/`. */
const libraries = ['runtime', 'ledger', 'log', 'store', 'reading', 'projection']
const parts = ['schemas', 'core', 'projector', 'api', 'tools', 'services', 'demo', 'bench', 'explorer', 'test']
/** The parts that each part may import, beside itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: ['schemas'],
  projector: ['schemas', 'core'],
  api: ['schemas', 'core'],
  tools: ['schemas', 'core'],
}

describe('folders', () => {
  test('schemas/ imports only itself, typebox, ajv and decimal.js', () => {
    const allowed = /^(?:schemas\/(?:[a-z]+\/)?[a-z-]+\.ts|typebox|ajv\/dist\/2020\.js|decimal\.js)$/
    expect(outOf('schemas').filter(({ target }) => !allowed.test(target))).toEqual([])
  })

  test.each(Object.entries(mayImport))('%s/ imports only itself and %s', (folder, allowed) => {
    const partOf = (target: string): string => target.split('/')[0] ?? ''
    const foreign = outOf(folder).filter(({ target }) => {
      const part = partOf(target)
      return target.includes('/') && parts.includes(part) && part !== folder && !allowed.includes(part)
    })
    expect(foreign).toEqual([])
  })

  test('a library imports only itself, schemas/ and the libraries before it', () => {
    const rank = (path: string): number => libraries.indexOf(path.split('/')[1] ?? '')
    expect([...new Set(outOf('core').map(({ from }) => rank(from)))].toSorted()).toEqual(libraries.map((_, at) => at))
    const upward = outOf('core').filter(({ from, target }) => target.startsWith('core/') && rank(target) > rank(from))
    expect(upward).toEqual([])
  })

  test('a library is imported through its index.ts only; a test may import each of its files', () => {
    const libraryOf = (path: string): string | undefined => /^core\/[a-z]+/.exec(path)?.[0]
    const around = imports.filter(
      ({ from, target }) =>
        libraryOf(target) !== undefined &&
        libraryOf(target) !== libraryOf(from) &&
        !from.startsWith('test/') &&
        target !== `${libraryOf(target)}/index.ts`,
    )
    expect(around).toEqual([])
    const inside = imports.filter(
      ({ from, target }) => libraryOf(from) === libraryOf(target) && /^core\/[a-z]+\/index\.ts$/.test(target),
    )
    expect(inside).toEqual([])
  })

  test.each([
    ['client/src', /^(?:client\/src\/|openapi-fetch$|decimal\.js$|@noble\/hashes\/)/],
    ['client/mcp/src', /^(?:client\/(?:mcp\/)?src\/|contract\/openapi\.json$|@modelcontextprotocol\/server)/],
    ['explorer/src', /^(?:explorer\/src\/|client\/src\/index\.ts$|preact(?:\/hooks)?$|decimal\.js$)/],
  ])('%s/ imports only itself and its dependencies; two of them also the client', (folder, allowed) => {
    const found = outOf(folder).filter(({ target }) => /^[\w@./-]+$/.test(target))
    expect(found.length).toBeGreaterThan(5)
    expect(found.filter(({ target }) => !allowed.test(target))).toEqual([])
  })

  test.each([
    ['the service', ['schemas', 'core', 'projector', 'api'], 'package.json'],
    ['tools/', ['tools'], 'tools/package.json'],
    ['demo/', ['demo'], 'demo/package.json'],
    ['bench/', ['bench'], 'bench/package.json'],
    ['services/', ['services'], 'services/package.json'],
    ['client/', ['client/src'], 'client/package.json'],
    ['client/mcp/', ['client/mcp'], 'client/mcp/package.json'],
    ['explorer/', ['explorer'], 'explorer/package.json'],
  ])('%s imports only packages that its package.json names', (_, folders, manifest) => {
    const { dependencies } = JSON.parse(sourceOf(manifest).text)
    const packages = within(...folders).flatMap(({ spoken }) =>
      [...spoken.matchAll(/(?:^(?:import|export|\}) (?:.* )?from |\bimport\()'((?:@[a-z]+\/)?[a-z][\w.-]*)[/']/gm)].map(
        ([, name = '']) => name,
      ),
    )
    expect(packages.length).toBeGreaterThan(0)
    expect([...new Set(packages)].filter(name => !Object.hasOwn(dependencies, name))).toEqual([])
  })

  test('a package has one version in all workspaces', () => {
    const folders = ['', 'tools/', 'demo/', 'bench/', 'services/', 'client/', 'client/mcp/', 'explorer/']
    const versions = new Map<string, Set<string>>()
    for (const { text } of folders.map(folder => sourceOf(`${folder}package.json`)))
      for (const [name, version] of Object.entries<string>(JSON.parse(text).dependencies))
        versions.set(name, (versions.get(name) ?? new Set()).add(version))
    expect([...versions].filter(([, found]) => found.size > 1)).toEqual([])
  })

  test('only tests import from test/', () => {
    expect(into('test').filter(({ from }) => !from.startsWith('test/') && from !== 'vitest.config.ts')).toEqual([])
  })

  test('no file or folder is named utils, helpers, common, shared or misc', () => {
    expect(files.filter(path => /(?:^|\/)(?:utils?|helpers?|common|shared|misc)(?:\.|\/)/.test(path))).toEqual([])
  })
})

/**
 * The rooms of each part. A room may import from the rooms before it in `order`. `ground` lists the files beside the
 * rooms that every room may import. All other files beside the rooms assemble them.
 */
const rooms: Readonly<Record<string, { readonly order: readonly string[]; readonly ground: readonly string[] }>> = {
  schemas: {
    order: ['sealed', 'stored', 'reference'],
    ground: ['errors', 'events', 'limits', 'lists', 'money', 'objects', 'resources', 'timezones', 'validate', 'values'],
  },
  'core/runtime': { order: ['environment', 'status', 'signing'], ground: ['limits', 'settings'] },
  'core/ledger': { order: ['event', 'rules', 'decide'], ground: ['limits'] },
  'core/log': { order: ['kafka', 'batch', 'records', 'follow'], ground: ['limits', 'kafka-retry'] },
  'core/store': {
    order: ['elasticsearch', 'read', 'generations', 'positions', 'documents', 'balances'],
    ground: ['elasticsearch-credentials', 'limits'],
  },
  'core/reading': { order: ['sealed', 'pages', 'checkpoint'], ground: ['limits', 'pace'] },
  'core/projection': { order: ['progress', 'balances', 'flow', 'stream'], ground: ['limits'] },
  projector: { order: ['admin'], ground: ['keep-up', 'limits'] },
  api: { order: ['http', 'access', 'answer', 'audit', 'admin'], ground: ['limits'] },
  tools: {
    order: [
      'documents',
      'leftovers',
      'generations',
      'parked',
      'keys',
      'subjects',
      'signing',
      'export',
      'archive',
      'evidence',
      'grow',
      'analysis',
      'validate',
      'doctor',
      'commands',
    ],
    ground: [
      'command',
      'context',
      'contexts',
      'exit-codes',
      'failures',
      'limits',
      'live',
      'markup',
      'terminal',
      'time-left',
      'whole-file',
    ],
  },
  demo: { order: ['data', 'check', 'run'], ground: [] },
  bench: { order: ['rig', 'processes', 'report', 'figures'], ground: ['peers'] },
  'explorer/src': { order: ['state', 'parts', 'pictures', 'views'], ground: ['amounts', 'refusals', 'texts'] },
}

describe('rooms', () => {
  test.each(Object.entries(rooms))('of %s import only from the rooms before them', (part, { order, ground }) => {
    const roomOf = (path: string): string => path.slice(part.length + 1).split('/')[0] ?? ''
    const found = new Set(
      within(part)
        .map(({ path }) => roomOf(path))
        .filter(name => !/\.tsx?$/.test(name) && name !== 'peers'),
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

  test('stand in docs/architecture.md', () => {
    const page = readFileSync('docs/architecture.md', 'utf8')
    const all = Object.values(rooms).flatMap(({ order }) => order)
    expect(all.filter(room => !page.includes(`\`${room}/\``))).toEqual([])
  })

  test('have at most 16 files', () => {
    const folders = Map.groupBy(
      within('schemas', 'core', 'projector', 'api', 'client', 'tools', 'services', 'demo', 'bench', 'explorer'),
      ({ path }) => dirname(path),
    )
    expect(
      [...folders].filter(([, { length }]) => length > 16).map(([folder, { length }]) => `${folder}: ${length}`),
    ).toEqual([])
  })

  test('are mirrored by their tests', () => {
    const paths = new Set(sources.map(({ path }) => path))
    const parts = Object.keys(rooms)
    const partOf = (path: string): string | undefined => parts.find(part => path.startsWith(`${part}/`))
    const names = Map.groupBy(within(...parts), ({ path }) => `${partOf(path)}/${path.split('/').at(-1)}`)
    const elsewhere = tests.flatMap(({ path }) => {
      const source = path.replace(/^test\//, '').replace(/\.test\.ts$/, '.ts')
      const part = partOf(source)
      if (part === undefined || paths.has(source)) return []
      const one = names.get(`${part}/${source.split('/').at(-1)}`)
      return one === undefined ? [] : [`${path}: it is about ${one.map(found => found.path).join(', ')}`]
    })
    expect(elsewhere).toEqual([])
  })
})

test('imports have no cycles', () => {
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
    expect(find(others, 'code', /new (?:kafkajs\.)?(?:Kafka|Client)\(/)).toEqual([])
  })

  test('use the process, the clock and Math.random', () => {
    expect(find(others, 'code', /\bprocess\.|\bDate\.now\b|\bMath\.random\b/)).toEqual([])
  })

  test('write to the console: all others use a log', () => {
    expect(find(others, 'code', /\bconsole\./)).toEqual([])
  })
})

test('all clients of Kafka have the options of one function, which repairs kafkajs', () => {
  const configured = product.filter(({ path }) => path !== 'core/log/kafka-config.ts')
  expect(find(configured, 'code', /\blogLevel: kafkajs\b|new kafkajs\.Kafka\((?!config\)|kafkaConfig\()/)).toEqual([])
})

describe('types', () => {
  test('are never any', () => {
    expect(find(sources, 'code', /[:<|&]\s*any\b|\bas any\b|\bany\[\]/)).toEqual([])
  })

  test('are never asserted with an exclamation mark', () => {
    expect(find(sources, 'code', /[\w)\]]\x21(?!=)/)).toEqual([])
  })

  test('are exhausted: a default of a switch must prove with `satisfies never` that no case is left', () => {
    expect(find(sources, 'code', /\bdefault:\s*return\b(?![^\n]*satisfies never)[^\n]*/)).toEqual([])
  })
})

describe('tests', () => {
  test('are neither skipped nor run alone', () => {
    expect(find(tests, 'code', /\.(?:only|skip|todo|fails)\b/)).toEqual([])
  })

  test('are left out only where a machine lacks a program, an engine or a device', () => {
    const reasons = [
      'redisProgram === undefined',
      'goProgram === undefined',
      'browserProgram === undefined',
      'pythonProgram === undefined',
      'npmProgram === undefined',
      'nginxProgram === undefined',
      'promtoolProgram === undefined',
      'prometheusProgram === undefined',
      'programs.includes(undefined)',
      '(await findJdk(process.env)).jdk === undefined',
      'canRunSeveralNodes',
      'dockerAnswers',
      "existsSync('/dev/full')",
    ]
    const conditions = tests.flatMap(({ path, spoken }) =>
      spoken
        .split('\n')
        .flatMap(line => (/test\.(?:skipIf|runIf)|describe\.skipIf/.test(line) ? [`${path}: ${line}`] : [])),
    )
    expect(conditions.filter(condition => !reasons.some(reason => condition.includes(reason)))).toEqual([])
    expect(reasons.filter(reason => !conditions.some(condition => condition.includes(reason)))).toEqual([])
  })

  test('do not say "should" in their names', () => {
    expect(find(tests, 'spoken', /(?:test|describe)(?:\.\w+\([^\n]*\))?\(\s*['"`][^'"`\n]*\bshould\b/)).toEqual([])
  })
})

describe('files', () => {
  test('have at most 400 lines', () => {
    const long = sources.filter(({ text }) => text.split('\n').length - 1 > 400)
    expect(long.map(({ path, text }) => `${path}: ${text.split('\n').length - 1}`)).toEqual([])
  })

  test('the page for the person on call has at most 250 lines', () => {
    const { length } = readFileSync(join(import.meta.dirname, '../docs/operating.md'), 'utf8').split('\n')
    expect(length - 1).toBeLessThanOrEqual(250)
  })

  test('have comments of at most 120 columns', () => {
    const wide = (line: string): boolean =>
      line.length > 120 && /^\s*(?:\/\*\*|\*|\/\/) /.test(line) && line.includes(' ', 120 - 40)
    const found = sources.flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, at) => (wide(line) ? [`${path}:${at + 1}`] : [])),
    )
    expect(found).toEqual([])
  })

  test('say their purpose at the top', () => {
    const parts = ['schemas', 'core', 'projector', 'api', 'client', 'tools', 'services', 'demo', 'bench', 'explorer']
    const silent = within(...parts).filter(({ text }) => !text.startsWith('/**'))
    expect(silent.map(({ path }) => path)).toEqual([])
  })

  test('that a comment or a page names are there', () => {
    const pages = files.filter(path => path.endsWith('.md') && path !== 'CHANGELOG.md').map(sourceOf)
    const linesOf = ({ path, text, spoken }: Source): string[] => {
      const said = path.endsWith('.md') ? [] : spoken.split('\n')
      return text.split('\n').map((line, at) => (line === said[at] ? '' : line.slice(said[at]?.trimEnd().length)))
    }
    const ends = new Set(files.flatMap(path => path.split('/').map((_, at, parts) => parts.slice(at).join('/'))))
    // A file of a reader, and one that a script makes.
    const elsewhere = new Set(['example.mts', 'src/openapi.ts'])
    const named = /(?<![\w$*{}/.-])(?:\.{1,2}\/)*((?:[\w-]+\/)*[\w.-]*[\w-]\.(?:ts|mts|mjs|py|tpl))\b(?![\w*{-])/g
    const found = [...sources, ...pages].map(source => ({
      path: source.path,
      names: linesOf(source).flatMap(line => [...line.matchAll(named)].map(([, name = '']) => name)),
    }))
    expect(found.flatMap(({ names }) => names).length).toBeGreaterThan(200)
    const missing = found.flatMap(({ path, names }) =>
      names.filter(name => !ends.has(name) && !elsewhere.has(name)).map(name => `${path}: ${name}`),
    )
    expect(missing).toEqual([])
  })

  test('have no open tasks in comments', () => {
    expect(find(sources, 'text', /\b(?:TO(?:)DO|FIX(?:)ME)\b/)).toEqual([])
  })

  test('name no path of a machine, and only public hosts', () => {
    const texts = files.filter(path =>
      /\.(?:ts|mjs|js|json|md|yml|yaml|xml|sh)$|(?:^|\/)(?:Dockerfile|\.npmrc|run)$/.test(path),
    )
    const all = texts.map(sourceOf)
    expect(find(all, 'text', /\.\.[/]shared|[/](?:work|root|home|Users)[/]/)).toEqual([])

    // Lock files have the homepages of packages. They must not have the addresses that they were fetched from.
    expect(find(all, 'text', /"resolve[d]": "[^"]*[:.]/)).toEqual([])
    const written = all.filter(({ path }) => !path.endsWith('package-lock.json'))
    const known = new Set(['example.com', 'maven.apache.org', 'www.w3.org', 'json-schema.org'])
    const hosts = find(written, 'text', /:\/\/(?:[^\s/@'"`]*@)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b/i)
    expect(hosts.filter(place => !known.has(place.split('://')[1] ?? ''))).toEqual([])
  })
})
