/** The port of receipts, for publishers that must not reach the admin port. The AsyncAPI document of both ports. */
import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { asyncapiErrors } from '../support/asyncapi.ts'
import { describedReceipt } from '../support/described-receipts.ts'
import { newId, repRecorded } from '../support/events.ts'
import { expectRefused, type Projector, projectorSettings, startProcess, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix, indicesOf } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const setUp = async (scope: Scope) => {
  const { topics, projector } = await startProjection(scope, [], { settings: { RECEIPTS_PORT: '0' } })
  return { topics, projector, url: await receiptsUrl(projector) }
}
const receiptsUrl = ({ lines }: Projector): Promise<string> =>
  eventually(() => {
    const line = lines().find(({ msg }) => msg === 'the port of receipts listens')
    expect(line).toBeDefined()
    return `http://127.0.0.1:${(line as { address: { port: number } }).address.port}`
  })

test('the port of receipts serves receipts and the AsyncAPI document, and no page of the admin port', async t => {
  const { topics, projector, url } = await setUp(t)
  const [stored] = await topics.publish([repRecorded({ org_id: newId('org') })])
  await untilCaughtUp(projector)
  const at = `/receipts/${topics.events}/${stored?.partition}` as const
  for (const path of [
    `${at}/${stored?.offset}?wait=30`,
    `${at}?from=0&to=5`,
    `${at}?from=5&to=0`,
    '/receipts/other/0/0',
  ] as const) {
    // On a busy machine one of the two may say that a read took too long.
    await eventually(async () => {
      const answer = await fetch(`${url}${path}`)
      const { status, text } = await projector.ask(path)
      expect([answer.status, await answer.text()]).toEqual([status, text])
      expect(describedReceipt(path, status, JSON.parse(text))).toEqual([])
    })
  }
  for (const page of ['/livez', '/readyz', '/metrics', '/status', '/']) {
    const answer = await fetch(`${url}${page}`)
    expect(answer.status).toBe(404)
    const { paths } = (await answer.json()) as { paths: string[] }
    expect(paths).toEqual(['/asyncapi.json', expect.stringContaining('/receipts/'), expect.stringContaining('?from=')])
  }
})

test('/asyncapi.json of both ports has the topics, partitions and brokers in force, and no secret', async t => {
  const { topics, projector, url } = await setUp(t)
  await untilCaughtUp(projector)
  const answer = await fetch(`${url}/asyncapi.json`)
  const document = (await answer.json()) as Record<string, unknown>
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
  expect(asyncapiErrors(document)).toEqual([])
  const channel = (address: string, partitions: number) =>
    expect.objectContaining({ address, bindings: { kafka: expect.objectContaining({ topic: address, partitions }) } })
  expect(document.channels).toEqual({ events: channel(topics.events, 3), apiKeys: channel(topics.apiKeys, 1) })
  const hosts = topics.brokers.split(',').map(host => expect.objectContaining({ host, protocol: 'kafka' }))
  expect(Object.values(document.servers as object)).toEqual(hosts)
  expect(JSON.parse((await projector.ask('/asyncapi.json')).text)).toEqual(document)
})

test('a publisher that waits at the port of receipts is answered when the projector stops, and it stops in time', async t => {
  const { topics, projector, url } = await setUp(t)
  await untilCaughtUp(projector)
  const asked = fetch(`${url}/receipts/${topics.events}/0/100?wait=60`).then(answer => answer.json())
  const run = fetch(`${url}/receipts/${topics.events}/0?from=0&to=100&wait=60`).then(answer => answer.status)
  await eventually(async () =>
    expect((await projector.ask('/metrics')).text).toMatch(/^commission_receipts_waiting 2$/m),
  )
  // They wait for 60 s. A projector that does not end within 9 s ends with code 1.
  const stopped = projector.stop()
  expect([await asked, await run]).toEqual([expect.objectContaining({ state: 'not_yet' }), 503])
  expect(await stopped).toEqual({ code: 0, signal: null })
})

test('a port of receipts in use stops the projector before anything is written', async t => {
  const topics = await createTopics(t)
  const prefix = createPrefix(t)
  const other = createServer()
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  t.onTestFinished(() => void other.close())
  const { port } = other.address() as { port: number }
  const settings = projectorSettings({ topics, prefix, settings: { RECEIPTS_PORT: String(port) } })
  const child = startProcess(t, 'projector/main.ts', settings)
  expect(await expectRefused(child, 'port_unavailable')).toContain(`127.0.0.1:${port}`)
  expect(await indicesOf(prefix)).toEqual([])
})
