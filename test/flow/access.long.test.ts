/**
 * The rights of `schemas/access.ts`, on three real brokers that refuse everything else: with exactly these rights
 * each process does its work, whichever way it authenticates; and if one is missing, the process names it.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { clockMessages } from '../../core/store/elasticsearch/clocks.ts'
import { type AccessIdentity, type IdentityName, identities, type KafkaRight } from '../../schemas/access.ts'
import { findJdk } from '../../services/jvm.ts'
import { newDirectory } from '../support/archives.ts'
import { runCommand } from '../support/commands.ts'
import { type Guard, startGuard } from '../support/elasticsearch-guard.ts'
import {
  keyCreated,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import {
  type Api,
  expectRefused,
  type Projector,
  startApi,
  startCommand,
  startProcess,
  untilCaughtUp,
  withAdminPort,
} from '../support/processes.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { type Mechanism, mechanisms, type SecureCluster, startSecureCluster } from '../support/secure-cluster.ts'
import { untilReplicasInSync } from '../support/several-brokers.ts'
import { createPrefix, elasticsearchOf } from '../support/stored.ts'
import { place, toMessage } from '../support/topics.ts'

const PARTITIONS = 2
const file = fileScope()
const topics = { KAFKA_EVENTS_TOPIC: 'secured.events', KAFKA_API_KEYS_TOPIC: 'secured.api-keys' }
const { KAFKA_EVENTS_TOPIC: events, KAFKA_API_KEYS_TOPIC: apiKeys } = topics

const rightsOf = (name: IdentityName): readonly KafkaRight[] => {
  const identity: AccessIdentity = identities[name]
  return identity.kafka.filter(({ resource }) => resource.type !== 'TransactionalId')
}
const ofProjector = rightsOf('projector')

type Lacking = {
  readonly user: string
  readonly what: string
  readonly rights: readonly KafkaRight[]
  readonly says: RegExp
}

/** Kafka hides a missing Read behind Describe, which Read includes. With Describe alone, it names Read. */
const lacking: readonly Lacking[] = ofProjector.flatMap((right, index) => {
  const { operation, resource } = right
  const name =
    resource.type === 'Group'
      ? 'group \\S+-(?:g1|api-keys)'
      : `topic ${resource === ofProjector[0]?.resource ? events : apiKeys}`
  const others = ofProjector.filter(other => other !== right)
  const what = `${operation} on ${resource.type} ${resource.name}`
  const one = { user: `lacking-${index}`, what, rights: others }
  if (operation !== 'Read') return [{ ...one, says: new RegExp(`Kafka refuses ${operation} on ${name}$`) }]
  const weak = { ...right, operation: 'Describe' } as const
  return [
    { ...one, says: new RegExp(`Kafka refuses Describe on ${name}$`) },
    {
      user: `weak-${index}`,
      what: `${what}, with Describe`,
      rights: [...others, weak],
      says: new RegExp(`Kafka refuses Read on ${name}$`),
    },
  ]
})

const mechanismUsers = mechanisms.map(mechanism => `projector-${mechanisms.indexOf(mechanism)}`)
const ofDemo = ['topics', 'projector', 'keys-publisher', 'events-publisher'] as const
const ofOthers = ['topics', 'keys', 'projection', 'events-publisher', 'keys-publisher'] as const
let cluster: SecureCluster

beforeAll(async () => {
  if ((await findJdk(process.env)).jdk === undefined) return
  const more = [...lacking.map(({ user }) => user), 'revoked', 'nobody', 'demo']
  cluster = await startSecureCluster(file, [...mechanismUsers, ...ofOthers, ...more])
  // Each user has a group of its own. Before the topics exist, so that every broker knows the rights with them.
  const valuesOf = (user: string) => ({ ...topics, KAFKA_GROUP_ID: user })
  for (const user of [...mechanismUsers, 'revoked']) await cluster.allow(user, ofProjector, valuesOf(user))
  for (const { user, rights } of lacking) await cluster.allow(user, rights, valuesOf(user))
  for (const user of ofOthers) await cluster.allow(user, rightsOf(user), valuesOf('projector-0'))
})

