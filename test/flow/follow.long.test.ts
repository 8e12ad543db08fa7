/** A client that follows the changes through restarts and swaps gets each change once, in order. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Change, createClient } from '../../client/src/index.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import { keyCreated, newKeyText } from '../support/events.ts'
import { type Api, startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually } from '../support/scope.ts'
import { createStream, organizationsIn } from '../support/streams.ts'

const project = join(import.meta.dirname, '../..')
const PARTITIONS = 3
const seed = seedOfRun()
console.log(`seed ${seed}`)

test.concurrent('changes are followed through restarts of the API and the projector, a swap and a rollback', async t => {
  const random = createRandom(seed)
  const [org = '', other = ''] = organizationsIn(random, [1, 1], PARTITIONS)
  const key = newKeyText()
  const started = await startProjection(t, [keyCreated({ org_id: org, id: 'key_client', text: key })], {
    partitions: PARTITIONS,
  })
  const { topics, prefix } = started
  let { projector } = started
  let api: Api = await startApi(t, prefix)
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
  const projection = async (...args: string[]): Promise<void> => {
    const ran = await runCommand(['projection', ...args], settings)
    expect(ran.code, ran.said).toBe(0)
  }

  const ended = new AbortController()
  // Each API process has a port of its own.
  const base = 'http://127.0.0.1:1/api/v1'
  const client = createClient({
    baseUrl: base,
    key,
    signal: ended.signal,
    fetch: request => fetch(new Request(request.url.replace(base, api.url), request)),
  })
  const followed: Change[] = []
  const following = (async () => {
    for await (const change of client.follow()) followed.push(change)
  })().catch((error: unknown) => error)

  const stream = createStream(random, [org, other], PARTITIONS)
  const publish = async (records: number): Promise<void> => {
    for (let sent = 0; sent < records; sent += 10) await topics.publish(stream.take(10))
  }
  const steps: readonly (() => Promise<unknown>)[] = [
    () => publish(100),
    async () => {
      await api.stop()
      api = await startApi(t, prefix)
    },
    async () => {
      const publishing = publish(100)
      await api.kill()
      api = await startApi(t, prefix)
      await publishing
    },
    async () => {
      await projector.kill()
      projector = await startProjector(t, { topics, prefix })
    },
    () => projection('rebuild'),
    () =>
      eventually(() =>
        expect(projector.lines()).toContainEqual(
          expect.objectContaining({ generation: 'g2', msg: 'started to project the generation' }),
        ),
      ),
    () => projection('verify', 'g1', 'g2'),
    async () => void (await Promise.all([publish(60), projection('swap', 'g2')])),
    async () => void (await Promise.all([publish(60), projection('rollback')])),
    () => publish(40),
  ]
  for (const step of steps) await step()
  await untilCaughtUp(projector)

  const all = await Array.fromAsync(createClient({ baseUrl: api.url, key }).changes())
  const printed = jsonLines(await runCommand(['follow', '--org', org, '--once'], settings))
  expect(printed).toEqual(all)
  const rest = await runCommand(['follow', '--org', org, '--once', '--starting-after', all[9]?.id ?? ''], settings)
  expect(jsonLines(rest)).toEqual(all.slice(10))
  // npm passes on the signal that the terminal has sent to the whole group: it comes twice.
  const endless = spawn(process.execPath, ['tools/main.ts', 'follow', '--org', org], { env: settings, cwd: project })
  t.onTestFinished(async () => void endless.kill('SIGKILL'))
  let lines = ''
  endless.stdout.setEncoding('utf8').on('data', text => {
    lines += text
  })
  const stopped = once(endless, 'close')
  await eventually(() => expect(lines).toContain(`"id":"${all.at(-1)?.id}"`))
  for (let time = 1; time <= 2; time++) endless.kill('SIGINT')
  expect(await stopped).toEqual([0, null])
  const unknown = await runCommand(['follow', '--org', org, '--starting-after', 'payout_unknown'], settings)
  expect(unknown).toMatchObject({
    code: 1,
    said: expect.stringContaining('--starting-after: expected the id of a change'),
  })
  expect(all.length).toBeGreaterThan(50)
  await eventually(() => expect(followed.length).toBeGreaterThanOrEqual(all.length))
  ended.abort(new Error('enough'))
  expect(await following).toMatchObject({ message: 'enough' })
  expect(followed).toEqual(all)
})

test.concurrent('a wait outlasts the silence after which a connection is closed, and SIGTERM ends it at once', async t => {
  const key = newKeyText()
  const records = [keyCreated({ org_id: 'org_silent', id: 'key_client', text: key })]
  const { prefix } = await startProjection(t, records, { partitions: PARTITIONS })
  const api = await startApi(t, prefix)
  const ask = async (wait: number) => {
    const began = performance.now()
    const answer = await fetch(`${api.url}/changes?wait=${wait}`, { headers: { authorization: `Bearer ${key}` } })
    return { status: answer.status, text: await answer.text(), seconds: (performance.now() - began) / 1_000 }
  }
  const empty = { status: 200, text: '{"data":[],"has_more":false,"next_cursor":""}' }
  const untilWaiting = (count: number) =>
    eventually(async () => {
      const metrics = await (await fetch(`${api.adminUrl}/metrics`)).text()
      expect(metrics).toMatch(new RegExp(`waits_for_changes"[^\\n]* ${count}$`, 'm'))
    })
  // The first read of a new process may take longer than the few seconds that it has.
  await eventually(async () => expect(await ask(0)).toMatchObject(empty))
  // SOCKET_SILENCE_MAX is 30 s.
  const [short, stopped] = await Promise.all([
    ask(34),
    ask(60),
    untilWaiting(2)
      .then(() => untilWaiting(1))
      .then(() => api.stop()),
  ])
  expect(short).toMatchObject(empty)
  expect(short.seconds).toBeGreaterThan(33)
  expect(stopped).toMatchObject(empty)
  expect(stopped.seconds).toBeLessThan(60)
})
