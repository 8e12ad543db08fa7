/** `commission parked`, as an operator runs it, on records that a projector parked. The tests depend on their order. */
import { beforeAll, expect, test } from 'vitest'
import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import { commandSettings, jsonLines, publishAgainAfter, type Ran, readHere, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  keyRevoked,
  newId,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
  withHeaders,
} from '../support/events.ts'
import { countInKafka, readFromKafka } from '../support/in-kafka.ts'
import { partitionOf } from '../support/model-record.ts'
import { type Projector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { fileScope } from '../support/scope.ts'
import { allStored, indexNamed, store, storedById } from '../support/stored.ts'
import type { Published, Topics } from '../support/topics.ts'

const file = fileScope()
const org = newId('org')
const other = newId('org')
let topics: Topics
let prefix: string
let projector: Projector
/** The parked records, by their names in this test. */
let parked: Record<keyof ReturnType<typeof badOnes>, Published>

const payout = (data: Partial<Parameters<typeof payoutCalculated>[0]>): Outgoing =>
  payoutCalculated({ org_id: org, ...data })

const badOnes = (partitions: number) => {
  const elsewhere = (partitionOf(org, partitions) + 1) % partitions
  return {
    // A publisher must not be able to clear the screen of the person who looks at the record.
    undecodable: { ...repRecorded({ org_id: org }), value: '\u001b[2J\u0007CANARY \u202e' },
    notText: { ...repRecorded({ org_id: org }), value: Buffer.from([0xff, 0xfe, 0x00]) },
    noValue: { ...repRecorded({ org_id: org }), value: null },
    first: withHeaders(payout({ id: 'payout_a', rep_id: 'rep_9' }), { traceparent: 'CANARY', 'x-y': ['1', '2'] }),
    second: payout({ id: 'payout_b', rep_id: 'rep_9', supersedes_id: 'payout_a' }),
    movedOn: payout({ id: 'payout_c' }),
    wrongSum: payout({ id: 'payout_d', line_items: [] }),
    misplaced: { ...repRecorded({ org_id: org, id: 'rep_3', name: 'CANARY' }), partition: elsewhere },
    older: { ...repRecorded({ org_id: org, id: 'rep_2', name: 'CANARY of old' }), partition: elsewhere },
    olderPeriod: { ...periodRecorded({ org_id: org, id: 'period_2', name: 'CANARY of old' }), partition: elsewhere },
    revocation: keyRevoked({ org_id: org, id: 'key_9' }),
    ofOther: payrollRecorded({ org_id: other }),
  } satisfies Record<string, Outgoing>
}

beforeAll(async () => {
  ;({ topics, prefix, projector } = await startProjection(
    file,
    [repRecorded({ org_id: org }), periodRecorded({ org_id: org }), payout({ id: 'payout_1' })],
    { settings: { LOG_LEVEL: 'trace' } },
  ))
  const bad = badOnes(topics.partitions)
  const published = await topics.publish(Object.values(bad))
  parked = Object.fromEntries(Object.keys(bad).map((name, place) => [name, published[place]])) as typeof parked
  // In another partition, and surely later.
  await untilCaughtUp(projector)
  await topics.publish([
    repRecorded({ org_id: org, id: 'rep_2', name: 'new' }),
    periodRecorded({ org_id: org, id: 'period_2', name: 'new' }),
  ])
  await untilCaughtUp(projector)
})

const position = ({ stream, partition, offset }: Pick<Published, 'stream' | 'partition' | 'offset'>): string =>
  `${topics.name(stream)}:${partition}:${offset}`

const run = (...args: string[]): Promise<Ran> => runCommand(['parked', ...args], commandSettings(topics, prefix))
const again = (...args: string[]): Promise<Ran> => run('publish-again', '--json', ...args)
/** Runs a command that only reads, in this process. */
const read = (...args: string[]): Promise<Ran> => readHere(['parked', ...args], prefix)

test('list and count filter by code, organization, type, topic and partition, in order and up to a limit', async () => {
  const list = async (...args: string[]) => jsonLines(await read('list', '--json', ...args)).map(line => line.position)
  const [all, newest, two, unknown, both, ofOther, keys, inPartition, payouts, counts, none] = await Promise.all([
    list(),
    list('--newest'),
    run('list', '--limit', '2'),
    list('--code', 'rep_unknown', '--org', org),
    list('--code', 'lines_do_not_sum', 'key_unknown'),
    list('--org', other),
    list('--topic', topics.apiKeys),
    list('--topic', topics.events, '--partition', String(parked.misplaced.partition)),
    read('list', '--type', 'commission.payout.calculated.v1'),
    read('count', '--json'),
    read('count', '--org', newId('org')),
  ])
  expect([...all].sort()).toEqual(Object.values(parked).map(position).sort())
  const inOrder = all.filter(at => String(at).startsWith(`${topics.events}:${parked.first.partition}:`))
  expect(inOrder).toEqual(inOrder.toSorted((a, b) => Number(String(a).split(':')[2]) - Number(String(b).split(':')[2])))
  expect(newest).toEqual(all.toReversed())
  expect(two.out.toString().trimEnd().split('\n')).toHaveLength(3)
  expect(two.said).toContain('2 of 12')
  expect(unknown).toEqual([position(parked.first), position(parked.second)])
  expect([...both].sort()).toEqual([position(parked.wrongSum), position(parked.revocation)].sort())
  expect(ofOther).toEqual([position(parked.ofOther)])
  expect(keys).toEqual([position(parked.revocation)])
  expect(inPartition).toEqual(expect.arrayContaining([position(parked.misplaced), position(parked.older)]))
  expect(payouts.out.toString()).toMatch(/^POSITION +AT +CODE +ORGANIZATION +TYPE +EVENT +DETAIL\n/)
  expect(payouts.said).toContain('4 of 4')
  expect(jsonLines(counts)[0]).toEqual({
    record_undecodable: 3,
    partition_mismatch: 3,
    lines_do_not_sum: 1,
    rep_unknown: 3,
    supersedes_mismatch: 1,
    key_unknown: 1,
  })
  expect(none.out.toString()).toBe('0  in all\n')
})

test('show gives a whole record: as text without control characters, as JSON, and byte for byte', async () => {
  const [text, hex, none, json, raw, unknown] = await Promise.all([
    read('show', position(parked.undecodable)),
    read('show', position(parked.notText)),
    run('show', '--raw', position(parked.noValue)),
    read('show', '--json', position(parked.first)),
    run('show', '--raw', position(parked.notText)),
    run('show', position({ ...parked.first, offset: 0 })),
  ])
  expect(text.out.toString()).toContain('record_undecodable')
  expect(text.out.toString()).toContain('\\u001b[2J\\u0007CANARY \\u202e')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
  expect(text.out.toString()).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f\u202e]/)
  expect(hex.out.toString()).toContain('not UTF-8: fffe00')
  expect([none.code, none.out.length]).toEqual([1, 0])
  const { key, headers, value, code } = jsonLines(json)[0] as Record<string, string> & { headers: string[][] }
  const bytes = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64')
  expect(code).toBe('rep_unknown')
  expect(bytes(key)).toEqual(parked.first.key)
  expect(bytes(value)).toEqual(parked.first.value)
  expect(headers.map(([name, header]) => [name, bytes(header)])).toEqual(parked.first.headers)
  expect(raw.out).toEqual(parked.notText.value)
  expect(unknown).toMatchObject({ code: 1, said: `${position({ ...parked.first, offset: 0 })} is not parked\n` })
})