const settingsOf = (user: string, mechanism: Mechanism, prefix: string, tokenSeconds?: number) => ({
  ...cluster.settings(user, mechanism, tokenSeconds),
  ...topics,
  KAFKA_EVENTS_PARTITIONS: String(PARTITIONS),
  KAFKA_GROUP_ID: user,
  ELASTICSEARCH_URL: elasticsearchOf(prefix),
  ELASTICSEARCH_INDEX_PREFIX: prefix,
  PROJECTOR_ADMIN_PORT: '0',
})

const startAs = (t: Scope, user: string, mechanism: Mechanism, prefix: string, tokenSeconds?: number) =>
  startProcess(t, 'projector/main.ts', settingsOf(user, mechanism, prefix, tokenSeconds))

/** Publishes like a publisher with the rights of the table. */
const publish = async (mechanism: Mechanism, records: readonly Outgoing[]): Promise<void> => {
  for (const [user, stream, topic] of [
    ['events-publisher', 'events', events],
    ['keys-publisher', 'api-keys', apiKeys],
  ] as const) {
    const messages = records
      .filter(record => record.stream === stream)
      .map(record => toMessage(place(record, PARTITIONS)))
    if (messages.length === 0) continue
    const producer = cluster.clientOf(user, mechanism).producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    await producer.send({ topic, acks: -1, messages })
    await producer.disconnect()
  }
}

const lists = ['/reps', '/periods', '/payouts', '/payroll_files', '/changes', '/totals']
const records = ['/reps/rep_1', '/periods/period_1', '/payouts/payout_9', '/statements/payout_9']
const readPaths = [...lists, ...records, '/payouts/payout_9/history', '/payouts?as_of=payout_9']

const payoutsIn = async (api: Api, key: string): Promise<string[]> => {
  const answer = await fetchInTime(api, '/payouts', key)
  const { data } = (await answer.json()) as { data: { id: string }[] }
  return data.map(({ id }) => id)
}

