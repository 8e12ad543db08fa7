/**
 * Receipts, as a publisher requests them: with the place that its Kafka producer returns, at the admin port of any
 * projector. Two projectors share the partitions, with a proxy between them and Elasticsearch.
 */
import kafkajs, { type Producer } from 'kafkajs'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { ELASTICSEARCH_TIMEOUT_MS } from '../../core/store/limits.ts'
import { commandSettings, jsonLines, readHere, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  keyRevoked,
  newId,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { receiptInTime } from '../support/in-time.ts'
import { type Projector, startProjector, untilCaughtUp } from '../support/processes.ts'
import { type FaultProxy, startProxy } from '../support/proxy.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const file = fileScope()
const org = newId('org')
let topics: Topics
let prefix: string
let proxy: FaultProxy
let projectors: [Projector, Projector]
let producer: Producer

beforeAll(async () => {
  topics = await createTopics(file)
  prefix = createPrefix(file)
  proxy = await startProxy(file, new URL(inject('elasticsearchUrl')).host)
  const settings = { ELASTICSEARCH_URL: `http://${proxy.address}` }
  const start = () => startProjector(file, { topics, prefix, settings })
  projectors = [await start(), await start()]
  producer = topics.kafka.producer({
    idempotent: true,
    allowAutoTopicCreation: false,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  file.onTestFinished(() => producer.disconnect())
  await topics.publish([repRecorded({ org_id: org }), periodRecorded({ org_id: org })])
  await untilCaughtUp(projectors[0])
})

type RecordPlace = { readonly topic: string; readonly partition: number; readonly offset: number }

/** Sends a record. Returns the place that Kafka gave it. */
const send = async ({ stream, key, headers, value }: Outgoing): Promise<RecordPlace> => {
  const [stored] = await producer.send({
    topic: topics.name(stream),
    acks: -1,
    messages: [{ key, value, headers: headers as kafkajs.IHeaders }],
  })
  if (stored === undefined) throw new Error('Kafka did not say where it put a record')
  return { topic: stored.topicName, partition: stored.partition, offset: Number(stored.baseOffset) }
}
const later = (place: RecordPlace, records: number): RecordPlace => ({ ...place, offset: place.offset + records })

const pathOf = ({ topic, partition, offset }: RecordPlace, wait: number) =>
  `/receipts/${topic}/${partition}/${offset}?wait=${wait}` as const
const receipt = async (place: RecordPlace, wait: number, [projector]: readonly Projector[] = projectors) => {
  const { status, text } = await (projector as Projector).ask(pathOf(place, wait))
  return { status, body: JSON.parse(text) as Record<string, unknown> }
}
/** As `receipt`, and again while the read is not in time. */
const served = (place: RecordPlace, wait: number) => receiptInTime(() => receipt(place, wait))
const received = (place: RecordPlace, state: object) => ({ status: 200, body: { ...state, ...place } })
const PUBLISHED = { state: 'published' }
const NOT_YET = { state: 'not_yet' }

const waiting = async ({ ask }: Projector): Promise<number> =>
  Number(/^commission_receipts_waiting (\d+)$/m.exec((await ask('/metrics')).text)?.[1])
const untilWaiting = (count: number, projector = projectors[0]) =>
  eventually(async () => expect(await waiting(projector)).toBe(count))

test('a producer gets receipts for its places: published for applied and duplicate records, parked with a code for refused ones', async () => {
  const payout = payoutCalculated({ org_id: org })
  const sent = [
    [payout, PUBLISHED],
    [payout, PUBLISHED],
    [
      payoutCalculated({ org_id: org, id: 'payout_2' }),
      { state: 'parked', code: 'supersedes_mismatch', detail: expect.stringMatching(/, got null$/) },
    ],
    [
      payrollRecorded({ org_id: org, rep_id: 'rep_none' }),
      { state: 'parked', code: 'rep_unknown', detail: expect.stringMatching(/^\/rep_id: expected a rep/) },
    ],
    [keyCreated({ org_id: org }), PUBLISHED],
    [
      keyRevoked({ org_id: org, id: 'key_none' }),
      { state: 'parked', code: 'key_unknown', detail: expect.stringMatching(/^\/id: expected a key/) },
    ],
    [keyRevoked({ org_id: org }), PUBLISHED],
  ] as const
  const places: RecordPlace[] = []
  for (const [record] of sent) places.push(await send(record))
  const expected = places.map((place, index) => received(place, sent[index]?.[1] ?? {}))
  // The two projectors share the partitions, but each one answers for all of them. On a busy machine a read may not be
  // in time: then a receipt is a 503, or has the sentence of its code.
  for (const projector of projectors) {
    for (const wait of [60, 0]) {
      const receipts = () => Promise.all(places.map(place => receipt(place, wait, [projector])))
      await eventually(async () => expect(await receipts()).toEqual(expected))
    }
  }
  expect(await waiting(projectors[0])).toBe(0)
})

test('the receipt of a record with invalid data, `parked list` and `parked show` name the field and the rule', async () => {
  const place = await send(repRecorded({ org_id: org, status: 'CANARY' as 'active' }))
  const detail = '/status must be active or departed, got a text of 6 characters'
  const parked = received(place, { state: 'parked', code: 'data_invalid', detail })
  await eventually(async () => expect(await receipt(place, 60)).toEqual(parked))
  const position = `${place.topic}:${place.partition}:${place.offset}`
  const listed = jsonLines(await readHere(['parked', 'list', '--json'], prefix))
  expect(listed.filter(line => line.detail === detail)).toEqual([
    expect.objectContaining({ position, code: 'data_invalid', detail }),
  ])
  const [shown] = jsonLines(await readHere(['parked', 'show', position, '--json'], prefix))
  expect(shown).toMatchObject({ position, code: 'data_invalid', detail })
  const textOf = async (...args: string[]) => String((await readHere(['parked', ...args], prefix)).out)
  expect(await textOf('show', position)).toMatch(
    /^ *detail +\/status must be active or departed, got a text of 6 characters$/m,
  )
  const [headings, ...rows] = (await textOf('list')).trim().split('\n')
  expect(headings).toMatch(/ DETAIL$/)
  expect(rows.filter(row => row.endsWith(` ${detail}`))).toEqual([expect.stringContaining(position)])
})

test('a receipt for a record that does not exist yet is not_yet, and a waiting request is answered once it is published', async () => {
  const place = later(await send(repRecorded({ org_id: org, name: 'before' })), 1)
  expect(await served(place, 0)).toEqual(received(place, NOT_YET))
  const askedAt = performance.now()
  const asked = receipt(place, 60)
  await untilWaiting(1)
  const sent = await send(repRecorded({ org_id: org, name: 'after' }))
  expect(await asked).toEqual(received(sent, PUBLISHED))
  // Before its 60 s are over.
  expect([sent, performance.now() - askedAt < 59_000]).toEqual([place, true])
})

test('while the projectors are behind, a receipt is not_yet after its wait; then all requests get their receipts', async () => {
  await proxy.inject({ kind: 'reset' }, line => line.startsWith('POST /_bulk'))
  const applied = await send(repRecorded({ org_id: org, name: 'while behind' }))
  const refused = await send(payoutCalculated({ org_id: org, id: 'payout_3' }))
  const timed = async () => {
    const begun = performance.now()
    return { ...(await receipt(refused, 2)), took: performance.now() - begun }
  }
  const { took, ...answer } = await receiptInTime(timed)
  expect(answer).toEqual(received(refused, NOT_YET))
  expect(took).toBeGreaterThan(1_950)
  expect(took).toBeLessThan(20_000)

  const many = Array.from({ length: 200 }, (_, index) => receipt(index % 2 === 0 ? applied : refused, 60))
  await untilWaiting(200)
  await proxy.heal()
  const receipts = await Promise.all(many)
  const parked = (detail: RegExp) =>
    received(refused, { state: 'parked', code: 'supersedes_mismatch', detail: expect.stringMatching(detail) })
  // A hundred explanations at once are not all in time: then the sentence of the code is in the receipt.
  const sentence = /^\/supersedes_id: expected the current payout of this rep and period/
  for (const [index, one] of receipts.entries())
    expect(one).toEqual(index % 2 === 0 ? received(applied, PUBLISHED) : parked(sentence))
  await eventually(async () => expect(await receipt(refused, 0)).toEqual(parked(/, got null$/)))
})

test('while Elasticsearch is away, a receipt is a 503; a request that waits until it is back gets the receipt', async () => {
  const place = await send(repRecorded({ org_id: org, name: 'before Elasticsearch was away' }))
  expect(await served(place, 60)).toEqual(received(place, PUBLISHED))
  await proxy.inject({ kind: 'away' })
  const unknown = { status: 503, body: { error: expect.stringContaining('Elasticsearch') } }
  expect(await receipt(place, 0)).toEqual(unknown)
  expect(await receipt(place, 1)).toEqual(unknown)
  const asked = receipt(place, 60)
  await untilWaiting(1)
  await proxy.heal()
  expect(await asked).toEqual(received(place, PUBLISHED))

  // A missing response is also a 503, sooner than the timeout of other requests.
  await proxy.inject({ kind: 'black-hole' })
  const begun = performance.now()
  expect(await receipt(place, 0)).toEqual(unknown)
  expect(performance.now() - begun).toBeLessThan(ELASTICSEARCH_TIMEOUT_MS)
  await proxy.heal()
  await untilCaughtUp(projectors[0])
})

test('a request whose client has disconnected is dropped', async () => {
  const place = later(await send(repRecorded({ org_id: org, name: 'left' })), 100)
  const gone = new AbortController()
  const { ask } = projectors[0]
  const url = await adminUrl(projectors[0])
  const left = fetch(`${url}${pathOf(place, 60)}`, { signal: gone.signal }).catch(() => 'left')
  await untilWaiting(1)
  gone.abort()
  expect(await left).toBe('left')
  await untilWaiting(0)
  expect((await ask('/livez')).status).toBe(200)
})
const adminUrl = async ({ lines }: Projector): Promise<string> => {
  const { address } = lines().find(({ msg }) => msg === 'the admin port listens') as { address: { port: number } }
  return `http://127.0.0.1:${address.port}`
}

test('a wrong request is answered with the expected and the received value', async () => {
  const [{ ask }] = projectors
  expect(await ask(`/receipts/${topics.events}/3/0`)).toEqual({
    status: 404,
    text: JSON.stringify({ error: `partition: expected 0 to 2 of ${topics.events}, got 3` }),
  })
  expect((await ask('/receipts/another/0/0')).status).toBe(404)
  expect(await ask(`/receipts/${topics.events}/0/0?wait=long`)).toEqual({
    status: 400,
    text: JSON.stringify({ error: 'wait: expected whole seconds from 0 to 60, got "long"' }),
  })
})

describe('a request that waits while', () => {
  test('another generation is made live, and the previous one dropped, gets the receipt of the new one', async () => {
    const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
    const projection = async (...args: string[]) => {
      const ran = await runCommand(['projection', ...args], settings)
      expect(ran, ran.said).toMatchObject({ code: 0 })
    }
    await projection('rebuild')
    await projection('verify', 'g1', 'g2')
    // A request for each command: on a busy machine both commands take longer than a request can wait.
    for (const command of [
      ['swap', 'g2'],
      ['drop', 'g1'],
    ]) {
      const place = later(await send(repRecorded({ org_id: org, name: command.join(' ') })), 1)
      const asked = receipt(place, 60)
      await untilWaiting(1)
      await projection(...command)
      expect(await waiting(projectors[0])).toBe(1)
      expect(await send(payrollRecorded({ org_id: org, rep_id: 'rep_none' }))).toEqual(place)
      expect(await asked).toEqual(
        received(place, {
          state: 'parked',
          code: 'rep_unknown',
          detail: expect.stringMatching(/^\/rep_id: expected a rep/),
        }),
      )
    }
  })

  test('its projector stops gets not_yet at once, and the projector stops in time', async () => {
    const place = later(await send(repRecorded({ org_id: org, name: 'stop' })), 100)
    const asked = receipt(place, 60)
    await untilWaiting(1)
    const stopped = projectors[0].stop()
    // It waits for 60 s. A projector that does not end within 9 s ends with code 1.
    expect(await asked).toEqual(received(place, NOT_YET))
    expect(await stopped).toEqual({ code: 0, signal: null })
  })
})
