/**
 * Tries each right of an identity in Kafka. Kafka itself says which operations it allows: nothing is read or written.
 * It says nothing about a topic that the identity may not describe. Then the requests say it: one reads the
 * configuration, and one creates the topic only as a rehearsal.
 */
import kafkajs, { type Admin } from 'kafkajs'
import { type AuthorizedOperations, accessRefusal, type Operations } from '../../core/log/index.ts'
import { aclCommand, byResource, fillIn, type IdentityName, identities, type KafkaRight } from '../../schemas/access.ts'
import { type Finding, failed, notTried, ok } from './finding.ts'

export type KafkaProbe = Pick<AuthorizedOperations, 'topic' | 'group'> & {
  readonly admin: Pick<Admin, 'describeConfigs' | 'createTopics'>
}
type Values = Readonly<Record<string, string>>

/** The group that is asked about: the projector has it in any case. */
const GROUP_SUFFIX = 'api-keys'
const DESCRIBING: readonly KafkaRight['operation'][] = ['Read', 'Write', 'Delete', 'Describe']

export const tryKafkaRights = async (name: IdentityName, values: Values, probe: KafkaProbe): Promise<Finding[]> => {
  const findings: Finding[] = []
  const rights: readonly KafkaRight[] = identities[name].kafka
  for (const onOne of byResource(rights)) findings.push(...(await tryResource(name, onOne, values, probe)))
  return findings
}

const tryResource = async (
  name: IdentityName,
  rights: readonly KafkaRight[],
  values: Values,
  probe: KafkaProbe,
): Promise<Finding[]> => {
  const [first] = rights
  if (first === undefined) return []
  const { type, name: pattern } = first.resource
  if (type === 'TransactionalId' || type === 'Cluster') {
    const why = 'a transaction leaves a trace'
    return rights.map(({ operation }) => notTried(`Kafka: ${operation} on ${type} ${pattern}`, why))
  }
  const isTopic = type === 'Topic'
  if (isTopic && first.resource.pattern === 'prefixed') {
    return rights.map(({ operation }) =>
      notTried(`Kafka: ${operation} on topic ${pattern}*`, 'there is no such topic yet'),
    )
  }
  const resource = isTopic ? fillIn(pattern, values) : `${fillIn(pattern, values)}${GROUP_SUFFIX}`
  const allowed = await (isTopic ? probe.topic(resource) : probe.group(resource))
  const findings: Finding[] = []
  for (const { operation, only } of rights) {
    const check = `Kafka: ${operation} on ${type.toLowerCase()} ${resource}${only === undefined ? '' : ` (${only})`}`
    if (allowed === undefined) findings.push(notTried(check, 'the brokers are older than Kafka 2.3 and do not tell'))
    else if (await isAllowed(operation, resource, isTopic, allowed, probe.admin)) findings.push(ok(check))
    else findings.push(failed(check, 'Kafka refuses it', mendOf(name, rights)))
  }
  return findings
}

const isAllowed = async (
  operation: KafkaRight['operation'],
  resource: string,
  isTopic: boolean,
  allowed: Operations,
  admin: KafkaProbe['admin'],
): Promise<boolean> => {
  if (allowed.has(operation)) return true
  // Kafka has told all: each of these operations includes Describe.
  if (!isTopic || DESCRIBING.some(one => allowed.has(one))) return false
  if (operation === 'DescribeConfigs') return isAccepted(admin.describeConfigs(describeTopic(resource)))
  if (operation === 'Create') {
    return isAccepted(admin.createTopics({ validateOnly: true, waitForLeaders: false, topics: [{ topic: resource }] }))
  }
  return false
}

const describeTopic = (name: string): Parameters<Admin['describeConfigs']>[0] => ({
  includeSynonyms: false,
  resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames: ['cleanup.policy'] }],
})

/** Any other error than a refusal comes after Kafka has accepted the right. */
const isAccepted = async (answer: Promise<unknown>): Promise<boolean> => {
  try {
    await answer
    return true
  } catch (error) {
    if (accessRefusal(error) !== undefined) return false
    throw error
  }
}

const mendOf = (name: IdentityName, rights: readonly KafkaRight[]): string =>
  `this line of deploy/access/kafka-acls.sh, with your name of the user: ${aclCommand(name, rights)}`
