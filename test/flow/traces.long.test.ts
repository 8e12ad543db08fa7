/** Traces of real processes that load an OpenTelemetry SDK with `--import`. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { contentIn } from '../support/canary.ts'
import { keyCreated, newId, newKeyText, repRecorded } from '../support/events.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const preload = join(import.meta.dirname, '..', 'support', 'trace-preload.ts')
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const [PUBLISHER, CLIENT] = ['00f067aa0ba902b7', '53995c3f42cd8ad8']

type Span = {
  readonly name: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly traceId: string
  readonly parent?: string
  readonly links: readonly string[]
}

test('a batch links the spans of its publishers, a request continues the trace of its client, and no span has content', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-spans-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const fileOf = (name: string): string => join(folder, name)
  const settingsOf = (name: string) => ({ NODE_OPTIONS: `--import=${preload}`, SPANS_FILE: fileOf(name) })
  const spansOf = (name: string): Span[] =>
    existsSync(fileOf(name))
      ? readFileSync(fileOf(name), 'utf8')
          .trim()
          .split('\n')
          .map(line => JSON.parse(line))
      : []

  const topics = await createTopics(t)
  const prefix = createPrefix(t)
  const org_id = newId('org')
  const rep = repRecorded({ org_id, name: 'canary' })
  const key = newKeyText()
  const traced = { ...rep, headers: { ...rep.headers, ce_traceparent: `00-${TRACE}-${PUBLISHER}-01` } }
  await topics.publish([keyCreated({ org_id, text: key }), traced])
  const projector = await startProjector(t, { topics, prefix, settings: settingsOf('projector') })
  await untilCaughtUp(projector)
  const api = await startApi(t, prefix, { settings: settingsOf('api') })
  const headers = { authorization: `Bearer ${key}`, traceparent: `00-${TRACE}-${CLIENT}-01` }
  const answer = await eventually(async () => {
    const given = await fetch(`${api.url}/reps/rep_1`, { headers })
    expect(given.status).toBe(200)
    return given
  })

  await eventually(() => {
    const batches = spansOf('projector').filter(({ attributes }) => attributes['messaging.destination.name'])
    expect(batches.flatMap(({ links }) => links)).toEqual([PUBLISHER])
    expect(spansOf('api').filter(({ parent }) => parent === CLIENT)).toContainEqual({
      name: 'GET /api/v1/reps/:id',
      traceId: TRACE,
      parent: CLIENT,
      links: [],
      attributes: {
        'http.route': '/api/v1/reps/:id',
        'http.request.method': 'GET',
        'http.response.status_code': 200,
        'commission.request_id': answer.headers.get('x-request-id'),
      },
    })
  })
  for (const name of ['projector', 'api']) expect(contentIn(readFileSync(fileOf(name), 'utf8'))).toEqual([])
})
