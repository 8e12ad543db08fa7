import { describe, expect, inject, test } from 'vitest'
import { freePort } from '../../services/ports.ts'
import { keyCreated, newId, newKeyText, repRecorded } from '../support/events.ts'
import { type LogLine, type RunningProcess, startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix, indicesOf } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

describe.concurrent('a service that starts later', () => {
  const inTheWay = ({ lines }: RunningProcess, part: string): LogLine[] => lines().filter(line => line.part === part)

  test.for([
    ['kafka', 'KAFKA_BROKERS', ''],
    ['elasticsearch', 'ELASTICSEARCH_URL', 'http://'],
  ] as const)(
    'without %s the projector is alive but not ready, logs that once, and continues when the service starts',
    async (given, t) => {
      const [part, setting, scheme] = given
      const topics = await createTopics(t)
      const prefix = createPrefix(t)
      const port = await freePort()
      const address = `${scheme}127.0.0.1:${port}`
      const projector = await startProjector(t, { topics, prefix, settings: { [setting]: address } })

      await eventually(async () => {
        const { status, text } = await projector.ask('/readyz')
        expect(status).toBe(503)
        expect(JSON.parse(text)).toMatchObject({
          ready: false,
          reasons: { [part]: expect.stringMatching(/not answer/) },
        })
      })
      expect((await projector.ask('/livez')).status).toBe(200)
      expect((await projector.ask('/metrics')).status).toBe(200)
      expect(await indicesOf(prefix)).toEqual([])

      const target = part === 'kafka' ? topics.brokers : new URL(inject('elasticsearchUrl')).host
      await startProxy(t, target, { port })
      await topics.publish([repRecorded({ org_id: newId('org') })])
      await untilCaughtUp(projector)
      await eventually(async () => expect((await projector.ask('/readyz')).status).toBe(200))
      const said = () => inTheWay(projector, part).map(({ msg }) => msg)
      // On a busy machine the service may be slow once more.
      await eventually(() => expect(said().slice(0, 2)).toEqual(['does not work; trying again', 'works again']))
    },
  )

  test('a projector that waits for a service stops at once when it is told to', async t => {
    const topics = await createTopics(t)
    const settings = { KAFKA_BROKERS: `127.0.0.1:${await freePort()}` }
    const projector = await startProjector(t, { topics, prefix: createPrefix(t), settings })
    await eventually(() => expect(inTheWay(projector, 'kafka')).toHaveLength(1))
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
  })

  test('without elasticsearch the API is alive but not ready, answers 503, logs that once, and continues later', async t => {
    const topics = await createTopics(t)
    const prefix = createPrefix(t)
    const org = newId('org')
    const text = newKeyText()
    const projector = await startProjector(t, { topics, prefix })
    await topics.publish([repRecorded({ org_id: org }), keyCreated({ org_id: org, text })])
    await untilCaughtUp(projector)

    const port = await freePort()
    const settings = { ELASTICSEARCH_URL: `http://127.0.0.1:${port}` }
    const api = await startApi(t, prefix, { settings, ready: false })
    const answer = () => fetch(`${api.url}/reps`, { headers: { authorization: `Bearer ${text}` } })
    expect((await fetch(`${api.adminUrl}/livez`)).status).toBe(200)
    await eventually(async () => {
      const readiness = await fetch(`${api.adminUrl}/readyz`)
      expect(readiness.status).toBe(503)
      expect(await readiness.json()).toMatchObject({ ready: false, reasons: [expect.any(String)] })
    })
    const refused = await answer()
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toMatch(/^[0-9]+$/)
    expect(await refused.json()).toMatchObject({ error: { code: 'unavailable' } })

    await startProxy(t, new URL(inject('elasticsearchUrl')).host, { port })
    await eventually(async () => expect((await fetch(`${api.adminUrl}/readyz`)).status).toBe(200))
    await eventually(async () => expect((await answer()).status).toBe(200))
    await eventually(() => expect(api.log().match(/not ready yet/g)).toHaveLength(1))
  })
})
