/**
 * `commission doctor` on secured brokers and behind a guard of Elasticsearch: with the rights of the table it finds no
 * fault, and it names each right that is missing.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { type AccessIdentity, type IdentityName, identities, type KafkaRight } from '../../schemas/access.ts'
import { findJdk } from '../../services/jvm.ts'
import { startGuard } from '../support/elasticsearch-guard.ts'
import { examine } from '../support/examine.ts'
import { startProcess, withAdminPort } from '../support/processes.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { type SecureCluster, startSecureCluster } from '../support/secure-cluster.ts'
import { createPrefix, elasticsearchOf, indicesOf } from '../support/stored.ts'
import { createWithLeaders } from '../support/topics.ts'

const file = fileScope()
const topics = { KAFKA_EVENTS_TOPIC: 'examined.events', KAFKA_API_KEYS_TOPIC: 'examined.api-keys' }
const AUDIT_TOPIC = 'examined.audit'
const names = [
  ...(['projector', 'api', 'topics', 'keys', 'parked', 'projection', 'archive', 'restore'] as const),
  ...(['events-publisher', 'keys-publisher'] as const),
]
const rightsOf = (name: IdentityName): readonly KafkaRight[] =>
  (identities[name] as AccessIdentity).kafka.filter(({ resource }) => resource.type !== 'TransactionalId')

/** In Kafka, these include another right on the same resource: a user without it alone still has it. */
const including: Readonly<Partial<Record<KafkaRight['operation'], readonly KafkaRight['operation'][]>>> = {
  Describe: ['Read', 'Write', 'Delete'],
  DescribeConfigs: ['AlterConfigs'],
}
const isIncluded = ({ operation, resource }: KafkaRight, others: readonly KafkaRight[]): boolean =>
  others.some(other => including[operation]?.includes(other.operation) && other.resource.name === resource.name)

const commands = ['topics', 'projection', 'keys', 'parked', 'archive', 'restore'] as const
const lacking = (['projector', 'api', ...commands] as const).flatMap(name =>
  rightsOf(name)
    .map((right, index) => ({ name, right, user: `${name}-without-${index}`, what: describeRight(right) }))
    .filter(({ right }) => !isIncluded(right, rightsOf(name))),
)
function describeRight({ operation, resource }: KafkaRight): string {
  return `${operation} on ${resource.type} ${resource.name}`
}
/** The finding about the projection, of the identities that look at it. */
const ofEvents = [`generation g1 is of topic ${topics.KAFKA_EVENTS_TOPIC}`]
const whole = 'and its indices and positions are whole'
const projections: Readonly<Record<string, readonly string[]>> = {
  projector: [
    `generation g1 is of topic ${topics.KAFKA_EVENTS_TOPIC}, ${whole}`,
    `generation api-keys is of topic ${topics.KAFKA_API_KEYS_TOPIC}, ${whole}`,
  ],
  projection: ofEvents,
  parked: ofEvents,
  keys: [`generation api-keys is of topic ${topics.KAFKA_API_KEYS_TOPIC}`],
}
let cluster: SecureCluster

beforeAll(async () => {
  if ((await findJdk(process.env)).jdk === undefined) return
  cluster = await startSecureCluster(file, [...names, ...lacking.map(({ user }) => user)])
  await createWithLeaders(
    cluster.admin,
    [...Object.values(topics), AUDIT_TOPIC].map(topic => ({
      topic,
      numPartitions: topic === topics.KAFKA_EVENTS_TOPIC ? 2 : 1,
      configEntries: Object.entries({
        'retention.ms': '-1',
        'max.message.bytes': '9437184',
        'message.timestamp.type': 'LogAppendTime',
      }).map(([name, value]) => ({ name, value })),
    })),
  )
  for (const name of names) await cluster.allow(name, rightsOf(name), valuesOf())
  for (const { user, name, right } of lacking) {
    const others = rightsOf(name).filter(one => one !== right)
    if (others.length > 0) await cluster.allow(user, others, valuesOf())
  }
})

