/** The alerts about the projector fire in their faults: real processes and Prometheus, rules with shorter windows. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Consumer } from 'kafkajs'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { assignerOf } from '../../core/log/follow/group.ts'
import { projectorFaults } from '../monitoring/alert-faults.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { newId, repRecorded } from '../support/events.ts'
import { joinGroup } from '../support/group-member.ts'
import { projectorSettings, type RunningProcess, startProcess, untilCaughtUp } from '../support/processes.ts'
import { prometheusProgram } from '../support/programs.ts'
import { type FaultProxy, startProxy } from '../support/proxy.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { call, indexNamed, indexWith } from '../support/stored.ts'
import {
  expectAlerts,
  type FaultSteps,
  SOON,
  type WatchedInstallation,
  watchInstallation,
} from '../support/watched-installation.ts'

const preload = `--import=${join(import.meta.dirname, '../support/wrong-clock.ts')}`
type Name = keyof typeof projectorFaults
const tried = new Set<Name>()

// One installation for all: each fault is healed, or harms no later one. The last ones end the projector.
describe.skipIf(prometheusProgram === undefined)('alerts fire, and no others, when', () => {
  const scope = fileScope()
  let watched: WatchedInstallation
  let elasticsearch: FaultProxy
  let clockFile: string
  let running: RunningProcess

  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'wrong-clock-'))
    scope.onTestFinished(() => rm(folder, { recursive: true }))
    clockFile = join(folder, 'milliseconds')
    await writeFile(clockFile, '0')
    const [url = ''] = inject('elasticsearchUrl').split(',')
    elasticsearch = await startProxy(scope, new URL(url).host)
    const projector = {
      WRONG_CLOCK_FILE: clockFile,
      NODE_OPTIONS: preload,
      ELASTICSEARCH_URL: `http://${elasticsearch.address}`,
    }
    watched = await watchInstallation(scope, { projector })
    running = watched.projector
  })

  const fault = (name: Name, stepsOf: () => FaultSteps): void => {
    tried.add(name)
    test(name, () => expectAlerts(watched.prometheus, projectorFaults[name], stepsOf()))
  }
  const untilQuiet = () => untilCaughtUp(watched.projector)

  fault('a record breaks a rule', () => ({
    begin: () => watched.topics.publish([{ ...repRecorded({ org_id: newId('org') }), value: '{' }]),
  }))

  // The generation stays failed: to drop it takes 20 seconds, and later faults do not concern it.
  fault('an index of a spare generation is deleted', () => {
    const { topics, prefix, projector } = watched
    return {
      begin: async () => {
        const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
        const ran = await runCommand(['projection', 'rebuild'], settings)
        expect(ran, ran.said).toMatchObject({ code: 0 })
        await eventually(async () => expect((await projector.ask('/status')).text).toContain('"g2"'), SOON)
        expect((await call('DELETE', `/${prefix}-g2-payouts`)).status).toBe(200)
      },
    }
  })

  fault('Elasticsearch accepts no write of an index while records come', () => {
    const forbidWrites = async (value: boolean) => {
      const path = `/${indexWith(indexNamed(watched.prefix, 'reps'))}/_settings`
      expect((await call('PUT', path, { 'index.blocks.write': value })).status).toBe(200)
    }
    return {
      begin: () => forbidWrites(true),
      meanwhile: () => watched.publishReps(1),
      heal: async () => {
        await forbidWrites(false)
        await untilQuiet()
      },
    }
  })

  fault('records come faster than a slow Elasticsearch takes them', () => {
    let before = 0
    const projected = async () =>
      (await watched.projector.status()).reduce((sum, { searchable_to }) => sum + searchable_to, 0)
    return {
      begin: async () => {
        await elasticsearch.inject({ kind: 'latency', milliseconds: 300 })
        await watched.publishReps(11_000)
        before = await projected()
      },
      // More than was projected since the last look, however slow this process is.
      meanwhile: async () => {
        const now = await projected()
        await watched.publishReps(Math.max(1_000, 2 * (now - before)))
        before = now
      },
      heal: async () => {
        await elasticsearch.heal()
        await untilQuiet()
      },
    }
  })

  fault('a projector of another installation is in the consumer group', () => {
    const { topics, prefix } = watched
    let other: Consumer | undefined
    return {
      // A member that joins in the moment of a projector's start is not refused. This one has one of two partitions.
      begin: async () => {
        other = await joinGroup(topics, `${prefix}-g1`, assignerOf({ prefix: 'other', elasticsearch: null }))
      },
      heal: async () => {
        await other?.disconnect()
        await untilQuiet()
      },
    }
  })

  // A clock that goes back stops the heartbeats of the Kafka client: the next faults end this process.
  fault('the clock of the projector is a minute ahead', () => ({
    begin: () => writeFile(clockFile, '60000'),
    heal: () => writeFile(clockFile, '0'),
  }))

  fault('the projector is killed and started again, three times', () => {
    const { prometheus, topics, prefix, settings } = watched
    const started = async () => (await prometheus.query('process_start_time_seconds{job="projector"}'))[0]?.value ?? 0
    const restart = async () => {
      const before = await started()
      await running.kill()
      running = startProcess(scope, 'projector/main.ts', projectorSettings({ topics, prefix, settings }))
      await eventually(async () => expect(await started()).toBeGreaterThan(before), SOON)
    }
    return {
      begin: async () => {
        for (let restarts = 0; restarts < 3; restarts += 1) await restart()
      },
    }
  })

  fault('the projector is frozen', () => ({
    begin: () => running.freeze(),
  }))

  // As after `adopt`. The other partition has the position that it had: nobody writes any more.
  fault('a partition waits to be read again', () => ({
    begin: async () => {
      const path = `/${watched.prefix}-control/_update/position:g1:0`
      const changed = await call('POST', path, { doc: { body: { serve_from: Number.MAX_SAFE_INTEGER } } })
      expect(changed.status).toBe(200)
    },
  }))
})

test('every fault of the table is made here', () => {
  expect([...tried].sort()).toEqual(Object.keys(projectorFaults).sort())
})