describe.skipIf((await findJdk(process.env)).jdk === undefined)('on secured brokers', () => {
  test('`npx commission topics` creates the topics with its rights, with three replicas', async t => {
    for (const said of ['created with 2 partitions', 'is there already']) {
      const ran = startProcess(t, 'projector/topics.ts', settingsOf('topics', 'scram-sha-512', createPrefix(t)))
      expect(await ran.exited, ran.log()).toEqual({ code: 0, signal: null })
      expect(ran.log()).toContain(`${events} ${said}`)
    }
    const { topics: found } = await cluster.admin.fetchTopicMetadata({ topics: [events, apiKeys] })
    expect(found.flatMap(({ partitions }) => partitions.map(({ replicas }) => replicas.length))).toEqual([3, 3, 3])
  })

  test.for(mechanisms)('with %s, what a publisher sends is projected and served', async (mechanism, t) => {
    const prefix = createPrefix(t)
    const [org, key] = [newId('org'), newKeyText()]
    const user = `projector-${mechanisms.indexOf(mechanism)}`
    const projector = await withAdminPort(startAs(t, user, mechanism, prefix))
    await publish(mechanism, [
      keyCreated({ org_id: org, text: key }),
      repRecorded({ org_id: org }),
      periodRecorded({ org_id: org }),
      payoutCalculated({ org_id: org }),
    ])
    await untilCaughtUp(projector)
    const api = await startApi(t, prefix)
    expect(await payoutsIn(api, key)).toEqual(['payout_1'])
    expect(await projector.stop(), projector.log()).toEqual({ code: 0, signal: null })
    // Kafka or Elasticsearch may be slow: that is a warning, and the projector tries again. If the first answer of
    // Elasticsearch with its clock comes late, this clock seems to be behind.
    const slow: readonly unknown[] = ['does not work; trying again', clockMessages.clocks_disagree]
    const bad = projector.lines().filter(({ level, msg }) => Number(level) >= 40 && !slow.includes(msg))
    expect(bad).toEqual([])
  })

  test('with the rights and the roles of the table, the processes and all commands do their work', async t => {
    const prefix = createPrefix(t)
    const org = newId('org')
    const guards: Guard[] = []
    const certificate = cluster.certificateOf('nobody')
    const keys = new Map<IdentityName, string>()
    const renewKey = (name: IdentityName): string => {
      keys.set(name, newId('key'))
      return cluster.writeSecret(`elasticsearch-${name}`, keys.get(name) ?? '')
    }
    /** Behind TLS. The API has an API key, as the projector; commands have a name and a password. */
    const behindGuard = async (name: IdentityName, hasKey = false): Promise<Record<string, string>> => {
      const { elasticsearch = { cluster: [], indices: [] } }: AccessIdentity = identities[name]
      const values = { ELASTICSEARCH_INDEX_PREFIX: prefix }
      const file = renewKey(name)
      const basic = () => `Basic ${Buffer.from(`${name}:${keys.get(name)}`).toString('base64')}`
      const authorization = hasKey ? () => `ApiKey ${keys.get(name)}` : basic
      const guard = await startGuard(t, elasticsearchOf(prefix), elasticsearch, values, { certificate, authorization })
      guards.push(guard)
      const secured = { ELASTICSEARCH_URL: guard.url, ELASTICSEARCH_CA_FILE: cluster.ca }
      if (hasKey) return { ...secured, ELASTICSEARCH_API_KEY_FILE: file }
      return { ...secured, ELASTICSEARCH_USERNAME: name, ELASTICSEARCH_PASSWORD_FILE: file }
    }
    const settings = {
      ...settingsOf('projector-0', 'scram-sha-512', prefix),
      ...(await behindGuard('projector', true)),
    }
    const projector = await withAdminPort(startProcess(t, 'projector/main.ts', settings))
    const [parked, current] = ['payout_8', 'payout_9'].map(id => payoutCalculated({ org_id: org, id }))
    if (parked === undefined || current === undefined) throw new Error('two payouts')
    await publish('scram-sha-512', [parked, repRecorded({ org_id: org }), periodRecorded({ org_id: org }), current])
    await untilCaughtUp(projector)
    const api = await startApi(t, prefix, { settings: await behindGuard('api', true) })

    const ofCommands = new Map<IdentityName, Record<string, string>>()
    const run = async (name: IdentityName, user: string, line: string) => {
      const secured = ofCommands.get(name) ?? (await behindGuard(name))
      ofCommands.set(name, secured)
      const own = { ...settingsOf(user, 'scram-sha-512', prefix), KAFKA_GROUP_ID: 'projector-0' }
      return runCommand(line.split(' '), { ...own, ...secured })
    }
    const refused = await run('projection', 'nobody', 'projection status')
    expect(refused.said).toContain(`Kafka refuses Describe on topic ${events}`)
    const made = await run('keys', 'keys', `keys create --org ${org} --name x`)
    expect(made, made.said).toMatchObject({ code: 0 })
    const key = made.out.toString().trim()
    const closedInto = await newDirectory(t)
    for (const [name, line] of [
      ['keys', `keys list --org ${org}`],
      ['parked', 'parked list --json'],
      ['projection', `projection status --org ${org}`],
      ['projection', 'projection rebuild'],
      ['projection', 'projection verify g1 g2'],
      ['projection', 'projection swap g2'],
      ['projection', 'projection drop g1'],
      ['projection', `projection replay --org ${org}`],
      ['projection', `projection diff g2 sandbox:s1 --org ${org}`],
      ['projection', 'projection drop sandbox:s1'],
      ['follow', `follow --org ${org} --once`],
      ['follow', `projection totals --org ${org}`],
      ['close', `close --org ${org} --period period_1 --out ${closedInto}`],
    ] as const) {
      const ran = await run(name, name === 'keys' || name === 'projection' ? name : 'nobody', line)
      expect(ran, `${line}: ${ran.said}`).toMatchObject({ code: 0 })
    }
    const { groups } = await cluster.admin.listGroups()
    expect(groups.map(({ groupId }) => groupId)).not.toContain('projector-0-g1')
    for (const path of readPaths) {
      expect((await fetchInTime(api, path, key)).status, path).toBe(200)
    }
    expect(await payoutsIn(api, key)).toEqual(['payout_9'])
    // Elasticsearch accepts only new keys from now on.
    for (const name of ['projector', 'api'] as const) renewKey(name)
    const later = payoutCalculated({ org_id: org, id: 'payout_10', supersedes_id: 'payout_9' })
    await publish('scram-sha-512', [later])
    await untilCaughtUp(projector)
    expect(await payoutsIn(api, key)).toEqual(['payout_10'])
    await expectNoTrouble(projector)
    expect(guards.flatMap(({ refused }) => refused)).toEqual([])
  })

  test('a projector continues after its first token has ended, with the token that the file has by then', async t => {
    const prefix = createPrefix(t)
    const user = 'projector-2'
    const seconds = 60
    const ends = Date.now() + seconds * 1_000
    const projector = await withAdminPort(startAs(t, user, 'oauthbearer', prefix, seconds))
    await untilCaughtUp(projector)
    cluster.settings(user, 'oauthbearer', 3_600)
    await eventually(() => expect(Date.now()).toBeGreaterThan(ends + 1_000), { every: 500 })
    await publish('oauthbearer', [repRecorded({ org_id: newId('org') })])
    await untilCaughtUp(projector)
    await expectNoTrouble(projector)
  })

  test.concurrent.for(lacking)('a projector without $what says so', async ({ user, says }, t) => {
    const message = await expectRefused(startAs(t, user, 'scram-sha-512', createPrefix(t)), 'access_refused')
    expect(message).toMatch(says)
  })

  test('a projector whose right is taken away while it runs ends, and names it', async t => {
    const projector = await withAdminPort(startAs(t, 'revoked', 'mutual TLS', createPrefix(t)))
    await untilCaughtUp(projector)
    const [right] = ofProjector
    if (right === undefined) throw new Error('the projector has no rights')
    await cluster.revoke('revoked', right, { ...topics, KAFKA_GROUP_ID: 'revoked' })
    expect(await expectRefused(projector, 'access_refused')).toMatch(
      new RegExp(`Kafka refuses (?:Describe|Read) on topic ${events}$`),
    )
  })

  test('projectors continue while the brokers restart one after the other, and a topic stays writable', async t => {
    // Projectors of the tests before were killed: the groups wait for them for the length of a session.
    const groups = mechanismUsers.flatMap(user => [`${user}-api-keys`, `${user}-g1`])
    await eventually(async () => {
      const described = await cluster.admin.describeGroups(groups)
      expect(described.groups.flatMap(({ members }) => members)).toEqual([])
    })
    const projectors = await Promise.all(
      mechanismUsers.map((user, index) =>
        withAdminPort(startAs(t, user, mechanisms[index] ?? 'plain', createPrefix(t))),
      ),
    )
    for (const projector of projectors) await untilCaughtUp(projector)
    for (const node of cluster.nodes) {
      await node.stop()
      await publish('plain', [repRecorded({ org_id: newId('org') })])
      await node.restart()
      // Without the next broker, a partition whose replica is still behind here would take no records.
      await untilReplicasInSync({ admin: cluster.admin, events, apiKeys }, cluster.nodes.length)
    }
    for (const projector of projectors) {
      await untilCaughtUp(projector)
      await expectNoTrouble(projector)
    }
  })

  test('the demo passes with the rights of the table', async t => {
    // The names are those of its run. At its end it deletes its topics.
    const ofRun = ofDemo.flatMap(rightsOf).flatMap(right => {
      const one = { ...right, resource: { ...right.resource, pattern: 'prefixed', name: 'demo-' } } as const
      return right.resource.type === 'Topic' ? [one, { ...one, operation: 'Delete' } as const] : [one]
    })
    await cluster.allow('demo', ofRun, {})
    const { ELASTICSEARCH_URL } = settingsOf('demo', 'scram-sha-512', createPrefix(t))
    const settings = { PATH: process.env.PATH, ...cluster.settings('demo', 'scram-sha-512'), ELASTICSEARCH_URL }
    const demo = startCommand(t, [process.execPath, 'demo/main.ts', '--once'], settings)
    expect(await demo.exited, demo.log()).toEqual({ code: 0, signal: null })
    expect(demo.log()).toContain('Everything the API returned is what was published.')
  })
})

const expectNoTrouble = async (projector: Projector): Promise<void> => {
  expect(projector.exit(), projector.log()).toBeUndefined()
  expect(projector.lines().filter(({ level }) => Number(level) >= 50)).toEqual([])
}
