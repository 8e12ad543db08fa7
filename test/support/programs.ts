/** Programs that some machines lack (`name` is the Debian package), and the tests that are skipped without them. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const canRun = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const find = (...names: readonly string[]): string | undefined =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap(folder => names.map(name => join(folder, name)))
    .find(canRun)

export const redisProgram = find('redis-server')
export const pythonProgram = find('python3')
export const npmProgram = find('npm')
export const goProgram = find('go')
export const javaProgram = find('java')
export const mavenProgram = find('mvn')
export const nginxProgram = find('nginx')
export const promtoolProgram = find('promtool')
export const prometheusProgram = find('prometheus')
export const browserProgram = find('chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome')

const needed = [
  { program: redisProgram, name: 'redis-server', tests: 'the rate limit of several API processes' },
  {
    program: pythonProgram,
    name: 'python3',
    tests:
      'the loads of docs/examples, the notebook and DuckDB of the analysts’ guide, the client of openapi-python-client, the models of datamodel-code-generator, the Python client and the packed server for agents',
  },
  {
    program: npmProgram,
    name: 'npm',
    tests:
      'the client of openapi-typescript, the models of json-schema-to-typescript, the packed TypeScript client, the packed server for agents, the linter of the OpenAPI documents and the SBOM',
  },
  {
    program: goProgram,
    name: 'golang-go',
    tests: 'the client of oapi-codegen, the publisher in Go, the Helm chart and archives in S3',
  },
  {
    program: javaProgram && mavenProgram,
    name: 'maven',
    tests:
      'the client of openapi-generator, the models of jsonschema2pojo, the publisher in Java and the batches of a Java producer',
  },
  { program: nginxProgram, name: 'nginx', tests: 'the proxy of docs/examples/nginx.conf' },
  {
    program: promtoolProgram && prometheusProgram,
    name: 'prometheus',
    tests: 'the rules and dashboards of deploy/monitoring',
  },
  {
    program: browserProgram,
    name: 'chromium',
    tests: 'the pages of the admin port and of diff and the explorer in a browser',
  },
]

/** Returns in one line which tests this machine skips; undefined if none. */
export const leftOut = (): string | undefined => {
  const missing = needed.filter(({ program }) => program === undefined)
  if (missing.length === 0) return undefined
  return `left out: ${missing.map(({ tests, name }) => `${tests} (there is no ${name} on the PATH)`).join('; ')}`
}
