/** The packed TypeScript client, installed in an empty project: its README's example in several runtimes. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { chromium } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { exampleIn, serveExample } from '../support/client-example.ts'
import { browserProgram, npmProgram } from '../support/programs.ts'
import { fileScope } from '../support/scope.ts'

const project = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const scope = fileScope()

const shared = (async () => {
  const { api, key, printed, publicKey, environment } = await serveExample(scope)
  const folder = await mkdtemp(join(tmpdir(), 'commission-client-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const source = join(folder, 'source', 'client')
  await cp(join(project, 'client'), source, {
    recursive: true,
    filter: path => !/node_modules|dist$|python/.test(path),
  })
  await cp(join(project, 'contract'), join(folder, 'source', 'contract'), { recursive: true })
  const npm = (cwd: string, ...parameters: readonly string[]) => run('npm', parameters, { cwd })
  await npm(source, 'install')
  await npm(source, 'run', 'build')
  await npm(source, 'pack', '--pack-destination', folder)
  const packed = (await readdir(folder)).find(name => name.endsWith('.tgz')) ?? ''

  const user = join(folder, 'user')
  await mkdir(user)
  const manifest = { name: 'user', private: true, type: 'module' }
  await writeFile(join(user, 'package.json'), JSON.stringify(manifest))
  await npm(user, 'install', join(folder, packed), 'decimal.js@10.6.0', 'typescript@5.9.3', '@types/node@24.19.2')
  const example = exampleIn(await readFile(join(source, 'README.md'), 'utf8'), 'ts')
  await writeFile(join(user, 'example.ts'), example)
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2022']
  await run(join(user, 'node_modules', '.bin', 'tsc'), [...strict, 'example.ts'], { cwd: user })
  return { api, key, printed, publicKey, environment, user, npm }
})()

describe.skipIf(npmProgram === undefined)('the packed client', () => {
  test('it has the built files, the README and three dependencies', async () => {
    const { user } = await shared
    const installed = join(user, 'node_modules', 'commission-client')
    expect((await readdir(installed)).toSorted()).toEqual(['README.md', 'dist', 'package.json'])
    const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
    expect(Object.keys(dependencies)).toEqual(['@noble/hashes', 'decimal.js', 'openapi-fetch'])
  })

  test('the example of its README compiles in an empty project and runs in Node', async () => {
    const all = await shared
    const { stdout } = await run('node', ['example.js'], { cwd: all.user, env: all.environment })
    expect(stdout.trimEnd().split('\n')).toEqual(all.printed)
  })

  test.each([
    ['Bun', '@oven/bun-linux-x64@1.4.5', 'bin/bun', ['example.js']],
    [
      'Deno',
      '@deno/linux-x64-glibc@2.9.6',
      'deno',
      ['run', '--allow-env', '--allow-net', '--allow-read', 'example.js'],
    ],
  ] as const)('it runs in %s', async (_, wanted, program, parameters) => {
    const all = await shared
    await all.npm(all.user, 'install', '--no-save', '--force', wanted)
    const file = join(all.user, 'node_modules', wanted.replace(/@[^@]*$/, ''), program)
    const { stdout } = await run(file, parameters, { cwd: all.user, env: all.environment })
    expect(stdout.trimEnd().split('\n')).toEqual(all.printed)
  })

  test.skipIf(browserProgram === undefined)('it runs in a browser', async () => {
    const { api, key, publicKey, user } = await shared
    const types: Readonly<Record<string, string>> = { '.js': 'text/javascript', '.mjs': 'text/javascript' }
    const imports = {
      'commission-client': '/node_modules/commission-client/dist/index.js',
      'openapi-fetch': '/node_modules/openapi-fetch/dist/index.mjs',
      'decimal.js': '/node_modules/decimal.js/decimal.mjs',
      ...Object.fromEntries(
        ['sha2', 'utils', 'crypto'].map(name => [
          `@noble/hashes/${name}`,
          `/node_modules/@noble/hashes/esm/${name}.js`,
        ]),
      ),
    }
    // The page and the API have one origin, as behind a company's proxy.
    const server = createServer(async ({ url = '', headers }, response) => {
      if (url.startsWith('/api/')) {
        const answer = await fetch(new URL(url, api), { headers: { authorization: headers.authorization ?? '' } })
        response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
      } else if (url === '/') {
        const map = JSON.stringify({ imports })
        response.writeHead(200, { 'Content-Type': 'text/html' }).end(`<script type="importmap">${map}</script>`)
      } else {
        const content = await readFile(join(user, url)).catch(() => undefined)
        response.writeHead(content ? 200 : 404, { 'Content-Type': types[extname(url)] ?? 'text/plain' }).end(content)
      }
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const browser = await chromium.launch({ executablePath: browserProgram ?? '', args: ['--no-sandbox'] })
    try {
      const page = await browser.newPage()
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      await page.goto(origin)
      const script = `(async () => {
        const { createClient, readCopy } = await import('commission-client')
        const client = createClient({ baseUrl: '${origin}/api/v1', key: '${key}' })
        const copy = await readCopy(client)
        const { checkpoint } = await copy.prove('${publicKey}')
        return [copy.lastChangeId(), ...copy.payouts.keys(), checkpoint.sequence].join(' ')
      })()`
      expect(await page.evaluate(script)).toBe('payroll_1 payout_2 5')
    } finally {
      await browser.close()
      server.close()
    }
  })
})
