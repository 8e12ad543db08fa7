import { describe, expect, test } from 'vitest'
import { parkCodes } from '../../../schemas/errors.ts'
import { eventSchemas, type Stream } from '../../../schemas/events.ts'
import { asyncapi, asyncapiOf } from '../../../schemas/reference/asyncapi.ts'
import { compile } from '../../../schemas/validate.ts'
import { asyncapiErrors } from '../../support/asyncapi.ts'

type Message = {
  name: string
  headers: { required: string[]; properties: Record<string, { const?: string }> }
  payload: Parameters<typeof compile>[0]
  examples: { headers: Record<string, string>; payload: unknown }[]
}
const messages = Object.values(asyncapi.components.messages) as unknown as Message[]
const types = [...Object.keys(eventSchemas.events), ...Object.keys(eventSchemas['api-keys'])]

describe('the AsyncAPI document', () => {
  test('matches the official JSON Schema of AsyncAPI 3', () => {
    expect(asyncapiErrors(asyncapi)).toEqual([])
    expect(asyncapiErrors({ ...asyncapi, channels: 1 })).not.toEqual([])
  })

  test.each([
    [false, undefined, { protocol: 'kafka' }],
    [true, undefined, { protocol: 'kafka-secure' }],
    [true, 'plain', { protocol: 'kafka-secure', security: [{ type: 'plain' }] }],
    [true, 'oauthbearer', { protocol: 'kafka-secure', security: [{ type: 'oauth2', flows: {} }] }],
    [false, 'scram-sha-512', { protocol: 'kafka', security: [{ type: 'scramSha512' }] }],
  ] as const)('of an installation has its topics and brokers: TLS %s, SASL %s', (tls, saslMechanism, server) => {
    const document = asyncapiOf({
      topics: { events: { address: 'pay.events', partitions: 12 }, 'api-keys': { address: 'pay.keys', partitions: 1 } },
      brokers: ['one:9092', 'two:9092'],
      tls,
      saslMechanism,
      messageBytes: 9_437_184,
    })
    expect(asyncapiErrors(document)).toEqual([])
    expect(document).toMatchObject({
      servers: { broker1: { host: 'one:9092', ...server }, broker2: { host: 'two:9092', ...server } },
    })
    expect(JSON.stringify(document)).not.toContain('commission.events"')
    const { events } = document.channels as unknown as Record<string, { address: string; bindings: object }>
    expect(events).toMatchObject({
      address: 'pay.events',
      bindings: { kafka: { topic: 'pay.events', partitions: 12 } },
    })
  })

  test('describes every event, each on its topic', () => {
    expect(messages.map(({ name }) => name)).toEqual(types)
    const countIn = (stream: Stream): number => Object.keys(eventSchemas[stream]).length
    const { events, apiKeys } = asyncapi.channels as unknown as Record<string, { address: string; messages: object }>
    expect([events?.address, Object.keys(events?.messages ?? {}).length]).toEqual([
      'commission.events',
      countIn('events'),
    ])
    expect([apiKeys?.address, Object.keys(apiKeys?.messages ?? {}).length]).toEqual([
      'commission.api-keys',
      countIn('api-keys'),
    ])
  })

  test.each(messages.map(message => [message.name, message] as const))(
    'describes the headers of %s in binary mode',
    (name, message) => {
      expect(message.headers.required).toEqual(['ce_specversion', 'ce_id', 'ce_type', 'ce_source'])
      expect(message.headers.properties.ce_type?.const).toBe(name)
      expect(message.headers.properties.ce_specversion?.const).toBe('1.0')
    },
  )

  test.each(messages.map(message => [message.name, message] as const))(
    'has an example of %s that matches its schema',
    (_, { payload, examples }) => {
      const validate = compile(payload)
      expect(examples.length).toBeGreaterThan(0)
      for (const example of examples) expect(validate(example.payload), JSON.stringify(validate.errors)).toBe(true)
    },
  )

  test('names every code of a parked record', () => {
    for (const code of parkCodes) expect(asyncapi.info.description).toContain(`\`${code}\``)
  })
})
