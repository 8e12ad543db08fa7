/** Each alert of deploy/monitoring/rules.yml fires in its fault: real processes, faults and Prometheus. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { CONNECTIONS_MAX } from '../../api/limits.ts'
import { freePort } from '../../services/ports.ts'
import { type AlertFault, type AlertFaultName, alertFaults } from '../monitoring/alert-faults.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { rejectsOnSignal } from '../support/defects.ts'
import { keyCreated, newId, newKeyText, repRecorded } from '../support/events.ts'
import { projectorSettings, startApi, startProcess, startProjector, untilCaughtUp } from '../support/processes.ts'
import { prometheusProgram, redisProgram } from '../support/programs.ts'
import { type Prometheus, soonerRules, startPrometheus } from '../support/prometheus.ts'
import { type FaultProxy, startProxy } from '../support/proxy.ts'
import { createRedis } from '../support/redis.ts'
import { RULES } from '../support/run-prometheus.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { call, createPrefix, indexNamed } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const rules = soonerRules(await readFile(RULES, 'utf8'))
const SOON = { within: 100_000, every: 500 }
const PATIENTLY = { timeout: 240_000 }

type Given = {
  readonly projector?: Readonly<Record<string, string>>
  readonly api?: Readonly<Record<string, string>>
  /** Addresses of processes that the test starts later. */
  readonly later?: Readonly<Record<string, string>>
}

/** An installation with a rep and a key, and a Prometheus that has seen both processes and has no alert. */
const watchInstallation = async (scope: Scope, given: Given = {}) => {
  const topics = await createTopics(scope, { partitions: 1 })
  const prefix = createPrefix(scope)
  const [adminPort, org, key] = [String(await freePort()), newId('org'), newKeyText()]
  const settings = { PROJECTOR_ADMIN_PORT: adminPort, ...given.projector }
  const projector = await startProjector(scope, { topics, prefix, settings })
  const publishReps = (count: number) =>
    topics.publish(Array.from({ length: count }, () => repRecorded({ org_id: org, id: newId('rep') })))
  await topics.publish([keyCreated({ org_id: org, text: key })])
  await publishReps(1)
  await untilCaughtUp(projector)
  const api = await startApi(scope, prefix, { settings: given.api ?? {} })
  const targets = { projector: `127.0.0.1:${adminPort}`, api: new URL(api.adminUrl).host, ...given.later }
  // A busy machine may take a second for a scrape.
  const prometheus = await startPrometheus(scope, { targets, rules, scrapeSeconds: 2 })
  // Before the first scrape of a process, its absence is pending.
  await eventually(async () => {
    expect(await prometheus.query('up == 1')).toHaveLength(2)
    expect(await prometheus.alerts()).toEqual([])
  }, SOON)
  const ask = async (): Promise<number> => {
    const answer = await fetch(`${api.url}/reps`, { headers: { authorization: `Bearer ${key}` } })
    await answer.text()
    return answer.status
  }
  return { topics, prefix, settings, projector, api, prometheus, publishReps, ask }
}

type Expected = {
  readonly state?: 'pending' | 'firing'
  /** Runs before each look at the alerts. */
  readonly meanwhile?: () => Promise<unknown>
}

/** Waits until the alerts of a fault fire. Then no other may have fired. */
const expectAlerts = async (
  prometheus: Prometheus,
  name: AlertFaultName,
  { state = 'firing', meanwhile }: Expected = {},
): Promise<void> => {
  const { fires, mayFollow = [] }: AlertFault = alertFaults[name]
  await eventually(async () => {
    await meanwhile?.()
    const alerts = await prometheus.alerts()
    const reached = new Set(
      alerts.filter(alert => state === 'pending' || alert.state === state).map(({ name }) => name),
    )
    expect(fires.filter(name => !reached.has(name))).toEqual([])
  }, SOON)
  const fired = await prometheus.query('count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[10m]))')
  const allowed = new Set([...fires, ...mayFollow])
  expect(fired.map(({ metric }) => metric.alertname ?? '').filter(name => !allowed.has(name))).toEqual([])
  expect(await prometheus.ruleErrors()).toEqual([])
}

const elasticsearchProxy = async (scope: Scope): Promise<{ proxy: FaultProxy; settings: Record<string, string> }> => {
  const [first = ''] = inject('elasticsearchUrl').split(',')
  const proxy = await startProxy(scope, new URL(first).host)
  return { proxy, settings: { ELASTICSEARCH_URL: `http://${proxy.address}` } }
}

type Declare = (name: string, options: typeof PATIENTLY, run: (scope: Scope) => Promise<void>) => void

const tried = new Set<AlertFaultName>()
const fault = (name: AlertFaultName, run: (scope: Scope) => Promise<void>, declare: Declare = test): void => {
  tried.add(name)
  declare(name, PATIENTLY, run)
}

