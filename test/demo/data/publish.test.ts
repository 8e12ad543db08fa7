import type { Kafka, Message, ProducerRecord } from 'kafkajs'
import { expect, test } from 'vitest'
import { createPublisher, toMessage } from '../../../demo/data/publish.ts'

const event = {
  id: 'e1',
  type: 'commission.rep.recorded.v1',
  time: '2026-01-01T00:00:00Z',
  data: { org_id: 'org_1', id: 'rep_1' },
}

test('a record is a CloudEvent in binary mode, with its organization as the key', () => {
  expect(toMessage(event)).toEqual({
    key: 'org_1',
    headers: {
      ce_specversion: '1.0',
      ce_id: 'e1',
      ce_type: 'commission.rep.recorded.v1',
      ce_source: expect.any(String),
      ce_time: '2026-01-01T00:00:00Z',
      'content-type': 'application/json',
    },
    value: '{"org_id":"org_1","id":"rep_1"}',
  })
})

test('records are sent in order, in batches that fit a topic, one batch after the other', async () => {
  const sent: ProducerRecord[] = []
  let underWay = 0
  const send = async (record: ProducerRecord) => {
    expect(++underWay).toBe(1)
    await Promise.resolve()
    sent.push(record)
    underWay--
    return [{ topicName: record.topic, partition: 0, errorCode: 0, baseOffset: String(sent.length) }]
  }
  const kafka = { producer: () => ({ send }) } as unknown as Kafka
  const messages: Message[] = [
    ...Array.from({ length: 1_200 }, (_, index) => ({ key: 'org_1', value: String(index) })),
    { key: 'org_1', value: 'x'.repeat(3_000_000) },
    { key: 'org_1', value: null },
  ]
  let counted = 0
  const stored = await createPublisher(kafka).publish('topic', messages, count => {
    counted += count
  })
  expect(stored.map(({ baseOffset }) => baseOffset)).toEqual(['1', '2', '3', '4', '5'])
  expect(sent.flatMap(record => record.messages)).toEqual(messages)
  expect(sent.map(record => record.messages.length)).toEqual([500, 500, 200, 1, 1])
  expect(sent.every(record => record.topic === 'topic' && record.acks === -1)).toBe(true)
  expect(counted).toBe(messages.length)
})
