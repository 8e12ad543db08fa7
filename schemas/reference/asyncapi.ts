/**
 * The AsyncAPI 3 document for publishers: the two topics, their events, the framing of each, and the parking of
 * invalid records. Built from the schemas that the projector checks records against.
 */
import { parkCodes } from '../errors.ts'
import { type EventType, eventSchemas, type Stream, schemaOfType } from '../events.ts'
import { TOPIC_MESSAGE_BYTES_MAX, valueBytesOf } from '../limits.ts'
import { keysOf } from '../objects.ts'
import { idPattern } from '../values.ts'
import { eventExamples, eventSummaries } from './examples.ts'
import { dataNameOf, named } from './named-schema.ts'

type Json = Record<string, unknown>

/** The CloudEvents attributes of binary mode, as record headers. */
const headersOf = (type: EventType): Json => ({
  type: 'object',
  required: ['ce_specversion', 'ce_id', 'ce_type', 'ce_source'],
  properties: {
    ce_specversion: { type: 'string', const: '1.0' },
    ce_id: { type: 'string', minLength: 1, description: 'Identifies this event among those of its source.' },
    ce_type: { type: 'string', const: type },
    ce_source: { type: 'string', minLength: 1, format: 'uri-reference', description: 'The publisher.' },
    ce_time: { type: 'string', format: 'date-time', description: 'When the event happened. Never used for ordering.' },
    'content-type': {
      type: 'string',
      pattern: '^application/json(?:\\s*;.*)?$',
      description: 'With or without parameters, or absent. The value of the record is the data.',
    },
  },
})

const nameOf = (type: string): string => type.replace(/^commission\./, '').replace(/\.v1$/, '')

const messageOf = (type: EventType, payload: object): Json => ({
  name: type,
  title: type,
  summary: eventSummaries[type],
  contentType: 'application/json',
  headers: { title: `${dataNameOf(type)}Headers`, ...headersOf(type) },
  payload: named(payload, dataNameOf(type)),
  bindings: { kafka: { key: { type: 'string', pattern: idPattern('org'), description: '`org_id` of the data.' } } },
  examples: [
    {
      headers: {
        ce_specversion: '1.0',
        ce_id: '6f1c2a90-1b7e-4c58-9d3e-8a51f0b7c2d4',
        ce_type: type,
        ce_source: '/commission-calculation',
        'content-type': 'application/json',
      },
      payload: eventExamples[type],
    },
  ],
})

const summariesOfTopics: Record<Stream, string> = {
  events: 'Reps, periods, payouts and payroll records of every organization.',
  'api-keys': 'API keys. The topic has producers of its own, so that a publisher of payouts cannot create a key.',
}
const streams = keysOf(summariesOfTopics)

/** The topics and brokers that the document describes. It has no credentials. */
export type Installation = {
  readonly topics: Readonly<Record<Stream, { readonly address: string; readonly partitions: number }>>
  /** `host:port`. None: the document has no servers. */
  readonly brokers: readonly string[]
  readonly tls: boolean
  readonly saslMechanism: keyof typeof securitySchemes | undefined
  /** Of a record, as Kafka counts them. */
  readonly messageBytes: number
}

const defaults: Installation = {
  topics: {
    events: { address: 'commission.events', partitions: 6 },
    'api-keys': { address: 'commission.api-keys', partitions: 1 },
  },
  brokers: [],
  tls: false,
  saslMechanism: undefined,
  messageBytes: TOPIC_MESSAGE_BYTES_MAX,
}

const channelName = { events: 'events', 'api-keys': 'apiKeys' } as const satisfies Record<Stream, string>

const channelOf = (stream: Stream, { topics, messageBytes }: Installation): Json => ({
  address: topics[stream].address,
  title: topics[stream].address,
  summary: summariesOfTopics[stream],
  description: [
    'The record key is the organization id.',
    'The partition is that of the default partitioner of Java and kafkajs clients (murmur2 of the key).',
    'All events of an organization are therefore in one partition, in the order they were published.',
  ].join(' '),
  messages: Object.fromEntries(
    Object.keys(eventSchemas[stream]).map(type => [nameOf(type), { $ref: `#/components/messages/${nameOf(type)}` }]),
  ),
  bindings: {
    kafka: {
      topic: topics[stream].address,
      partitions: topics[stream].partitions,
      topicConfiguration: {
        'cleanup.policy': ['delete'],
        'retention.ms': -1,
        'retention.bytes': -1,
        'max.message.bytes': messageBytes,
      },
      bindingVersion: '0.5.0',
    },
  },
})

const securitySchemes = {
  plain: { type: 'plain' },
  'scram-sha-256': { type: 'scramSha256' },
  'scram-sha-512': { type: 'scramSha512' },
  // The settings do not say where a publisher gets its token.
  oauthbearer: { type: 'oauth2', description: 'SASL OAUTHBEARER', flows: {} },
} as const

const serversOf = ({ brokers, tls, saslMechanism }: Installation): Json =>
  Object.fromEntries(
    brokers.map((host, index) => [
      `broker${index + 1}`,
      {
        host,
        protocol: tls ? 'kafka-secure' : 'kafka',
        ...(saslMechanism && { security: [securitySchemes[saslMechanism]] }),
      },
    ]),
  )

/** Returns the document of one installation. */
export const asyncapiOf = (installation: Installation) => ({
  asyncapi: '3.0.0',
  info: {
    title: 'Commission events',
    version: '1.0.0',
    description: [
      [
        'The events that may be published.',
        'Envelope: CloudEvents 1.0 over Kafka, in binary mode as described here,',
        'or in structured mode (content type `application/cloudevents+json`).',
        `A value may have up to ${valueBytesOf(installation.messageBytes)} bytes.`,
      ].join(' '),
      [
        'Every field is required, except `expires_at` and `allowed_networks` of an API key;',
        'an absent value is an explicit null.',
        'Amounts are decimal strings, and the API returns the characters that were published.',
      ].join(' '),
      [
        'A record that breaks a rule is parked: it is kept whole with its reason, and has no effect.',
        `The reasons, of which the first that applies counts: ${parkCodes.map(code => `\`${code}\``).join(', ')}.`,
        'Publish a corrected event instead. The same event again has no effect.',
      ].join(' '),
      [
        'The projector says what happened to a record, at its admin port and at its port of receipts:',
        '`GET /receipts/{topic}/{partition}/{offset}?wait=10` answers published, parked with its reason,',
        'or not yet.',
        '`GET /receipts/{topic}/{partition}?from=0&to=99&wait=10` counts the outcomes of all records between two',
        'offsets.',
      ].join(' '),
    ].join('\n\n'),
  },
  ...(installation.brokers.length > 0 && { servers: serversOf(installation) }),
  defaultContentType: 'application/json',
  channels: Object.fromEntries(streams.map(stream => [channelName[stream], channelOf(stream, installation)])),
  operations: Object.fromEntries(
    streams.map(stream => [
      `receive${stream === 'events' ? 'Events' : 'ApiKeys'}`,
      {
        action: 'receive',
        channel: { $ref: `#/channels/${channelName[stream]}` },
        summary: `The service reads ${installation.topics[stream].address}.`,
      },
    ]),
  ),
  components: {
    messages: Object.fromEntries(keysOf(schemaOfType).map(type => [nameOf(type), messageOf(type, schemaOfType[type])])),
  },
})

/** With the default names of the topics, and without servers. */
export const asyncapi = asyncapiOf(defaults)
