/** A secured Kafka of a test's own: its users, their rights, and the settings with which a process authenticates. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { kafkaConfig } from '../../core/log/kafka-config.ts'
import { kafkaSettings, readSettings } from '../../core/runtime/settings.ts'
import { fillIn, type KafkaRight } from '../../schemas/access.ts'
import type { CertificateFiles } from '../../services/cluster/certificates.ts'
import type { SecureUser } from '../../services/cluster/security.ts'
import type { Service } from '../../services/service.ts'
import { startOwnCluster } from './own-services.ts'
import type { Scope } from './scope.ts'

export const mechanisms = ['scram-sha-512', 'plain', 'oauthbearer', 'mutual TLS'] as const
export type Mechanism = (typeof mechanisms)[number]

export type SecureCluster = {
  readonly nodes: readonly Service[]
  /** The certificate that clients trust. */
  readonly ca: string
  /** A certificate for this machine. */
  readonly certificateOf: (user: string) => CertificateFiles
  /** Writes a secret into a file of this name. Returns its path. */
  readonly writeSecret: (name: string, secret: string) => string
  /** Of the user who may do everything. */
  readonly admin: Admin
  /** Returns the settings of a process. @param tokenSeconds how long its token is valid */
  readonly settings: (user: string, mechanism: Mechanism, tokenSeconds?: number) => Record<string, string>
  readonly clientOf: (user: string, mechanism?: Mechanism) => Kafka
  /** Allows exactly these rights. `values` fills in their names. */
  readonly allow: (user: string, rights: readonly KafkaRight[], values: Values) => Promise<void>
  readonly revoke: (user: string, right: KafkaRight, values: Values) => Promise<void>
}
type Values = Readonly<Record<string, string>>

/** Starts 1 or 3 brokers. They are removed with their data when the scope ends. */
export const startSecureCluster = async (
  scope: Scope,
  users: readonly string[],
  brokers = 3,
): Promise<SecureCluster> => {
  const cluster = await startOwnCluster(scope, { brokers, secure: { users } })
  const { security } = cluster
  if (security === undefined) throw new Error('the cluster has no security')

  const userOf = (name: string): SecureUser => {
    const user = security.users.get(name)
    if (user === undefined) throw new Error(`no user ${name}`)
    return user
  }
  const writeSecret: SecureCluster['writeSecret'] = (name, secret) => {
    const path = join(security.folder, name)
    writeFileSync(path, `${secret}\n`)
    return path
  }
  const settings: SecureCluster['settings'] = (name, mechanism, tokenSeconds = 3_600) => {
    const user = userOf(name)
    const common = { KAFKA_SSL: 'true', KAFKA_SSL_CA_FILE: security.ca }
    if (mechanism === 'mutual TLS') {
      const { cert, key } = user.certificate
      return { ...common, KAFKA_BROKERS: security.mutualTlsAddress, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key }
    }
    const sasl = { ...common, KAFKA_BROKERS: cluster.address, KAFKA_SASL_MECHANISM: mechanism }
    if (mechanism !== 'oauthbearer')
      return { ...sasl, KAFKA_SASL_USERNAME: name, KAFKA_SASL_PASSWORD_FILE: user.passwordFile }
    return { ...sasl, KAFKA_SASL_TOKEN_FILE: writeSecret(`${name}.token`, security.signToken(name, tokenSeconds)) }
  }
  const clientOf: SecureCluster['clientOf'] = (user, mechanism = 'scram-sha-512') => {
    const read = readSettings(kafkaSettings, settings(user, mechanism), readFileSync)
    return new kafkajs.Kafka(kafkaConfig(read, 'test', readFileSync, Date.now))
  }
  const admin = clientOf('admin').admin()
  await admin.connect()
  scope.onTestFinished(() => admin.disconnect().catch(() => undefined))
  return {
    nodes: cluster.nodes,
    ca: security.ca,
    certificateOf: user => userOf(user).certificate,
    writeSecret,
    admin,
    settings,
    clientOf,
    allow: async (user, rights, values) => {
      await admin.createAcls({ acl: rights.map(right => aclOf(user, right, values)) })
    },
    revoke: async (user, right, values) => {
      await admin.deleteAcls({ filters: [aclOf(user, right, values)] })
    },
  }
}

const { AclResourceTypes, ResourcePatternTypes, AclOperationTypes, AclPermissionTypes } = kafkajs
const resourceTypes = {
  Topic: AclResourceTypes.TOPIC,
  Group: AclResourceTypes.GROUP,
  Cluster: AclResourceTypes.CLUSTER,
  TransactionalId: AclResourceTypes.TRANSACTIONAL_ID,
}
const operations = {
  Read: AclOperationTypes.READ,
  Write: AclOperationTypes.WRITE,
  Create: AclOperationTypes.CREATE,
  Delete: AclOperationTypes.DELETE,
  Describe: AclOperationTypes.DESCRIBE,
  DescribeConfigs: AclOperationTypes.DESCRIBE_CONFIGS,
  AlterConfigs: AclOperationTypes.ALTER_CONFIGS,
}

const aclOf = (user: string, { resource: { type, name, pattern }, operation }: KafkaRight, values: Values) => ({
  principal: `User:${user}`,
  host: '*',
  resourceType: resourceTypes[type],
  resourceName: fillIn(name, values),
  resourcePatternType: pattern === 'prefixed' ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
  operation: operations[operation],
  permissionType: AclPermissionTypes.ALLOW,
})
