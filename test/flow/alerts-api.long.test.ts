/** The alerts about the API fire in their faults: real processes and Prometheus, rules with shorter windows. */
import { connect, type Socket } from 'node:net'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { CONNECTIONS_MAX } from '../../api/limits.ts'
import { apiFaults } from '../monitoring/alert-faults.ts'
import { rejectsOnSignal } from '../support/defects.ts'
import { prometheusProgram, redisProgram } from '../support/programs.ts'
import { type FaultProxy, startProxy } from '../support/proxy.ts'
import { createRedis, type Redis } from '../support/redis.ts'
import { eventually, fileScope } from '../support/scope.ts'
import {
  expectAlerts,
  type FaultSteps,
  type WatchedInstallation,
  watchInstallation,
} from '../support/watched-installation.ts'

type Name = keyof typeof apiFaults
type Declare = (name: string, run: () => Promise<void>) => void
const tried = new Set<Name>()

// One installation for all: each fault is healed, or harms no later one. The last one ends the API.
describe.skipIf(prometheusProgram === undefined)('alerts fire, and no others, when', () => {
  const scope = fileScope()
  let watched: WatchedInstallation
  let elasticsearch: FaultProxy
  let redis: Redis

  beforeAll(async () => {
    const [url = ''] = inject('elasticsearchUrl').split(',')
    elasticsearch = await startProxy(scope, new URL(url).host)
    redis = await createRedis(scope)
    if (redisProgram !== undefined) await redis.start()
    const shared = redisProgram === undefined ? {} : { REDIS_URL: redis.url }
    const api = { ...rejectsOnSignal, ...shared, ELASTICSEARCH_URL: `http://${elasticsearch.address}` }
    watched = await watchInstallation(scope, { api })
  })

  const fault = (name: Name, stepsOf: () => FaultSteps, declare: Declare = test): void => {
    tried.add(name)
    declare(name, () => expectAlerts(watched.prometheus, apiFaults[name], stepsOf()))
  }

  fault('a promise of the API is rejected and nobody listens', () => ({
    begin: () => process.kill(watched.api.pid, 'SIGUSR2'),
  }))

  fault('more clients connect than the API accepts', () => {
    const port = Number(new URL(watched.api.url).port)
    const sockets = new Set<Socket>()
    // On a busy machine the API accepts a burst of connections slowly. The kernel drops some and delays others, and
    // the API closes the first ones after 10 s. So one burst may never reach the limit, and further connections follow.
    // Each client sends a byte: a silent client does not learn that the kernel dropped its connection.
    const connectFurther = async (): Promise<void> => {
      while (sockets.size < CONNECTIONS_MAX + 50) {
        const socket = connect(port, '127.0.0.1').on('error', () => undefined)
        socket.write('G')
        sockets.add(socket.once('close', () => sockets.delete(socket)))
      }
    }
    return {
      begin: connectFurther,
      meanwhile: connectFurther,
      heal: async () => sockets.forEach(socket => void socket.destroy()),
    }
  })

  const killRedis = (): FaultSteps => ({
    begin: async () => {
      const isShared = async () =>
        (await (await fetch(`${watched.api.adminUrl}/metrics`)).text()).includes('\napi_rate_shared 1\n')
      await eventually(async () => expect(await isShared()).toBe(true))
      await redis.kill()
    },
    // Redis counts this request, and it reads no record: on a busy machine a slow read would fire another alert.
    meanwhile: async () => expect(await watched.ask('/nowhere')).toBe(404),
  })
  fault('Redis is killed', killRedis, test.skipIf(redisProgram === undefined))

  fault('the API does not reach Elasticsearch', () => ({
    begin: async () => {
      await eventually(async () => expect(await watched.ask()).toBe(200))
      await elasticsearch.inject({ kind: 'away' })
    },
    meanwhile: async () => expect(await watched.ask()).toBe(503),
    heal: elasticsearch.heal,
  }))

  fault('the API is killed', () => ({ begin: () => watched.api.kill() }))
})

test('every fault of the table is made here', () => {
  expect([...tried].sort()).toEqual(Object.keys(apiFaults).sort())
})
