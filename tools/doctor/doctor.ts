/**
 * `commission doctor`: connects with the settings in force, and checks for each identity whether it can do its work.
 * Promises: changes nothing in Kafka, Elasticsearch, Redis and Vault; each check ends in time; no secret is printed.
 * Can go wrong: a setting → exit code 2. Everything else is a finding.
 */
import type { Admin } from 'kafkajs'
import type { AuthorizedOperations } from '../../core/log/index.ts'
import type { InspectSteps } from '../../core/projection/index.ts'
import { SettingsError } from '../../core/runtime/index.ts'
import type { SearchClient, Send } from '../../core/store/index.ts'
import { type AccessIdentity, type IdentityName, identities } from '../../schemas/access.ts'
import type { Stream } from '../../schemas/events.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import { type Attempt, createAttempt } from './attempts.ts'
import { checkHealth, checkNodes, checkVersion } from './elasticsearch-cluster.ts'
import { tryElasticsearchRights, tryHidingRoles } from './elasticsearch-rights.ts'
import { checkFiles } from './files.ts'
import {
  exitCodeOf,
  type Finding,
  type IdentityFinding,
  lineOf,
  notTried,
  ok,
  type Paint,
  reportOf,
  summaryOf,
  warning,
} from './finding.ts'
import { tryKafkaRights } from './kafka-rights.ts'
import { checkAnswers, checkProjection, settingOfTopic } from './projection.ts'
import { type CheckedSealKeys, checkSealKeys } from './seal-keys.ts'
import { checkStart } from './start.ts'
import { checkAuditTopic, checkKafkaClock, checkTopic } from './topics.ts'

export type DoctorOptions = {
  /** Empty: those that the settings fit. */
  readonly identities: readonly IdentityName[]
  readonly json: boolean
}

/** The settings of one identity, and its clients. */
export type CheckedIdentity = {
  readonly values: Readonly<Record<string, string>>
  /** All settings, secrets too: never printed. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly kafka?: {
    readonly admin: Admin
    readonly open: () => Promise<AuthorizedOperations>
    readonly openLog: InspectSteps['openLog']
    /** `KAFKA_MAX_MESSAGE_BYTES`. */
    readonly messageBytes: number
  }
  readonly send?: Send
  /** How the API reads. Undefined for other identities. */
  readonly reads?: SearchClient
  /** Returns why Redis does not count. Undefined: no Redis in the settings, or none for this identity. */
  readonly checkRedis?: () => Promise<string | undefined>
  /** Undefined without SEAL_KEYS_DIR, or for an identity that uses no seal keys. */
  readonly sealKeys?: CheckedSealKeys | undefined
}

export type DoctorContext = {
  readonly out: (text: string) => void
  readonly say: (line: string) => void
  /** @throws SettingsError */
  readonly checkedIdentityOf: (name: IdentityName) => CheckedIdentity
  /** Whether the environment has the addresses of Kafka. */
  readonly hasKafka: boolean
  readonly readFile: (path: string) => Buffer
  readonly now: () => number
  readonly signal: AbortSignal
  /** Colours; undefined without a terminal. */
  readonly paint?: Paint
}

export const doctor = async (options: DoctorOptions, context: DoctorContext): Promise<ExitCode> => {
  const names = options.identities.length > 0 ? options.identities : usual(context.hasKafka)
  const findings: IdentityFinding[] = []
  const checked: [name: IdentityName, identity: CheckedIdentity][] = []
  try {
    for (const name of new Set(names)) checked.push([name, context.checkedIdentityOf(name)])
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    context.say(error.message)
    return exitCodes.usage
  }
  for (const [identity, given] of checked) {
    const attempt = createAttempt(context.signal, finding => {
      findings.push({ identity, ...finding })
      if (!options.json) context.out(`${lineOf({ identity, ...finding }, context.paint)}\n`)
    })
    await examine(identity, given, attempt, context)
  }
  context.out(`${options.json ? reportOf(findings) : summaryOf(findings)}\n`)
  return exitCodeOf(findings)
}

const usual = (hasKafka: boolean): IdentityName[] => (hasKafka ? ['projector', 'api'] : ['api'])

