/** The image of the Dockerfile, built and run as docs/docker.md says. */
import { chmod, cp, mkdtemp, readdir, readFile, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildImage, docker, dockerAnswers, startContainer } from '../support/docker.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

/** A build installs all packages. */
const BUILD_TIMEOUT_MS = 600_000
const project = join(import.meta.dirname, '../..')
const scope = fileScope()

let built: Promise<string> | undefined
const image = (): Promise<string> => (built ??= buildImage(scope, project))
let builtTools: Promise<string> | undefined
const toolsImage = (): Promise<string> => (builtTools ??= buildImage(scope, project, 'tools'))
let builtExplorer: Promise<string> | undefined
const explorerImage = (): Promise<string> => (builtExplorer ??= buildImage(scope, project, 'explorer'))

/** Copies all files that the image is made of, with other modes and times: a clone of another user, at another time. */
const otherClone = async (t: Scope): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-image-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const ignored = await readFile(join(project, '.dockerignore'), 'utf8')
  const parts = [...ignored.matchAll(/^!(.+)$/gm)].map(([, part = '']) => part)
  for (const part of [...parts, 'Dockerfile', '.dockerignore'])
    await cp(join(project, part), join(folder, part), { recursive: true })
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    await chmod(path, entry.isDirectory() ? 0o700 : 0o600)
    await utimes(path, 0, 1_000_000_000)
  }
  return folder
}

/** The options of `docker run` on the page, and a health check at short intervals. To be alive needs no servers. */
const options = async (): Promise<string[]> => {
  const page = await readFile(join(project, 'docs/docker.md'), 'utf8')
  const [, text = ''] = /^docker run (.+) \\$/m.exec(page) ?? []
  expect(text).toContain('--read-only')
  const nowhere = ['--env', 'KAFKA_BROKERS=127.0.0.1:9', '--env', 'ELASTICSEARCH_URL=http://127.0.0.1:9']
  return [...text.split(' '), '--network', 'none', '--health-interval', '1s', ...nowhere]
}

describe.skipIf(!dockerAnswers)('the image', () => {
  test('of the commands runs them', { timeout: BUILD_TIMEOUT_MS }, async () => {
    const help = await docker('run', '--rm', '--network', 'none', await toolsImage())
    expect(help).toContain('projection')
  })

  test('of the explorer serves the page without capabilities on read-only files, as the user of the other images', {
    timeout: BUILD_TIMEOUT_MS,
  }, async t => {
    const name = await explorerImage()
    expect(await docker('image', 'inspect', '--format', '{{.Config.User}}', name)).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    const page = await readFile(join(project, 'docs/docker.md'), 'utf8')
    const [, text = ''] = /^docker run (.+) commission-explorer$/m.exec(page) ?? []
    expect(text).toContain('--read-only')
    // The health check asks for the page. Nobody asks the API here, but nginx wants its address.
    const nowhere = ['--network', 'none', '--add-host', 'api:127.0.0.1', '--health-interval', '1s']
    const options = text.split(' ').filter(option => !/^(?:--network|-p)=/.test(option))
    const container = await startContainer(t, ...options, ...nowhere, name)
    await eventually(async () =>
      expect(await container.inspect('{{.State.Health.Status}}'), await container.log()).toBe('healthy'),
    )
    await container.stop()
    expect(await container.inspect('{{.State.ExitCode}}'), await container.log()).toBe('0')
  })

  test('has the same layers when it is built again, from a clone with other modes and times', {
    timeout: BUILD_TIMEOUT_MS,
  }, async t => {
    const layers = (name: string): Promise<string> => docker('image', 'inspect', '--format', '{{json .RootFS}}', name)
    const again = await buildImage(t, await otherClone(t))
    expect(await layers(again)).toEqual(await layers(await image()))
  })

  test('has a numeric user, who can read each file of the service, and change none', async () => {
    const name = await image()
    expect(await docker('image', 'inspect', '--format', '{{.Config.User}}', name)).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    const find = (...tests: string[]) => docker('run', '--rm', '--network', 'none', name, 'find', '/app', ...tests)
    expect(await find('-name', 'main.ts')).toContain('/app/projector/main.ts')
    const packages = await find('-name', 'package.json', '-path', '*/node_modules/*')
    for (const ofTools of ['commander', 'hyparquet', 'aws4']) expect(packages).not.toContain(`/${ofTools}`)
    expect(await find('(', '-writable', '-o', '!', '-readable', '-o', '-user', '1000', ')')).toBe('')
  })

  test('has labels with the name and the version of the package', async () => {
    const labels = await docker('image', 'inspect', '--format', '{{json .Config.Labels}}', await image())
    const { name, version, description } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'))
    expect(JSON.parse(labels)).toMatchObject({
      'org.opencontainers.image.title': name,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.description': description,
    })
  })

  test.for([
    { program: 'the projector', command: [] },
    { program: 'the API', command: ['node', 'api/main.ts'] },
  ])(
    'runs $program without capabilities on read-only files, is healthy, and stops with code 0',
    async ({ command }, t) => {
      const container = await startContainer(t, ...(await options()), await image(), ...command)
      await eventually(async () =>
        expect(await container.inspect('{{.State.Health.Status}}'), await container.log()).toBe('healthy'),
      )
      await container.stop()
      expect(await container.inspect('{{.State.ExitCode}}'), await container.log()).toBe('0')
    },
  )

  test('writes no file where it could', async t => {
    // With --init the engine adds the file of its own program.
    const writable = (await options()).filter(option => !['--read-only', '--init'].includes(option))
    const container = await startContainer(t, ...writable, await image())
    await eventually(async () => expect(await container.inspect('{{.State.Health.Status}}')).toBe('healthy'))
    await container.stop()
    expect(await container.changes()).toBe('')
  })

  test('is not healthy while neither the projector nor the API runs', async t => {
    const idle = ['--health-start-period', '0s', '--health-retries', '1', await image(), 'sleep', 'infinity']
    const container = await startContainer(t, ...(await options()), ...idle)
    await eventually(async () => expect(await container.inspect('{{.State.Health.Status}}')).toBe('unhealthy'))
  })
})
