import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { expect, inject, test } from 'vitest'
import { freePort } from '../../services/ports.ts'
import { useStore } from '../support/api.ts'
import type { Store } from '../support/documents.ts'
import { createPipe, type Pipe } from '../support/pipes.ts'
import { projectorSettings } from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

/** An API writes its lines every 100 ms. */
const WRITTEN_WITHIN_MS = 1_000

type Started = { readonly port: number; readonly ask: () => Promise<number>; readonly stop: () => Promise<void> }

type Output = Pick<Pipe, 'writeEnd'>
/** Starts a process with a pipe or a file as stdout. `ask` checks its admin port, which makes an API log a line. */
const start = async (
  scope: Scope,
  file: string,
  settings: Record<string, string>,
  output: Output,
): Promise<Started> => {
  const [port, adminPort] = [await freePort(), await freePort()]
  const ports = { API_PORT: port, API_ADMIN_PORT: adminPort, PROJECTOR_ADMIN_PORT: adminPort }
  const env = { ...settings, LOG_LEVEL: 'debug', API_DRAIN_SECONDS: '0' }
  const child = spawn(process.execPath, ['--disable-warning=TimeoutNegativeWarning', file], {
    env: { ...env, ...Object.fromEntries(Object.entries(ports).map(([name, value]) => [name, String(value)])) },
    stdio: ['ignore', output.writeEnd, 'inherit'],
  })
  const exited = once(child, 'exit')
  scope.onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const livez = `http://127.0.0.1:${adminPort}/livez`
  await eventually(async () => expect((await fetch(livez)).status).toBe(200))
  return {
    port,
    ask: async () => (await fetch(livez)).status,
    // A process that does not end within 9 s ends with code 1.
    stop: async () => {
      child.kill('SIGTERM')
      expect(await exited).toEqual([0, null])
    },
  }
}

const startApiOn = ({ prefix }: Pick<Store, 'prefix'>, scope: Scope, output: Output) => {
  const settings = {
    ELASTICSEARCH_URL: inject('elasticsearchUrl'),
    ELASTICSEARCH_INDEX_PREFIX: prefix,
    RATE_LIMIT_REQUESTS: '1000000',
  }
  return start(scope, 'api/main.ts', settings, output)
}
const startApi = async (scope: Scope, output: Output) => startApiOn(await useStore(scope), scope, output)
const startProjector = async (scope: Scope, output: Output) => {
  const topics = await createTopics(scope)
  return start(scope, 'projector/main.ts', projectorSettings({ topics, prefix: createPrefix(scope) }), output)
}

test.each([
  ['an API', startApi],
  ['a projector', startProjector],
] as const)('%s with an unread log works, and ends in time', async (_, start) => {
  const { onTestFinished } = await import('vitest')
  const pipe = createPipe({ onTestFinished })
  pipe.fill()
  const { ask, stop } = await start({ onTestFinished }, pipe)
  expect(await ask()).toBe(200)
  await stop()
})

test.each([
  ['an API', startApi],
  ['a projector', startProjector],
] as const)('%s ends in time if the reader of its log leaves at that moment', async (_, start) => {
  const { onTestFinished } = await import('vitest')
  const pipe = createPipe({ onTestFinished })
  const { ask, stop } = await start({ onTestFinished }, pipe)
  pipe.closeReader()
  const stopped = stop()
  await ask().catch(() => undefined)
  await stopped
})

test.skipIf(!existsSync('/dev/full')).each([
  ['an API', startApi],
  ['a projector', startProjector],
] as const)('%s whose log is on a full disk works, and ends in time', async (_, start) => {
  const { onTestFinished } = await import('vitest')
  const writeEnd = openSync('/dev/full', 'w')
  onTestFinished(() => closeSync(writeEnd))
  const { ask, stop } = await start({ onTestFinished }, { writeEnd })
  expect(await ask()).toBe(200)
  const begun = performance.now()
  await eventually(() => expect(performance.now() - begun).toBeGreaterThan(WRITTEN_WITHIN_MS))
  expect(await ask()).toBe(200)
  await stop()
})

test('an API with an unread log answers thousands of requests, and later logs how many lines it dropped', async scope => {
  const pipe = createPipe(scope)
  pipe.fill()
  const store = await useStore(scope)
  await store.publish('org_log', 1)
  const headers = { authorization: `Bearer ${await store.key('org_log')}` }
  const { port, stop } = await startApiOn(store, scope, pipe)
  // Logs a line per request, because it has a key, and reads nothing.
  const url = `http://127.0.0.1:${port}/api/v1/nowhere`
  let lines = 0
  const statusOf = async (): Promise<number> => {
    lines++
    const answer = await fetch(url, { method: 'HEAD', headers })
    await answer.arrayBuffer()
    // On a busy machine the look-up of the key may take too long.
    return answer.status === 503 && lines < 60_000 ? statusOf() : answer.status
  }
  while (lines < 30_000) {
    const statuses = await Promise.all(Array.from({ length: 50 }, statusOf))
    expect(new Set(statuses)).toEqual(new Set([404]))
  }
  let log = ''
  const dropped = await eventually(
    () => {
      log += pipe.read()
      const [, count] = /"dropped":(\d+),/.exec(log) ?? []
      expect(count).toBeDefined()
      return Number(count)
    },
    { every: 5 },
  )
  expect(dropped).toBeGreaterThan(0)
  const answered = log.split('\n').filter(line => line.includes('"msg":"answered"')).length
  expect(answered + dropped).toBeLessThanOrEqual(lines)
  expect(log.match(/"dropped"/g)).toHaveLength(1)
  await stop()
})
