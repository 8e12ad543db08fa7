/** `publish-again` with a record that it refuses, and with a wait that ends before the projector decides. */
import { beforeAll, expect, test } from 'vitest'
import { commandSettings, jsonLines, publishAgainAfter, type Ran, runCommand } from '../support/commands.ts'
import { newId, type Outgoing, payoutCalculated, periodRecorded, repRecorded, withHeaders } from '../support/events.ts'
import { countInKafka } from '../support/in-kafka.ts'
import { partitionOf } from '../support/model-record.ts'
import { type Projector, startProcess, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { indexNamed, store, storedById } from '../support/stored.ts'
import type { Published, Topics } from '../support/topics.ts'

const file = fileScope()
const org = newId('org')
let topics: Topics
let prefix: string
let projector: Projector

const payout = (data: Partial<Parameters<typeof payoutCalculated>[0]>): Outgoing =>
  payoutCalculated({ org_id: org, ...data })
const position = ({ stream, partition, offset }: Published): string => `${topics.name(stream)}:${partition}:${offset}`
const again = (...args: string[]): Promise<Ran> =>
  runCommand(['parked', 'publish-again', '--json', ...args], commandSettings(topics, prefix))

beforeAll(async () => {
  // Kafka's default, so that a batch of large records is refused.
  ;({ topics, prefix, projector } = await startProjection(
    file,
    [repRecorded({ org_id: org }), periodRecorded({ org_id: org })],
    { configuration: { 'max.message.bytes': '1048588' } },
  ))
})

test('a record that would be parked does not count for later ones: a record that needs it is forecast as parked, and not sent', async () => {
  const elsewhere = (partitionOf(org, topics.partitions) + 1) % topics.partitions
  const misplaced = { ...repRecorded({ org_id: org, id: 'rep_6' }), partition: elsewhere }
  const [rep, needing] = [
    ...(await topics.publish([misplaced])),
    ...(await topics.publish([payout({ id: 'payout_h', rep_id: 'rep_6' })])),
  ].map(position)
  await untilCaughtUp(projector)
  const index = indexNamed(prefix, 'parked')
  const { body, ...fields } = (await storedById(index, rep ?? '')) as { body: { headers: unknown[] } }
  const before = await countInKafka(topics)
  expect(jsonLines(await again(rep ?? '', needing ?? ''))).toMatchObject([
    { outcome: 'would_be_applied' },
    { outcome: 'would_be_applied' },
  ])
  await store(index, rep ?? '', { ...fields, body: { ...body, headers: [...body.headers, ['x-y', null]] } })
  for (const publish of [[], ['--publish']]) {
    const ran = await again(rep ?? '', needing ?? '', ...publish)
    expect(jsonLines(ran).map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ['refused', 'header_without_value'],
      ['refused', 'rep_unknown'],
    ])
    expect([ran.code, await countInKafka(topics)]).toEqual([3, before])
  }
})

test('a record that is sent but not decided when the wait ends or is interrupted is reported as published', async () => {
  const late = await topics.publish([
    payout({ id: 'payout_i', rep_id: 'rep_4' }),
    payout({ id: 'payout_j', rep_id: 'rep_10' }),
  ])
  await topics.publish([repRecorded({ org_id: org, id: 'rep_4' }), repRecorded({ org_id: org, id: 'rep_10' })])
  await untilCaughtUp(projector)
  await projector.stop()
  const [first, second] = late.map(position)
  const ran = await again(first ?? '', '--publish', '--wait', '1')
  expect([ran.code, ran.said]).toEqual([1, expect.stringContaining('1 records behind')])
  expect(jsonLines(ran)).toMatchObject([{ position: first, outcome: 'published', published: expect.any(String) }])

  projector = await startProjector(file, { topics, prefix })
  await untilCaughtUp(projector)
  await projector.stop()
  const before = await countInKafka(topics)
  const parameters = ['parked', 'publish-again', '--json', '--publish', second ?? '']
  const waiting = startProcess(file, 'tools/main.ts', commandSettings(topics, prefix), { parameters })
  await eventually(async () => expect(await countInKafka(topics)).toBeGreaterThan(before))
  expect(await waiting.stop()).toEqual({ code: 1, signal: null })
  expect(waiting.lines()).toMatchObject([{ position: second, outcome: 'published', reason: null }])
  expect(waiting.log()).toContain('stopped\n')
  projector = await startProjector(file, { topics, prefix })
  await untilCaughtUp(projector)
  expect(jsonLines(await again(first ?? '', second ?? ''))).toMatchObject([
    { outcome: 'already_there' },
    { outcome: 'already_there' },
  ])
})

