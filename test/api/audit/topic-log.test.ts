/** After an error, a line is not sent again, and the next one goes through a new client. */
import type { Message } from 'kafkajs'
import { expect, test } from 'vitest'
import { createTopicLog } from '../../../api/audit/topic-log.ts'
import { AUDIT_KAFKA_WRITE_MAX } from '../../../api/limits.ts'

const neverLater = () => () => undefined

test('a failed send loses its lines and makes a new client; the organization is the key', async () => {
  const clients: string[] = []
  const sent: { topic: string; acks: number | undefined; messages: Message[] }[] = []
  const log = createTopicLog(
    'audit',
    () => {
      const number = clients.length
      clients.push('new')
      return {
        connect: async () => {
          if (number === 0) throw new Error('away')
          clients[number] = 'connected'
        },
        disconnect: async () => {
          clients[number] = 'gone'
        },
        send: async ({ topic, acks, messages }) => {
          if (number === 1)
            throw Object.assign(new Error('10.0.0.1:9092 refuses'), { type: 'NOT_LEADER_FOR_PARTITION' })
          sent.push({ topic, acks, messages })
          return []
        },
      }
    },
    neverLater,
  )
  const line = { text: '{"audit":true}\n', org: 'org_1' }
  expect(await log.write([line])).toEqual({ lines: 0, reason: 'Error' })
  expect(await log.write([line])).toEqual({ lines: 0, reason: 'NOT_LEADER_FOR_PARTITION' })
  expect(await log.write([line, { ...line, org: undefined }])).toEqual({ lines: 2 })
  expect(await log.write([line])).toEqual({ lines: 1 })
  expect(clients).toEqual(['gone', 'gone', 'connected'])
  expect(sent.map(({ topic, acks }) => [topic, acks])).toEqual([
    ['audit', -1],
    ['audit', -1],
  ])
  expect(sent[0]?.messages).toEqual([
    { key: 'org_1', value: '{"audit":true}' },
    { key: null, value: '{"audit":true}' },
  ])
  await log.end()
  expect(clients[2]).toBe('gone')
})

// For the message, and for the segment.
test.each(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'])(
  'a refusal of a batch as too large is told: %s',
  async type => {
    const send = async () => {
      throw Object.assign(new Error('too large'), { type })
    }
    const log = createTopicLog(
      'audit',
      () => ({
        connect: async () => undefined,
        disconnect: async () => undefined,
        send,
      }),
      neverLater,
    )
    const written = await log.write([{ text: '{}\n', org: 'org_1' }])
    expect(written).toEqual({ lines: 0, reason: type, isTooLarge: true })
  },
)

test('a client that never says whether it has sent loses its lines after a time, and the next one is new', async () => {
  const never = Promise.withResolvers<never>().promise
  const clients: string[] = []
  let runTimer = (): void => undefined
  const timers = new Set<() => void>()
  const log = createTopicLog(
    'audit',
    () => {
      const number = clients.push('new') - 1
      return {
        connect: async () => {
          clients[number] = 'connected'
        },
        disconnect: async () => {
          clients[number] = 'gone'
        },
        send: () => (number === 0 ? never : Promise.resolve([])),
      }
    },
    (milliseconds, run) => {
      expect(milliseconds).toBe(AUDIT_KAFKA_WRITE_MAX)
      runTimer = run
      timers.add(run)
      return () => void timers.delete(run)
    },
  )
  const line = { text: '{"audit":true}\n', org: 'org_1' }
  const stuck = log.write([line, line])
  await new Promise(setImmediate)
  runTimer()
  expect(await stuck).toEqual({ lines: 0, reason: 'too_slow' })
  expect(await log.write([line])).toEqual({ lines: 1 })
  expect(clients).toEqual(['gone', 'connected'])
  expect([...timers]).toEqual([])
})