test('a dry run forecasts the outcome of each record, in order, and publishes nothing', async () => {
  const before = await countInKafka(topics)
  const [all, alone] = await Promise.all([again('--all'), again(position(parked.ofOther), '--force')])
  const outcomes = new Map(jsonLines(all).map(({ position, outcome, reason }) => [position, { outcome, reason }]))
  const parkedAgain = (reason: string) => ({ outcome: 'refused', reason })
  expect(Object.fromEntries(Object.entries(parked).map(([name, at]) => [name, outcomes.get(position(at))]))).toEqual({
    undecodable: parkedAgain('record_undecodable'),
    notText: parkedAgain('record_undecodable'),
    noValue: parkedAgain('record_undecodable'),
    first: parkedAgain('rep_unknown'),
    second: parkedAgain('rep_unknown'),
    movedOn: parkedAgain('supersedes_mismatch'),
    wrongSum: parkedAgain('lines_do_not_sum'),
    misplaced: { outcome: 'would_be_applied', reason: null },
    older: { outcome: 'refused', reason: 'older_than_current' },
    olderPeriod: { outcome: 'refused', reason: 'older_than_current' },
    revocation: parkedAgain('key_unknown'),
    ofOther: parkedAgain('rep_unknown'),
  })
  expect(all.code).toBe(3)
  expect(all.said).toContain('dry run')
  // --force cannot override the rules.
  expect(jsonLines(alone)).toMatchObject([{ outcome: 'refused', reason: 'rep_unknown' }])
  expect(await countInKafka(topics)).toBe(before)
})

