/** The containers that the chart renders, as processes here: their commands, environment, files, probes and stop. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { BUILD_TIMEOUT_MS, exampleValues, renderChart } from '../support/helm.ts'
import {
  type Manifest,
  manifestOf,
  type Pod,
  parseManifests,
  type Secrets,
  servicePort,
  startPod,
} from '../support/pods.ts'
import { goProgram } from '../support/programs.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const pem = (name: string): string => readFileSync(join(import.meta.dirname, '../support/tls', name), 'utf8')
const certificate = pem('cert.pem')

/** Elasticsearch has no security here and ignores the API key. */
const secrets: Secrets = {
  elasticsearch: { 'api-key': 'ignored' },
  certificate: { 'tls.crt': certificate, 'tls.key': pem('key.pem') },
}
const files = {
  elasticsearch: { files: { ELASTICSEARCH_API_KEY_FILE: { secret: 'elasticsearch', key: 'api-key' } } },
  api: {
    files: {
      API_TLS_CERT_FILE: { secret: 'certificate', key: 'tls.crt' },
      API_TLS_KEY_FILE: { secret: 'certificate', key: 'tls.key' },
    },
  },
}

/** Renders the plain example with the servers of the tests, new topics and a new prefix. */
const render = async (scope: Scope, more: readonly object[]): Promise<{ manifests: Manifest[]; events: string }> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-values-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const name = `test.${randomBytes(6).toString('hex')}`
  const events = `${name}.events`
  const own = {
    kafka: {
      settings: {
        KAFKA_BROKERS: inject('kafkaBrokers'),
        KAFKA_EVENTS_TOPIC: events,
        KAFKA_API_KEYS_TOPIC: `${name}.api-keys`,
      },
    },
    elasticsearch: {
      settings: { ELASTICSEARCH_URL: inject('elasticsearchUrl'), ELASTICSEARCH_INDEX_PREFIX: createPrefix(scope) },
    },
  }
  const values: string[] = []
  for (const [index, content] of [own, ...more].entries()) {
    // JSON is YAML.
    const file = join(folder, `${index}.yaml`)
    await writeFile(file, JSON.stringify(content))
    values.push('-f', file)
  }
  return { manifests: parseManifests(await renderChart(...exampleValues('plain.yaml'), ...values)), events }
}

/** Waits as Kubernetes does: until the startup probe succeeds. Then the other probes succeed, too. */
const untilReady = async (pod: Pod): Promise<void> => {
  await eventually(async () => {
    expect(pod.exit(), pod.log()).toBeUndefined()
    expect(await pod.probe('startupProbe'), pod.log()).toBe(200)
  })
  expect([await pod.probe('readinessProbe'), await pod.probe('livenessProbe')], pod.log()).toEqual([200, 200])
}

/** The process has had SIGTERM. It ends before Kubernetes would kill it. */
const untilEnded = (pod: Pod): Promise<void> =>
  eventually(() => expect(pod.exit(), pod.log()).toEqual({ code: 0, signal: null }), { within: pod.stopWithin })

const statusWithTls = (address: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    request(address, { ca: certificate }, answer => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end()
  })

describe.skipIf(goProgram === undefined)('the processes of the chart', () => {
  test.for([
    { name: 'without secrets', more: [], scheme: 'http' },
    { name: 'with secrets as files', more: [files], scheme: 'https' },
  ])('start, answer their probes and stop, $name', { timeout: BUILD_TIMEOUT_MS }, async ({ more, scheme }, scope) => {
    const { manifests, events } = await render(scope, more)

    const topics = await startPod(scope, manifestOf(manifests, 'Job', 'commission-topics'), secrets)
    expect(await topics.exited, topics.log()).toEqual({ code: 0, signal: null })
    expect(topics.log()).toContain(`${events} created with 6 partitions`)
    // These exist by now. This deletes them at the end.
    await createTopics(scope, { named: { events, apiKeys: events.replace(/events$/, 'api-keys') } })

    const ofProjector = manifestOf(manifests, 'Deployment', 'commission-projector')
    const projector = await startPod(scope, ofProjector, secrets)
    await untilReady(projector)
    const ofApi = manifestOf(manifests, 'Deployment', 'commission-api')
    const startReady = async (): Promise<Pod> => {
      const pod = await startPod(scope, ofApi, secrets)
      await untilReady(pod)
      return pod
    }
    let api = await startReady()

    const receipts = servicePort(manifestOf(manifests, 'Service', 'commission-receipts'), ofProjector)
    expect((await fetch(`http://${projector.addressOf(receipts)}/asyncapi.json`)).status).toBe(200)
    const http = servicePort(manifestOf(manifests, 'Service', 'commission-api'), ofApi)
    const payouts = `${scheme}://${api.addressOf(http)}/api/v1/payouts`
    const status = scheme === 'https' ? statusWithTls(payouts) : fetch(payouts).then(answer => answer.status)
    expect(await status, api.log()).toBe(401)

    // While it drains, load balancers see that it stops. On a busy machine a look may be too late: another one stops.
    await eventually(async () => {
      if (api.exit() !== undefined) api = await startReady()
      process.kill(api.pid, 'SIGTERM')
      const look = async () => expect(await api.probe('readinessProbe'), api.log()).toBe(503)
      await eventually(look, { within: 10_000 })
    })
    await untilEnded(api)
    process.kill(projector.pid, 'SIGTERM')
    await untilEnded(projector)
  })
})