const examine = async (
  name: IdentityName,
  given: CheckedIdentity,
  attempt: Attempt,
  { readFile, now }: DoctorContext,
): Promise<void> => {
  const { kafka, send, reads, values, checkRedis, sealKeys } = given
  await attempt('settings', async () => [
    ok('settings', 'complete, and all files can be read'),
    ...checkFiles(given.settings, readFile, now()),
  ])
  if (kafka) await examineKafka(name, values, kafka, attempt, now)
  if (send) await examineElasticsearch(name, values, send, attempt, now)
  const stream = streamOf(name)
  if (kafka && send && name === 'projector') {
    await checkStart(attempt, signal => startSteps(kafka, send, values, signal))
  } else if (kafka && send && stream) {
    await attempt('projection', signal => checkProjection(stream, kafka.admin, send, values, signal))
  } else if (send && reads) {
    await attempt('answers', signal => checkAnswers(reads, send, values, now, signal))
  }
  if (sealKeys) await attempt('seal keys', () => checkSealKeys(sealKeys))
  if (checkRedis) await attempt('Redis', async () => [findingOfRedis(await checkRedis())])
}

/** Returns the stream whose topic an identity may describe: the events, if both. */
const streamOf = (name: IdentityName): Stream | undefined =>
  (['events', 'api-keys'] as const).find(stream =>
    identities[name].kafka.some(({ resource }) => resource.name === `\${${settingOfTopic[stream]}}`),
  )

const findingOfRedis = (why: string | undefined): Finding =>
  why === undefined ? ok('Redis', 'counts') : warning('Redis', `${why}: each process counts alone`, 'REDIS_URL')

const examineKafka = async (
  name: IdentityName,
  values: CheckedIdentity['values'],
  { admin, open, messageBytes }: NonNullable<CheckedIdentity['kafka']>,
  attempt: Attempt,
  now: () => number,
): Promise<void> => {
  let operations: AuthorizedOperations | undefined
  await attempt('Kafka', async () => {
    await admin.connect()
    operations = await open()
    const { brokers } = await admin.describeCluster()
    return [ok('Kafka', `${brokers.length} broker${brokers.length === 1 ? '' : 's'}, and the credentials are accepted`)]
  })
  const opened = operations
  if (opened === undefined) {
    await attempt('Kafka: rights', async () => [notTried('Kafka: rights and topics', 'Kafka must answer first')])
    return
  }
  await attempt('Kafka: rights', () => tryKafkaRights(name, values, { ...opened, admin }))
  const mayReadTopics = new Set(
    identities[name].kafka.flatMap(({ operation, resource }) =>
      operation === 'DescribeConfigs' ? [resource.name] : [],
    ),
  )
  if (name === 'api')
    await attempt(`topic ${values.AUDIT_TOPIC}`, () => checkAuditTopic(admin, values.AUDIT_TOPIC ?? ''))
  for (const setting of Object.values(settingOfTopic)) {
    const topic = values[setting]
    if (topic === undefined || !mayReadTopics.has(`\${${setting}}`)) continue
    const partitions = setting === 'KAFKA_API_KEYS_TOPIC' ? 1 : undefined
    const found = await attempt(`topic ${topic}`, () => checkTopic({ admin, topic, partitions, messageBytes }))
    if (found.some(({ outcome }) => outcome === 'ok'))
      await attempt(`clock of Kafka, by the records of ${topic}`, () => checkKafkaClock(admin, topic, now))
  }
}

const examineElasticsearch = async (
  name: IdentityName,
  values: CheckedIdentity['values'],
  send: Send,
  attempt: Attempt,
  now: () => number,
): Promise<void> => {
  const { elasticsearch: role }: AccessIdentity = identities[name]
  if (role === undefined) return
  let hasAnswered = false
  await attempt('Elasticsearch: rights', async signal => {
    const found = await tryElasticsearchRights(name, role, values, send, signal)
    hasAnswered = true
    return found
  })
  if (!hasAnswered) return
  await attempt('Elasticsearch: sees all documents', signal => tryHidingRoles(role, values, send, signal))
  if (!role.cluster.some(({ privilege }) => privilege === 'monitor')) {
    const why = 'this identity may not read the state of the cluster, as intended; see those of the projector'
    await attempt('Elasticsearch: cluster', async () => [notTried('Elasticsearch: cluster', why)])
    return
  }
  await attempt('Elasticsearch: version', signal => checkVersion({ send, now, signal }))
  await attempt('Elasticsearch: health', signal => checkHealth({ send, now, signal }))
  await attempt('Elasticsearch: nodes', signal => checkNodes({ send, now, signal }))
}

const startSteps = (
  { admin, openLog }: NonNullable<CheckedIdentity['kafka']>,
  send: Send,
  values: CheckedIdentity['values'],
  signal: AbortSignal,
): InspectSteps => ({
  ...{ admin, openLog, signal },
  send,
  request: asked => send(asked, signal),
  prefix: values.ELASTICSEARCH_INDEX_PREFIX ?? '',
  topics: { events: values.KAFKA_EVENTS_TOPIC ?? '', 'api-keys': values.KAFKA_API_KEYS_TOPIC ?? '' },
  groupId: values.KAFKA_GROUP_ID ?? '',
})