test('once the rep is recorded, its parked records are published again unchanged, in order, and applied', async () => {
  await topics.publish([repRecorded({ org_id: org, id: 'rep_9' })])
  const ran = await again('--code', 'rep_unknown', '--org', org, '--publish')
  const lines = jsonLines(ran)
  expect(lines).toMatchObject([
    { position: position(parked.first), outcome: 'applied', reason: null },
    { position: position(parked.second), outcome: 'applied', reason: null },
  ])
  expect(ran.code).toBe(0)
  const offsets = lines.map(({ published }) => Number(String(published).split(':')[2]))
  expect(offsets[1]).toBe((offsets[0] ?? 0) + 1)
  const payouts = await Promise.all(
    ['payout_a', 'payout_b'].map(id => storedById(indexNamed(prefix, 'payouts'), `${org}:${id}`)),
  )
  expect(payouts).toMatchObject([{ seq: offsets[0], superseded_by_id: 'payout_b' }, { seq: offsets[1] }])
  const { key, value, headers } = await readFromKafka(topics, parked.first.partition, offsets[0] ?? 0)
  expect({ key, value }).toEqual({ key: parked.first.key, value: parked.first.value })
  const sent = new Map(parked.first.headers)
  expect(headers).toEqual({ ...Object.fromEntries(sent), 'x-y': [Buffer.from('1'), Buffer.from('2')] })
})

test('publish-again is idempotent: it skips records that are already applied', async () => {
  const before = await countInKafka(topics)
  const ran = await again('--code', 'rep_unknown', '--org', org, '--publish')
  expect(jsonLines(ran)).toMatchObject([{ outcome: 'already_there' }, { outcome: 'already_there' }])
  expect(ran.code).toBe(0)
  expect(await countInKafka(topics)).toBe(before)
})

test('a record from a wrong partition goes to the right one; a revocation after the creation of its key is applied', async () => {
  await topics.publish([keyCreated({ org_id: org, id: 'key_9' })])
  const ran = await again(position(parked.revocation), position(parked.misplaced), '--publish')
  expect(jsonLines(ran)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ position: position(parked.misplaced), outcome: 'applied' }),
      expect.objectContaining({ position: position(parked.revocation), outcome: 'applied' }),
    ]),
  )
  expect(await storedById(indexNamed(prefix, 'reps'), `${org}:rep_3`)).toBeDefined()
  const head = await storedById(indexNamed(prefix, 'api-keys'), `${org}:key_9`)
  expect(head).toMatchObject({ body: { revoked_seq: expect.any(Number) } })
})

test.each([
  ['older', 'rep', 'reps', 'rep_2'],
  ['olderPeriod', 'period', 'periods', 'period_2'],
] as const)('%s: an older %s replaces a newer one only with --force', async (which, _, kind, id) => {
  const nameNow = async (): Promise<unknown> => {
    const versions = await allStored(indexNamed(prefix, kind))
    const current = versions.find(
      ({ id: stored, source }) => stored.startsWith(`${org}:${id}:`) && source.until_seq === UNTIL_FOREVER,
    )
    return (current?.source.body as { name?: unknown } | undefined)?.name
  }
  const before = await countInKafka(topics)
  const refused = await again(position(parked[which]), '--publish')
  expect(jsonLines(refused)).toMatchObject([{ outcome: 'refused', reason: 'older_than_current', published: null }])
  expect([refused.code, await countInKafka(topics)]).toEqual([3, before])
  expect(await nameNow()).toBe('new')

  const forced = await again(position(parked[which]), '--publish', '--force')
  expect(jsonLines(forced)).toMatchObject([{ outcome: 'applied', reason: null }])
  expect(await nameNow()).toBe('CANARY of old')
  expect(jsonLines(await again(position(parked[which])))).toMatchObject([{ outcome: 'already_there' }])
})