describe.skipIf(prometheusProgram === undefined).concurrent('alerts fire, and no others, when', () => {
  fault('Elasticsearch accepts no write of an index while records come', async scope => {
    const { prefix, prometheus, publishReps } = await watchInstallation(scope)
    const { status } = await call('PUT', `/${indexNamed(prefix, 'reps')}/_settings`, { 'index.blocks.write': true })
    expect(status).toBe(200)
    const meanwhile = () => publishReps(1)
    await expectAlerts(prometheus, 'Elasticsearch accepts no write of an index while records come', { meanwhile })
  })

  fault('records come faster than a slow Elasticsearch takes them', async scope => {
    const { proxy, settings } = await elasticsearchProxy(scope)
    const { prometheus, publishReps } = await watchInstallation(scope, { projector: settings })
    await proxy.inject({ kind: 'latency', milliseconds: 300 })
    await publishReps(11_000)
    const meanwhile = () => publishReps(1_000)
    await expectAlerts(prometheus, 'records come faster than a slow Elasticsearch takes them', { meanwhile })
  })

  fault('the API does not reach Elasticsearch', async scope => {
    const { proxy, settings } = await elasticsearchProxy(scope)
    const { prometheus, ask } = await watchInstallation(scope, { api: settings })
    expect(await ask()).toBe(200)
    await proxy.inject({ kind: 'away' })
    const meanwhile = async () => expect(await ask()).toBe(503)
    await expectAlerts(prometheus, 'the API does not reach Elasticsearch', { meanwhile })
  })

  fault('the projector is killed and started again, three times', async scope => {
    const { prometheus, projector, topics, prefix, settings } = await watchInstallation(scope)
    const started = async () => (await prometheus.query('process_start_time_seconds{job="projector"}'))[0]?.value ?? 0
    let running: Pick<typeof projector, 'kill'> = projector
    for (let time = 0; time < 3; time++) {
      const before = await started()
      await running.kill()
      running = startProcess(scope, 'projector/main.ts', projectorSettings({ topics, prefix, settings }))
      await eventually(async () => expect(await started()).toBeGreaterThan(before), SOON)
    }
    await expectAlerts(prometheus, 'the projector is killed and started again, three times')
  })

  fault('the API is killed', async scope => {
    const { prometheus, api } = await watchInstallation(scope)
    await api.kill()
    await expectAlerts(prometheus, 'the API is killed')
  })

  fault('the projector is frozen', async scope => {
    const { prometheus, projector } = await watchInstallation(scope)
    projector.freeze()
    await expectAlerts(prometheus, 'the projector is frozen')
  })

  fault('a projector joins the group beside a frozen one', async scope => {
    const port = String(await freePort())
    const later = { second: `127.0.0.1:${port}` }
    const { prometheus, projector, topics, prefix } = await watchInstallation(scope, { later })
    // The group waits for the frozen member until its session ends.
    await startProjector(scope, { topics, prefix, settings: { PROJECTOR_ADMIN_PORT: port } })
    projector.freeze()
    await expectAlerts(prometheus, 'a projector joins the group beside a frozen one', { state: 'pending' })
  })

  fault('a record breaks a rule', async scope => {
    const { prometheus, topics } = await watchInstallation(scope)
    await topics.publish([{ ...repRecorded({ org_id: newId('org') }), value: '{' }])
    await expectAlerts(prometheus, 'a record breaks a rule')
  })

  fault('an index of a spare generation is deleted', async scope => {
    const { prometheus, projector, topics, prefix } = await watchInstallation(scope)
    const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
    const ran = await runCommand(['projection', 'rebuild'], settings)
    expect(ran, ran.said).toMatchObject({ code: 0 })
    await eventually(async () => expect((await projector.ask('/status')).text).toContain('"g2"'), SOON)
    expect((await call('DELETE', `/${prefix}-g2-payouts`)).status).toBe(200)
    await expectAlerts(prometheus, 'an index of a spare generation is deleted')
  })

  fault('the clock of the projector is a minute ahead', async scope => {
    const folder = await mkdtemp(join(tmpdir(), 'wrong-clock-'))
    scope.onTestFinished(() => rm(folder, { recursive: true }))
    const file = join(folder, 'milliseconds')
    await writeFile(file, '0')
    const preload = `--import=${join(import.meta.dirname, '../support/wrong-clock.ts')}`
    const projector = { WRONG_CLOCK_FILE: file, NODE_OPTIONS: preload }
    const { prometheus } = await watchInstallation(scope, { projector })
    await writeFile(file, '60000')
    await expectAlerts(prometheus, 'the clock of the projector is a minute ahead')
  })

  fault('a promise of the API is rejected and nobody listens', async scope => {
    const { prometheus, api } = await watchInstallation(scope, { api: rejectsOnSignal })
    process.kill(api.pid, 'SIGUSR2')
    await expectAlerts(prometheus, 'a promise of the API is rejected and nobody listens')
  })

  fault('more clients connect than the API accepts', async scope => {
    const { prometheus, api } = await watchInstallation(scope)
    const port = Number(new URL(api.url).port)
    const sockets = Array.from({ length: CONNECTIONS_MAX + 50 }, () =>
      connect(port, '127.0.0.1').on('error', () => undefined),
    )
    scope.onTestFinished(async () => {
      for (const socket of sockets) socket.destroy()
    })
    await expectAlerts(prometheus, 'more clients connect than the API accepts')
  })

  const killRedis = async (scope: Scope) => {
    const redis = await createRedis(scope)
    await redis.start()
    const { prometheus, api, ask } = await watchInstallation(scope, { api: { REDIS_URL: redis.url } })
    const isShared = async () =>
      (await (await fetch(`${api.adminUrl}/metrics`)).text()).includes('\napi_rate_shared 1\n')
    await eventually(async () => expect(await isShared()).toBe(true))
    await redis.kill()
    const meanwhile = async () => expect(await ask()).toBe(200)
    await expectAlerts(prometheus, 'Redis is killed', { meanwhile })
  }
  fault('Redis is killed', killRedis, test.skipIf(redisProgram === undefined))
})

test('every fault of the table is made here', () => {
  expect([...tried].sort()).toEqual(Object.keys(alertFaults).sort())
})
