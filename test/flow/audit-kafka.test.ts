/** The audit log in a topic: every answer has its record once, also while Kafka is away or answers are lost. */
import { randomBytes } from 'node:crypto'
import kafkajs from 'kafkajs'
import { beforeAll, expect, inject, test } from 'vitest'
import { type AuditLog, type AuditWriter, createAuditWriter } from '../../api/audit/audit-reads.ts'
import { createTopicLog } from '../../api/audit/topic-log.ts'
import { AUDIT_WAIT_MAX } from '../../api/limits.ts'
import { scheduleTimer } from '../../core/runtime/time-limits.ts'
import { serveApi } from '../support/api.ts'
import { type AuditLine, createAuditedStore, expectAudited, parseLines, type Read, read } from '../support/audit.ts'
import { examine } from '../support/examine.ts'
import { kafkaThrough } from '../support/kafka-through.ts'
import { reasonsUnavailable, startApi, startProcess } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { createWithLeaders, LONG_CHANGE, LONG_CONNECT } from '../support/topics.ts'

const file = fileScope()
let prefix: string
let key: string
beforeAll(async () => {
  const made = await createAuditedStore(file)
  prefix = made.store.prefix
  key = made.key
})

/** A topic of the test, and a function that reads all of its records. */
const createTopic = async (scope: Scope, configEntries: { name: string; value: string }[] = []) => {
  const topic = `test.${randomBytes(6).toString('hex')}.audit`
  const brokers = inject('kafkaBrokers').split(',')
  const kafka = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.NOTHING, ...LONG_CONNECT })
  const admin = kafka.admin()
  await admin.connect()
  const topics = [{ topic, numPartitions: 2, configEntries }]
  await createWithLeaders(admin, topics)
  scope.onTestFinished(async () => {
    await admin.deleteTopics({ topics: [topic], ...LONG_CHANGE })
    await admin.disconnect()
  })
  const lines = async (): Promise<AuditLine[]> => {
    const offsets = await admin.fetchTopicOffsets(topic)
    const wanted = offsets.reduce((sum, { high }) => sum + Number(high), 0)
    const values: string[] = []
    if (wanted === 0) return []
    const consumer = kafka.consumer({ groupId: `reader-${randomBytes(6).toString('hex')}`, maxWaitTimeInMs: 100 })
    await consumer.connect()
    try {
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await consumer.run({ eachMessage: async ({ message }) => void values.push(String(message.value)) })
      await eventually(() => expect(values.length).toBe(wanted))
    } finally {
      await consumer.disconnect()
    }
    return parseLines(values.join('\n'))
  }
  return { topic, lines }
}

/** An API in this process. Its audit goes to Kafka through a proxy. */
const serveThroughProxy = async (scope: Scope, topic: string, isStrict: boolean) => {
  const proxy = await startProxy(scope, inject('kafkaBrokers').split(',')[0] ?? '')
  const counted = { written: 0, lost: 0 }
  const topicLog = createTopicLog(
    topic,
    () =>
      kafkaThrough(proxy, 'audit').producer({
        idempotent: true,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        retry: { retries: 2, initialRetryTime: 50, maxRetryTime: 100 },
      }),
    scheduleTimer,
  )
  /** A write begins when this is done. */
  const gate = { opened: Promise.resolve() }
  const auditLog: AuditLog = {
    ...topicLog,
    write: async lines => {
      await gate.opened
      return topicLog.write(lines)
    },
  }
  const writer = createAuditWriter({
    auditLog,
    isStrict,
    onLines: (outcome, lines) => {
      counted[outcome] += lines
    },
    elapsed: () => performance.now(),
    later: scheduleTimer,
  })
  scope.onTestFinished(() => writer.end(AUDIT_WAIT_MAX))
  /** Milliseconds that each request waited for its line. */
  const waits: number[] = []
  const write: AuditWriter['write'] = async line => {
    const begun = performance.now()
    const outcome = await writer.write(line)
    waits.push(performance.now() - begun)
    return outcome
  }
  const { port } = await serveApi(scope, prefix, { audit: { writer: { ...writer, write }, isStrict } })
  const ask = (path: string): Promise<Read> => read(`http://127.0.0.1:${port}/api/v1`, path, key)
  /** Asks again after a 503: on a busy machine Kafka or Elasticsearch may be too slow for one. */
  const answered = (path: string): Promise<Read> =>
    eventually(async () => {
      const answer = await ask(path)
      expect(answer.status).toBe(200)
      return answer
    })
  return { proxy, counted, gate, waits, write, ask, answered }
}