test('a record that cannot be sent unchanged is refused: a header without a value or not in UTF-8, or bytes not kept', async () => {
  const index = indexNamed(prefix, 'parked')
  const { body, ...fields } = (await storedById(index, position(parked.ofOther))) as { body: { headers: unknown[] } }
  const spoiled = [
    { ...body, headers: [...body.headers, ['x-y', null]] },
    { ...body, headers: [...body.headers, ['x\ufffd', 'MQ==', 'eP8=']] },
    { key: null, headers: [], value: null, left_out: { bytes: 1, sha256: 'f' } },
  ].map((body, place) => ({ ...fields, offset: 1_000_000 + place, body }))
  const positions = spoiled.map(({ offset }) => position({ ...parked.ofOther, offset }))
  for (const [place, id] of positions.entries()) await store(index, id, spoiled[place] ?? {})
  await topics.publish([repRecorded({ org_id: other }), periodRecorded({ org_id: other })])
  const reasons = jsonLines(await again(...positions, '--publish')).map(({ reason }) => reason)
  expect(reasons).toEqual(['header_without_value', 'header_name_not_utf8', 'bytes_not_kept'])
  const shown = await read('show', positions[1] ?? '')
  expect(shown.out.toString()).toContain('header not UTF-8: 78ff')
})

test('if another publisher is faster, the outcome of each record is shown: parked again, or a duplicate', async () => {
  const [beaten, repeated] = [payout({ id: 'payout_e', rep_id: 'rep_8' }), payout({ id: 'payout_f', rep_id: 'rep_7' })]
  const late = await topics.publish([beaten, repeated])
  await topics.publish([7, 8].map(n => repRecorded({ org_id: org, id: `rep_${n}` })))
  await untilCaughtUp(projector)
  const results = await publishAgainAfter(
    { topics, prefix },
    [payout({ id: 'payout_g', rep_id: 'rep_8' }), repeated],
    late,
  )
  expect(results.map(({ outcome, reason }) => ({ outcome, reason }))).toEqual([
    { outcome: 'parked_again', reason: 'supersedes_mismatch' },
    { outcome: 'duplicate', reason: null },
  ])
})

test('without a projector that keeps up, nothing is forecast and nothing is sent', async () => {
  await projector.stop()
  await topics.publish([repRecorded({ org_id: org, id: 'rep_5' })])
  const before = await countInKafka(topics)
  const ran = await again('--all', '--publish', '--wait', '1')
  expect(ran).toMatchObject({ code: 1, said: expect.stringContaining('1 records behind') })
  expect([ran.out.length, await countInKafka(topics)]).toEqual([0, before])
})

test('with another topic, or where nothing is projected, it does nothing', async () => {
  const settings = commandSettings(topics, prefix)
  const [elsewhere, nothing, unknownTopic] = await Promise.all([
    runCommand(['parked', 'publish-again', '--all', '--publish'], {
      ...settings,
      KAFKA_EVENTS_TOPIC: topics.apiKeys,
      KAFKA_API_KEYS_TOPIC: topics.events,
    }),
    runCommand(['parked', 'list'], { ...settings, ELASTICSEARCH_INDEX_PREFIX: `${prefix}x` }),
    run('list', '--topic', 'CANARY'),
  ])
  expect(elsewhere).toMatchObject({
    code: 1,
    said: expect.stringContaining('not the one this projection was made from'),
  })
  expect(nothing).toMatchObject({ code: 1, said: expect.stringContaining(`${prefix}x-control`) })
  expect(unknownTopic.code).toBe(1)
})

test('messages contain nothing of a record; only the requested output does', async () => {
  const ran = await Promise.all([run('list'), run('show', position(parked.first)), again('--all', '--wait', '1')])
  for (const said of [projector.log(), ...ran.map(({ said }) => said)]) {
    expect(said).not.toMatch(/CANARY/)
    expect(said).not.toContain(org)
  }
})
