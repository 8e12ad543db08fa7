/**
 * Each right of `schemas/access.ts` that a command or the API needs in Kafka is taken away on a real broker: the
 * message names it. `access.long.test.ts` does so for the projector. Publishers are programs of others: only the right
 * that they must not have is tried.
 */
import { readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import { beforeAll, describe, expect, test } from 'vitest'
import { kafkaConfig } from '../../core/log/kafka-config.ts'
import { kafkaSettings, readSettings } from '../../core/runtime/settings.ts'
import { type AccessIdentity, fillIn, type IdentityName, identities, type KafkaRight } from '../../schemas/access.ts'
import { findJdk } from '../../services/jvm.ts'
import { runCommand } from '../support/commands.ts'
import {
  keyCreated,
  keyRevoked,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import { startApi, startProcess, untilCaughtUp, withAdminPort } from '../support/processes.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { type SecureCluster, startSecureCluster } from '../support/secure-cluster.ts'
import { createPrefix, elasticsearchOf } from '../support/stored.ts'
import { createWithLeaders, place, toMessage } from '../support/topics.ts'

const PARTITIONS = 2
const file = fileScope()
const [org, key] = [newId('org'), newKeyText()]
const values = {
  KAFKA_EVENTS_TOPIC: 'tried.events',
  KAFKA_API_KEYS_TOPIC: 'tried.api-keys',
  KAFKA_GROUP_ID: 'tried',
  AUDIT_TOPIC: 'tried.audit',
}
type Values = typeof values

/** In this order: the last ones change the projection. */
const tried = ['api', 'topics', 'keys', 'parked', 'archive', 'restore', 'projection'] as const
const rightsOf = (name: IdentityName): readonly KafkaRight[] => (identities[name] as AccessIdentity).kafka
/** These need a second cluster to adopt. Both are of functions that other commands use, too. */
const isTried = ({ only }: KafkaRight): boolean => only !== '`adopt --archive`'
/** In Kafka, each of these rights includes another one on the same resource. */
const including: Readonly<Partial<Record<KafkaRight['operation'], readonly KafkaRight['operation'][]>>> = {
  Describe: ['Read', 'Write', 'Delete'],
  DescribeConfigs: ['AlterConfigs'],
}

/** Kafka hides a resource that may not be described, and refuses Describe: so each user may describe. */
const lacking = tried.flatMap(name =>
  rightsOf(name)
    .filter(isTried)
    .map((right, index) => {
      const { operation, resource } = right
      const isTaken = (other: KafkaRight): boolean =>
        other.resource.name === resource.name && [operation, ...(including[operation] ?? [])].includes(other.operation)
      const taken = rightsOf(name).filter(isTaken)
      const describing = operation === 'Describe' ? [] : [{ resource, operation: 'Describe', reason: '' } as const]
      return {
        name,
        right,
        user: `${name}-${index}`,
        what: `${operation} on ${resource.type} ${resource.name.replace(/[${}]/g, '')}`,
        taken: [...new Set(taken.map(one => one.operation))],
        rights: [...rightsOf(name).filter(one => !isTaken(one)), ...describing],
      }
    }),
)
let cluster: SecureCluster
let prefix: string
let archive: string

const settingsOf = (user: string, of: Values) => ({
  ...cluster.settings(user, 'scram-sha-512'),
  ...of,
  ELASTICSEARCH_URL: elasticsearchOf(prefix),
  ELASTICSEARCH_INDEX_PREFIX: prefix,
})

const createTopics = ({ KAFKA_EVENTS_TOPIC, KAFKA_API_KEYS_TOPIC }: Values): Promise<void> => {
  const entries = { 'retention.ms': '-1', 'max.message.bytes': '9437184', 'message.timestamp.type': 'LogAppendTime' }
  const configEntries = Object.entries(entries).map(([name, value]) => ({ name, value }))
  return createWithLeaders(cluster.admin, [
    { topic: KAFKA_EVENTS_TOPIC, numPartitions: PARTITIONS, configEntries },
    { topic: KAFKA_API_KEYS_TOPIC, numPartitions: 1, configEntries },
  ])
}

/** Each record in a transaction of its own, whose end takes an offset: a copy of the log needs transactions, too. */
const publish = async (records: readonly Outgoing[]): Promise<void> => {
  const producer = cluster.clientOf('admin').producer({ transactionalId: 'tried', maxInFlightRequests: 1 })
  await producer.connect()
  for (const record of records) {
    const topic = record.stream === 'events' ? values.KAFKA_EVENTS_TOPIC : values.KAFKA_API_KEYS_TOPIC
    const transaction = await producer.transaction()
    await transaction.send({ topic, acks: -1, messages: [toMessage(place(record, PARTITIONS))] })
    await transaction.commit()
  }
  await producer.disconnect()
}

beforeAll(async () => {
  if ((await findJdk(process.env)).jdk === undefined) return
  cluster = await startSecureCluster(
    file,
    ['projector', 'projection', 'nobody', 'events-publisher', ...lacking.map(({ user }) => user)],
    1,
  )
  prefix = createPrefix(file)
  for (const name of ['projector', 'projection'] as const) await cluster.allow(name, rightsOf(name), values)
  await createTopics(values)
  const settings = { ...settingsOf('projector', values), PROJECTOR_ADMIN_PORT: '0' }
  const projector = await withAdminPort(startProcess(file, 'projector/main.ts', settings))
  await publish([
    // Parked, and right once the others are there.
    payoutCalculated({ org_id: org, id: 'payout_early' }),
    keyRevoked({ org_id: org }),
    repRecorded({ org_id: org }),
    periodRecorded({ org_id: org }),
    keyCreated({ org_id: org, text: key }),
  ])
  await untilCaughtUp(projector)
  const folder = await mkdtemp(join(tmpdir(), 'commission-access-'))
  file.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  archive = join(folder, 'archive')
  expect(await runCommand(['archive', '--to', archive], settingsOf('admin', values))).toMatchObject({ code: 0 })
})

/** Returns why the API, which serves nevertheless, loses lines of its audit log, or does not know its topic. */
const complaintOfAudit = async (t: Scope, user: string, message: string): Promise<string> => {
  const settings = { ...settingsOf(user, values), AUDIT_LOG: `kafka:${values.AUDIT_TOPIC}` }
  const api = await startApi(t, prefix, { settings })
  const answer = await fetchInTime(api, '/reps', key)
  expect(answer.status).toBe(200)
  return eventually(() => {
    const line = api.lines().find(({ msg }) => msg === message)
    expect(line, api.log()).toBeDefined()
    return String(line?.reason)
  })
}

const lineOf = (name: (typeof tried)[number], { operation, resource }: KafkaRight): string => {
  switch (name) {
    case 'keys':
      return `keys create --org ${org} --name x`
    case 'parked':
      return 'parked publish-again --all --publish'
    case 'archive':
      return `archive --to ${archive}-again`
    case 'restore':
      return `restore --from ${archive}`
  }
  if (operation === 'Delete') return 'projection drop sandbox:dropped'
  if (resource.name === `\${KAFKA_API_KEYS_TOPIC}`) return `projection adopt --archive ${archive}`
  return `projection replay --org ${org}`
}

const kinds = { Topic: 'topic', Group: 'group', TransactionalId: 'transactional id', Cluster: 'cluster' }

describe.skipIf((await findJdk(process.env)).jdk === undefined)('on secured brokers', () => {
  test('a client certificate that is replaced in its file is shown at the next connection', async () => {
    const { KAFKA_SSL_CERT_FILE = '', KAFKA_SSL_KEY_FILE = '', ...others } = cluster.settings('projector', 'mutual TLS')
    const ofNobody = cluster.certificateOf('nobody')
    const [cert, key] = ['shown.pem', 'shown.key'].map(name => cluster.writeSecret(name, '')) as [string, string]
    const show = async (from: { readonly cert: string; readonly key: string }): Promise<void> => {
      await copyFile(from.key, key)
      await copyFile(from.cert, cert)
    }
    await show({ cert: KAFKA_SSL_CERT_FILE, key: KAFKA_SSL_KEY_FILE })
    const settings = { ...others, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key }
    const config = kafkaConfig(readSettings(kafkaSettings, settings, readFileSync), 'test', readFileSync, Date.now)
    const admin = new kafkajs.Kafka(config).admin()
    const describeTopic = async () => {
      await admin.connect()
      try {
        return await admin.fetchTopicMetadata({ topics: [values.KAFKA_EVENTS_TOPIC] })
      } finally {
        await admin.disconnect()
      }
    }
    expect((await describeTopic()).topics).toHaveLength(1)
    await show(ofNobody)
    await expect(describeTopic()).rejects.toMatchObject({ type: 'TOPIC_AUTHORIZATION_FAILED' })
    await show({ cert: KAFKA_SSL_CERT_FILE, key: KAFKA_SSL_KEY_FILE })
    expect((await describeTopic()).topics).toHaveLength(1)
  })

  test('a publisher of events can publish no API key', async () => {
    await cluster.allow('events-publisher', rightsOf('events-publisher'), { ...values, TRANSACTIONAL_ID: 'unused' })
    const producer = cluster.clientOf('events-publisher').producer()
    await producer.connect()
    const sent = producer.send({ topic: values.KAFKA_API_KEYS_TOPIC, messages: [{ value: '{}' }] })
    await expect(sent).rejects.toThrow('Topic authorization failed')
    await producer.disconnect()
  })

  test.for(lacking)('$name without $what says so', async ({ name, right, user, taken, rights }, t) => {
    const { operation, resource } = right
    const createsAnew = name === 'restore' || (name === 'topics' && operation !== 'DescribeConfigs')
    const anew = { ...values, KAFKA_EVENTS_TOPIC: `${user}.events`, KAFKA_API_KEYS_TOPIC: `${user}.api-keys` }
    const own = createsAnew ? anew : values
    await cluster.allow(user, rights, own)
    const settings = settingsOf(user, own)
    if (name === 'api') {
      const messages = {
        Write: 'lines of the audit log are lost',
        DescribeConfigs: 'it is not known whether the audit topic keeps all lines',
      }
      const message = messages[operation as keyof typeof messages]
      expect(await complaintOfAudit(t, user, message)).toContain(
        `Kafka refuses ${operation} on topic ${values.AUDIT_TOPIC}`,
      )
      return
    }
    const named = `${kinds[resource.type]} ${fillIn(resource.name, own)}`
    const says = new RegExp(`Kafka refuses (?:${taken.join('|')}) on ${named}`)
    if (name === 'topics') {
      const partitions = { KAFKA_EVENTS_PARTITIONS: String(PARTITIONS) }
      const ran = startProcess(t, 'projector/topics.ts', { ...settings, ...partitions })
      expect(await ran.exited, ran.log()).toEqual({ code: 1, signal: null })
      expect(ran.log()).toMatch(says)
      return
    }
    if (name === 'restore') await createTopics(own)
    const isDrop = operation === 'Delete'
    if (isDrop) {
      const made = ['projection', 'replay', '--org', org, '--name', 'dropped']
      expect(await runCommand(made, settingsOf('projection', values))).toMatchObject({ code: 0 })
    }
    const line = lineOf(name, right)
    const ran = await runCommand(line.split(' '), settings)
    expect(ran.said, line).toMatch(says)
    // The command drops the sandbox without its consumer group.
    expect(ran.code, ran.said).toBe(isDrop ? 0 : 1)
  })
})