test('a process writes a record for each answer before it', async scope => {
  const { topic, lines } = await createTopic(scope)
  const settings = { AUDIT_LOG: `kafka:${topic}`, AUDIT_STRICT: 'true', KAFKA_BROKERS: inject('kafkaBrokers') }
  const api = await startApi(scope, prefix, { settings })
  const paths = Array.from({ length: 40 }, (_, n) => `/payouts?limit=${1 + n}`)
  const late: Read[] = []
  const answers = await Promise.all(
    paths.map(path =>
      eventually(async () => {
        const answer = await read(api.url, path, key)
        // On a busy machine Kafka may be too slow for one: its client asks again.
        if (answer.status === 503) late.push(answer)
        expect(answer.status, reasonsUnavailable(api).join()).toBe(200)
        return answer
      }),
    ),
  )
  await api.kill()
  const found = await lines()
  expectAudited(answers, found)
  const idsOf = (all: readonly Read[]) => all.map(({ requestId }) => requestId)
  const others = found.map(({ request_id }) => request_id).filter(id => !idsOf(answers).includes(id))
  // A record that came too late for its answer is written once, or not at all.
  expect(new Set(others).size).toBe(others.length)
  expect(idsOf(late)).toEqual(expect.arrayContaining(others))
})

test('strict: without Kafka requests get 503; with Kafka again, each answer has one record', async scope => {
  const { topic, lines } = await createTopic(scope)
  const { proxy, counted, ask, answered } = await serveThroughProxy(scope, topic, true)
  const before = await answered('/payouts')
  await proxy.inject({ kind: 'away' })
  expect((await ask('/payouts')).status).toBe(503)
  // The answer does not wait until Kafka was tried for the last time.
  await eventually(() => expect(counted.lost).toBeGreaterThan(0))
  await proxy.heal()
  const after = await answered('/reps')
  expectAudited([before, after], await lines())
})

test('not strict: without Kafka requests are answered, and their lines are counted as lost', async scope => {
  const { topic, lines } = await createTopic(scope)
  const { proxy, counted, ask } = await serveThroughProxy(scope, topic, false)
  const before = await ask('/payouts')
  // On a busy machine the answer does not wait for its record.
  await eventually(() => expect(counted.written).toBe(1))
  await proxy.inject({ kind: 'away' })
  const during = await Promise.all(['/payouts', '/reps', '/periods'].map(ask))
  expect(during.map(({ status }) => status)).toEqual([200, 200, 200])
  await eventually(() => expect(counted.lost).toBe(3))
  await proxy.heal()
  const after = await eventually(async () => {
    const written = counted.written
    const answer = await ask('/payroll_files')
    await eventually(() => expect(counted.written).toBe(written + 1), { within: 5_000 })
    return answer
  })
  expectAudited([before, after], await lines())
})

test('a silent Kafka delays no answer for longer than the wait, and only once', async scope => {
  const { topic } = await createTopic(scope)
  const { proxy, waits, answered } = await serveThroughProxy(scope, topic, false)
  await answered('/payouts')
  await proxy.inject({ kind: 'black-hole' })
  waits.length = 0
  for (let n = 0; n < 21; n++) await answered('/payouts')
  const [first = 0, ...others] = waits
  // Without this wait, an answer would wait for the retries of Kafka's client.
  expect(first).toBeLessThan(10_000)
  // A pause of a busy machine delays one of them.
  expect(others.filter(wait => wait >= AUDIT_WAIT_MAX / 2).length).toBeLessThanOrEqual(1)
  await proxy.heal()
})

