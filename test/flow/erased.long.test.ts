/**
 * After an erasure the texts of the person are nowhere: neither in the files of Kafka and Elasticsearch, nor in
 * archives, exports, logs, or the heaps of our processes. The test has servers of its own, so that it can search their
 * files; of the Java processes it searches files only.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { shortLived } from '../../services/service.ts'
import { startServer } from '../../services/services.ts'
import { checkpointNow } from '../support/checkpoints.ts'
import { createClient } from '../support/client.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  newKeyText,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createKeys, seal } from '../support/seal.ts'
import { filesWith } from '../support/search-files.ts'
import { call, createPrefix, everythingProjected } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

/**
 * The parts of the texts that are searched for. They have no four letters in common: Elasticsearch compresses stored
 * fields with LZ4, which leaves a part as it is only where it comes for the first time.
 */
const SECRETS = ['Perdita Vorgebull', 'wimblox@zugmail', 'Tresor 4711'] as const
const OPEN = 'Yolanda Quist'
const PARKED_OPEN = 'Fach 9038'
const org = 'org_a'

/** A folder for the data of servers, exports and snapshots, removed at the end. */
const createFolder = (scope: Scope): string => {
  const folder = mkdtempSync(join(tmpdir(), 'erased-'))
  scope.onTestFinished(async () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const startServers = async (scope: Scope, folder: string) => {
  const environment = {
    ...process.env,
    ...{ KAFKA_BROKERS: undefined, ELASTICSEARCH_URL: undefined, COMMISSION_SERVICES: 'jvm', TMPDIR: folder },
  }
  const start = async (which: 'kafka' | 'elasticsearch', heap: string) => {
    const service = await startServer(which, { say: () => undefined, environment, [which]: { ...shortLived, heap } })
    scope.onTestFinished(() => service[Symbol.asyncDispose]())
    return service.address
  }
  const [kafka, elasticsearch] = await Promise.all([start('kafka', '256m'), start('elasticsearch', '512m')])
  return { kafka, elasticsearch }
}

test('the texts of an erased person are found nowhere, and nothing else changes', async t => {
  const folder = createFolder(t)
  const { kafka, elasticsearch } = await startServers(t, folder)
  const topics = await createTopics(t, { partitions: 1, kafka })
  const prefix = createPrefix(t, elasticsearch)
  const keys = createKeys(t, ['k1', 'k2'])
  const settings = { ELASTICSEARCH_URL: elasticsearch, SEAL_KEYS_DIR: keys.directory }
  const commands = { ...commandSettings(topics, prefix), ...settings, KAFKA_GROUP_ID: prefix }
  const NODE_OPTIONS = `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${folder}`
  const projector = await startProjector(t, {
    ...{ topics, prefix, settings: { ELASTICSEARCH_URL: elasticsearch, NODE_OPTIONS } },
  })
  const text = newKeyText()
  const [name, email, label] = [`Canary ${SECRETS[0]}`, `canary.${SECRETS[1]}`, `Canary ${SECRETS[2]}`] as const
  const name1 = seal(name, { org, record: 'rep_1', field: 'name', keyId: 'k1' })
  await topics.publish([
    keyCreated({ org_id: org, text }),
    periodRecorded({ org_id: org }),
    repRecorded({
      org_id: org,
      name: name1,
      email: seal(email, { org, record: 'rep_1', field: 'email', keyId: 'k1' }),
    }),
    repRecorded({ org_id: org, id: 'rep_2', name: seal('Bo', { org, record: 'rep_2', field: 'name', keyId: 'k2' }) }),
    repRecorded({ org_id: org, id: 'rep_3', name: `Canary ${OPEN}` }),
    payoutCalculated({ org_id: org }),
    payrollRecorded({
      org_id: org,
      destination: {
        type: 'other',
        label: seal(label, { org, record: 'payroll_1', field: 'destination.label', keyId: 'k1' }),
      },
    }),
    // Parked: the period is not known.
    payrollRecorded({
      org_id: org,
      id: 'payroll_9',
      period_id: 'period_9',
      destination: {
        type: 'other',
        label: seal(label, { org, record: 'payroll_9', field: 'destination.label', keyId: 'k1' }),
      },
    }),
    payrollRecorded({
      ...{
        org_id: org,
        id: 'payroll_8',
        rep_id: 'rep_3',
        period_id: 'period_9',
        destination: { type: 'other', label: `Canary ${PARKED_OPEN}` },
      },
    }),
  ])
  await untilCaughtUp(projector)
  const api = await startApi(t, prefix, { settings: { ...settings, NODE_OPTIONS } })
  const client = createClient([api], text)
  const paths = ['/reps', '/payroll_files', '/changes', '/reps/rep_1', '/reps/rep_1?as_of=payroll_1']
  const ofOthers = ['/reps/rep_2', '/reps/rep_3', '/payouts', '/periods', '/reps/rep_2?as_of=payroll_1']
  const answersOfOthers = () => Promise.all(ofOthers.map(async path => [path, (await client.askInTime(path)).text]))
  const before = await Promise.all(paths.map(path => client.askInTime(path)))
  const beforeOfOthers = await answersOfOthers()
  for (const { text } of before.slice(0, 3)) expect(SECRETS.some(secret => text.includes(secret))).toBe(true)

  const run = async (...args: string[]) => {
    const ran = await runCommand(args, commands)
    expect(ran.code, ran.said).toBe(0)
    expect(ran.said).not.toMatch(/canary/i)
    return ran
  }
  const exported = (name: string) => ['projection', 'export', '--org', org, '--out', join(folder, name)]
  await run(...exported('sealed'))
  await run('archive', '--to', join(folder, 'archive-before'))
  await run(...exported('opened'), '--open')
  await run(...exported('copy'), '--open', '--add')
  expect(filesWith(join(folder, 'opened'), SECRETS[0])).toEqual(['reps.ndjson'])
  expect(filesWith(join(folder, 'sealed'), name1)).toEqual(['reps.ndjson'])
  rmSync(join(folder, 'opened'), { recursive: true })
  const stored = await everythingProjected(prefix)
  const checkpoint = await checkpointNow(t, prefix, text, elasticsearch)

  const [report] = jsonLines(await run('subjects', 'report', org, 'rep_1', '--json'))
  expect(report).toMatchObject({ generations: [{ generation: 'g1', versions: 1, labels: 1, parked: 1 }] })
  const [receipt] = jsonLines(await run('subjects', 'erase', org, 'rep_1', '--confirm', 'rep_1', '--json'))
  expect(receipt).toMatchObject({ key_id: 'k1', sealed_texts: 4 })
  await eventually(async () => expect((await client.askInTime('/reps/rep_1')).text).toContain('"erased":true'))
  for (const path of paths) {
    const { status, text } = await client.askInTime(path)
    expect([path, status, SECRETS.filter(secret => text.includes(secret)), text.includes('"erased":true')]).toEqual([
      ...[path, 200, [], true],
    ])
  }
  const grown = await runCommand([...exported('copy'), '--open', '--add'], commands)
  expect([grown.code, grown.said]).toEqual([1, expect.stringContaining('forgotten since: rep_1. Make a copy anew: ')])
  expect(grown.said).not.toMatch(/canary/i)
  rmSync(join(folder, 'copy'), { recursive: true })
  expect((await client.askInTime('/reps')).text).toContain('"name":"Bo"')
  expect(await answersOfOthers()).toEqual(beforeOfOthers)

  // A copy from before is still proved.
  expect(await checkpointNow(t, prefix, text, elasticsearch)).toEqual(checkpoint)

  // Documents are what was published, also in a new generation.
  expect(await everythingProjected(prefix)).toEqual(stored)
  await run('projection', 'rebuild')
  await run('projection', 'verify', 'g1', 'g2')
  await run(...exported('after'), '--open')
  await run('archive', '--to', join(folder, 'archive-after'))
  await call('POST', `/${prefix}-*/_flush?force=true`)
  await call('POST', `/${prefix}-*/_forcemerge?max_num_segments=1`)

  for (const { pid } of [api, projector]) process.kill(pid, 'SIGUSR2')
  const heaps = await eventually(() => {
    const snapshots = readdirSync(folder).filter(file => file.endsWith('.heapsnapshot'))
    expect(snapshots.length).toBe(2)
    for (const file of snapshots) expect(readFileSync(join(folder, file), 'utf8').endsWith('}')).toBe(true)
    return snapshots
  })
  const logs = [projector.log(), api.log()].join()
  for (const secret of SECRETS) {
    expect([secret, filesWith(folder, secret), logs.includes(secret)]).toEqual([secret, [], false])
  }

  // The same search finds other texts in each of these places.
  const open = filesWith(folder, OPEN)
  expect(open.some(isOfKafka)).toBe(true)
  expect(open.some(isOfElasticsearch)).toBe(true)
  expect(open.filter(file => file.endsWith('.zst')).length).toBe(2)
  expect(open).toContain(join('after', 'reps.ndjson'))
  expect(filesWith(folder, PARKED_OPEN).some(isOfElasticsearch)).toBe(true)
  expect(filesWith(folder, name1.slice(-40)).some(isOfElasticsearch)).toBe(true)
  expect(filesWith(folder, prefix)).toEqual(expect.arrayContaining(heaps))
})

const isOfKafka = (file: string): boolean => file.endsWith('.log') && file.includes('events')
/** Stored fields: alone, or in a compound file of a small segment. */
const isOfElasticsearch = (file: string): boolean => file.endsWith('.fdt') || file.endsWith('.cfs')
