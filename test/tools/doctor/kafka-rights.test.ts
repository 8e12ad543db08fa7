import { expect, test } from 'vitest'
import type { Operations } from '../../../core/log/kafka/authorized-operations.ts'
import { type KafkaProbe, tryKafkaRights } from '../../../tools/doctor/kafka-rights.ts'

const values = { KAFKA_EVENTS_TOPIC: 'e', KAFKA_API_KEYS_TOPIC: 'k', KAFKA_GROUP_ID: 'g' }
const probe = (topic: Operations | undefined, group: Operations | undefined = new Set()): KafkaProbe => ({
  topic: async () => topic,
  group: async () => group,
  admin: {
    describeConfigs: async () => ({ resources: [], throttleTime: 0 }),
    createTopics: async () => true,
  },
})
const outcomes = async (...given: Parameters<typeof tryKafkaRights>) =>
  (await tryKafkaRights(...given)).map(({ outcome }) => outcome)

test('a missing right is named, with the line of the script that gives it', async () => {
  const found = await tryKafkaRights('projector', values, probe(new Set(['Read']), new Set(['Read'])))
  expect(found.filter(({ outcome }) => outcome === 'failed')).toEqual(
    ['e', 'k'].map(topic => ({
      check: `Kafka: DescribeConfigs on topic ${topic}`,
      outcome: 'failed',
      detail: 'Kafka refuses it',
      mend: expect.stringContaining(
        `allow commission-projector --topic "\${KAFKA_${topic === 'e' ? 'EVENTS' : 'API_KEYS'}_TOPIC}" --operation Read --operation DescribeConfigs`,
      ),
    })),
  )
})

test('of a topic that may not be described, requests tell the other rights', async () => {
  expect(await outcomes('topics', values, probe(new Set()))).toEqual(['ok', 'failed', 'ok', 'ok', 'failed', 'ok'])
})

test('rights that old brokers do not tell, and those of transactions, are not tried', async () => {
  expect(new Set(await outcomes('keys', values, probe(undefined)))).toEqual(new Set(['not tried']))
  expect(await outcomes('events-publisher', values, probe(new Set(['Write'])))).toEqual([
    'ok',
    'not tried',
    'not tried',
  ])
})

test('rights on the new topic of a move are not tried: there is no such topic yet', async () => {
  const found = await tryKafkaRights('grow', values, probe(new Set(['Read', 'DescribeConfigs']), new Set(['Read'])))
  const { ok, 'not tried': notTried } = Object.groupBy(found, ({ outcome }) => outcome)
  expect(ok?.map(({ check }) => check)).toEqual([
    'Kafka: Read on topic e',
    'Kafka: DescribeConfigs on topic e',
    'Kafka: Read on group g-api-keys',
  ])
  expect(notTried?.map(({ check }) => check)).toContain(`Kafka: Write on topic \${KAFKA_EVENTS_TOPIC}-*`)
  expect(found).toHaveLength((ok?.length ?? 0) + (notTried?.length ?? 0))
})