test('a topic that takes small batches only gets smaller ones: after some refusals no line is lost', async scope => {
  const { topic, lines } = await createTopic(scope, [{ name: 'max.message.bytes', value: String(32 * 1024) }])
  const { counted, gate, write } = await serveThroughProxy(scope, topic, false)
  const text = `${JSON.stringify({ audit: true, ids: ['x'.repeat(2_000)] })}\n`
  /** Returns how many lines are lost of some that wait together. */
  const lostAtOnce = async (): Promise<number> => {
    const before = { ...counted }
    const opened = Promise.withResolvers<void>()
    gate.opened = opened.promise
    const written = Promise.all(Array.from({ length: 60 }, () => write({ text, org: 'org_1' })))
    opened.resolve()
    await written
    await eventually(() => expect(counted.written + counted.lost).toBe(before.written + before.lost + 60))
    return counted.lost - before.lost
  }
  expect(await lostAtOnce()).toBeGreaterThan(0)
  await eventually(async () => expect(await lostAtOnce()).toBe(0))
  expect((await lines()).length).toBe(counted.written)
})

test('lost answers of Kafka make no second record of any answer', async scope => {
  const { topic, lines } = await createTopic(scope)
  const { proxy, ask } = await serveThroughProxy(scope, topic, true)
  const answers = [await ask('/payouts')]
  for (let n = 0; n < 6; n++) {
    await proxy.inject({ kind: 'lost-answer' }, () => true, 1)
    answers.push(...(await Promise.all([1, 2, 3].map(limit => ask(`/payouts?limit=${limit}`)))))
  }
  await proxy.heal()
  const found = await lines()
  expectAudited(
    answers.filter(({ status }) => status === 200),
    found,
  )
  expect(new Set(found.map(({ request_id }) => request_id)).size).toBe(found.length)
  expect(new Set(answers.map(({ status }) => status)).has(200)).toBe(true)
})

/** An API with these brokers, which needs no Elasticsearch until a request. */
const apiWith = (scope: Scope, topic: string, brokers: string) =>
  startProcess(scope, 'api/main.ts', {
    ELASTICSEARCH_URL: 'http://127.0.0.1:1',
    KAFKA_BROKERS: brokers,
    API_PORT: '0',
    API_ADMIN_PORT: '0',
    AUDIT_LOG: `kafka:${topic}`,
  })

test.for(['compact', 'compact,delete'])(
  'the audit may not go to a topic that would not keep all lines: %s',
  {},
  async (policy, scope) => {
    const { topic } = await createTopic(scope, [{ name: 'cleanup.policy', value: policy }])
    const api = apiWith(scope, topic, inject('kafkaBrokers'))
    expect((await api.exited).code).toBe(1)
    const says = `${topic}: cleanup.policy: expected delete, got ${policy}`
    expect(api.log()).toContain(says)
    expect(api.log()).not.toContain('.ts:')
    const settings = { ELASTICSEARCH_URL: 'http://127.0.0.1:1', KAFKA_BROKERS: inject('kafkaBrokers') }
    const doctor = await examine(['api', '--json'], { ...settings, AUDIT_LOG: `kafka:${topic}` })
    expect(JSON.parse(String(doctor.out)).checks).toContainEqual(
      expect.objectContaining({ check: `topic ${topic}`, outcome: 'failed', detail: expect.stringContaining(says) }),
    )
  },
)

test('without Kafka the API starts, and warns that the audit topic is not checked', async scope => {
  const api = apiWith(scope, 'audit', '127.0.0.1:1')
  await eventually(() => expect(api.lines().map(({ msg }) => msg)).toContain('the API listens'))
  const warning = { msg: 'it is not known whether the audit topic keeps all lines', reason: 'KafkaJSConnectionError' }
  expect(api.lines()).toContainEqual(expect.objectContaining(warning))
})

test('the audit may not go to a topic of events or of API keys', async scope => {
  const api = apiWith(scope, 'commission.events', '127.0.0.1:1')
  expect((await api.exited).code).toBe(1)
  expect(api.log()).toContain('AUDIT_LOG: expected a topic of its own')
})