const valuesOf = () => ({ ...topics, KAFKA_GROUP_ID: 'examined', AUDIT_TOPIC })
const settingsOf = (user: string, prefix: string, url = elasticsearchOf(prefix)) => ({
  ...cluster.settings(user, 'scram-sha-512'),
  ...valuesOf(),
  AUDIT_LOG: `kafka:${AUDIT_TOPIC}`,
  ELASTICSEARCH_URL: url,
  ELASTICSEARCH_INDEX_PREFIX: prefix,
})
type Check = { readonly check: string; readonly outcome: string; readonly detail: string; readonly mend?: string }
const findingsOf = async (name: IdentityName, settings: Readonly<Record<string, string>>) => {
  const ran = await examine([name, '--json'], settings)
  const { checks }: { checks: readonly Check[] } = JSON.parse(ran.out.toString())
  return { code: ran.code, failed: checks.filter(({ outcome }) => outcome === 'failed'), checks }
}
const guardOf = (t: Parameters<typeof startGuard>[0], name: IdentityName, prefix: string, without?: string) => {
  const { elasticsearch }: AccessIdentity = identities[name]
  const { cluster: onCluster, indices } = elasticsearch ?? { cluster: [], indices: [] }
  const role = {
    cluster: onCluster.filter(({ privilege }) => privilege !== without),
    indices: indices.map(one => ({ ...one, privileges: one.privileges.filter(privilege => privilege !== without) })),
  }
  return startGuard(t, elasticsearchOf(prefix), role, { ELASTICSEARCH_INDEX_PREFIX: prefix })
}

describe.skipIf((await findJdk(process.env)).jdk === undefined)('on secured services', () => {
  test.for(names)('%s with its rights has no fault', async (name, t) => {
    const prefix = createPrefix(t)
    const { url } = await guardOf(t, name, prefix)
    const { code, failed } = await findingsOf(name, settingsOf(name, prefix, url))
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    expect(await indicesOf(prefix)).toEqual([])
  })

  test('once something is projected, no identity needs more rights', async t => {
    const prefix = createPrefix(t)
    const settings = { ...settingsOf('projector', prefix), PROJECTOR_ADMIN_PORT: '0' }
    const projector = await withAdminPort(startProcess(t, 'projector/main.ts', settings))
    await eventually(async () => expect(await projector.ask('/readyz')).toMatchObject({ status: 200 }))
    for (const name of names) {
      const { url } = await guardOf(t, name, prefix)
      const { code, failed, checks } = await findingsOf(name, settingsOf(name, prefix, url))
      expect({ name, code, failed }).toEqual({ name, code: 0, failed: [] })
      const found = checks.filter(({ check }) => check === 'projection').map(({ detail }) => detail)
      expect(found, name).toEqual(projections[name] ?? [])
    }
  })

  test.for(lacking)('$name without $what says so', async ({ name, right, user }, t) => {
    const prefix = createPrefix(t)
    const { url } = await guardOf(t, name, prefix)
    const { code, failed } = await findingsOf(name, settingsOf(user, prefix, url))
    expect(code).toBe(1)
    const found = failed.filter(({ check }) => check.startsWith(`Kafka: ${right.operation} on `))
    expect(found).toHaveLength(1)
    expect(found[0]?.mend).toContain(`allow commission-${name} --${right.resource.type.toLowerCase()} "`)
    expect(failed.filter(({ check }) => check.startsWith('Kafka: '))).toEqual(found)
  })

  test.for([
    'monitor',
    'manage_index_templates',
    'create_index',
    'view_index_metadata',
    'read',
    'index',
    'maintenance',
  ])('a projector without the privilege %s says so', async (privilege, t) => {
    const prefix = createPrefix(t)
    const { url } = await guardOf(t, 'projector', prefix, privilege)
    const { code, failed } = await findingsOf('projector', settingsOf('projector', prefix, url))
    expect(code).toBe(1)
    const rights = failed.filter(({ mend }) => mend?.includes('elasticsearch-roles/projector.json'))
    // `monitor` is a privilege on the cluster, and one on indices.
    expect([...new Set(rights.map(({ check }) => check))]).toEqual([`Elasticsearch: ${privilege}`])
  })
})