test('a projector that was started later has the records that earlier ones parked in its metrics', async () => {
  await eventually(async () => {
    const { text } = await projector.ask('/metrics')
    expect(text).toContain('commission_records_total{generation="g1",stream="events",outcome="parked"} 0\n')
    expect(text).toContain('commission_parked_records{generation="g1",stream="events"} 4\n')
    expect(text).toContain('commission_parked_records{generation="api-keys",stream="api-keys"} 0\n')
  })
})

test('a payout alone is refused while the next one is parked; interrupted between both, none is published twice or lost', async () => {
  const early = [
    ...(await topics.publish([payout({ id: 'payout_n', rep_id: 'rep_30' })])),
    ...(await topics.publish([payout({ id: 'payout_o', rep_id: 'rep_30', supersedes_id: 'payout_n' })])),
  ]
  await topics.publish([repRecorded({ org_id: org, id: 'rep_30' })])
  await untilCaughtUp(projector)
  const before = await countInKafka(topics)
  const alone = jsonLines(await again(...early.slice(0, 1).map(position), '--publish'))
  expect(alone).toMatchObject([{ outcome: 'refused', reason: 'undone_by_parked' }])
  const interrupted = await publishAgainAfter({ topics, prefix }, [], early, 1)
  expect(interrupted.map(({ outcome }) => outcome)).toEqual(['applied', 'would_be_applied'])
  expect(await countInKafka(topics)).toBe(before + 1)
  for (const outcomes of [
    ['already_there', 'applied'],
    ['already_there', 'already_there'],
  ]) {
    const ran = await again(...early.map(position), '--publish')
    expect(
      jsonLines(ran).map(({ outcome }) => outcome),
      ran.said,
    ).toEqual(outcomes)
    expect(await countInKafka(topics)).toBe(before + 2)
  }
})

test('records that together are larger than the topic accepts are published again, in order', async () => {
  const large = { 'x-large': 'a'.repeat(600_000) }
  const early: Published[] = []
  for (const [id, supersedes_id] of [['payout_k'], ['payout_l', 'payout_k'], ['payout_m', 'payout_l']]) {
    const one = payout({ id: id ?? '', rep_id: 'rep_20', ...(supersedes_id && { supersedes_id }) })
    early.push(...(await topics.publish([withHeaders(one, large)])))
  }
  await topics.publish([repRecorded({ org_id: org, id: 'rep_20' })])
  await untilCaughtUp(projector)
  const before = await countInKafka(topics)
  const ran = await again(...early.map(position), '--publish')
  const partition = `${topics.events}:${early[0]?.partition}`
  const firstOffset = Number(String(jsonLines(ran)[0]?.published).split(':')[2])
  expect(jsonLines(ran), ran.said).toEqual(
    early.map((one, index) =>
      expect.objectContaining({
        ...{ position: position(one), outcome: 'applied' },
        published: `${partition}:${firstOffset + index}`,
      }),
    ),
  )
  expect([ran.code, await countInKafka(topics)]).toEqual([0, before + 3])
  expect(jsonLines(await again(...early.map(position), '--publish'))).toMatchObject(
    early.map(() => ({ outcome: 'already_there' })),
  )
  expect(await countInKafka(topics)).toBe(before + 3)
})
