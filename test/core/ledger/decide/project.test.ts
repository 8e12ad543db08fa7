import { describe, expect, test } from 'vitest'
import { Cache } from '../../../../core/ledger/decide/cache.ts'
import { project } from '../../../../core/ledger/decide/project.ts'
import { PARKED_BYTES_MAX } from '../../../../core/ledger/limits.ts'
import { State } from '../../../../core/ledger/rules/state.ts'
import { encodeHeaders } from '../../../../core/log/kafka/encoded-headers.ts'
import { Documents, decideOneByOne, projectBatch, TOPIC, tell } from '../../../projector/given.ts'
import { assess, binaryHeaders, eventRecord, record } from '../../../projector/records.ts'
import { payout, period, rep } from '../../../projector/story.ts'
import { rep as repData } from '../../../schemas/examples.ts'

const type = 'commission.rep.recorded.v1'
const source = { stream: 'events', partition: 0, partitions: 1 } as const

describe('a parked record', () => {
  test('is kept whole: with its original key, headers and value, its code and its place', async () => {
    const raw = record({
      offset: 7,
      timestamp: 1_234,
      key: 'org_2',
      value: JSON.stringify(repData),
      headers: [...binaryHeaders(type), ['trace', null], ['trace', Buffer.from([0xff])]],
    })
    const [parked] = (await decideOneByOne([raw], new Documents()))[0]?.changes ?? []
    expect(parked).toEqual({
      key: `parked/${TOPIC}:0:7`,
      kind: 'parked',
      id: `${TOPIC}:0:7`,
      version: 7,
      draft: {
        code: 'org_mismatch',
        org_id: 'org_1',
        type,
        event_id: 'event-1',
        topic: TOPIC,
        partition: 0,
        offset: 7,
        at: 1_234,
        body: {
          key: Buffer.from('org_2').toString('base64'),
          headers: [
            ...binaryHeaders(type).map(([name, value]) => [name, Buffer.from(String(value)).toString('base64')]),
            ['trace', null],
            ['trace', '/w=='],
          ],
          value: Buffer.from(JSON.stringify(repData)).toString('base64'),
        },
      },
    })
  })

  test('keeps a header name that is not UTF-8 as bytes, beside its text', () => {
    const name = Buffer.from([0x78, 0xff])
    const headers = encodeHeaders([
      ['x', Buffer.from('1')],
      ['x\ufffd', null, name],
    ])
    const draft = fieldsOf({ ...record({ value: null }), headers })
    expect(draft).toMatchObject({
      body: {
        headers: [
          ['x', 'MQ=='],
          ['x\ufffd', null, name.toString('base64')],
        ],
      },
    })
  })

  const fieldsOf = (raw: ReturnType<typeof record>) => {
    const { changes } = project([assess(raw, source)], new State(), { topic: TOPIC, partition: 0 })
    return changes[0]?.draft
  }

  test('that is too large for a document is stored by length and hash; the log keeps its content', () => {
    const raw = (bytes: number) => record({ value: Buffer.alloc(bytes), headers: binaryHeaders(type) })
    const around = Buffer.byteLength(JSON.stringify(fieldsOf(raw(0))?.body))
    const most = Math.floor((PARKED_BYTES_MAX - around) / 4) * 3
    expect(fieldsOf(raw(most))?.body).toMatchObject({ value: Buffer.alloc(most).toString('base64') })
    for (const bytes of [most + 1, PARKED_BYTES_MAX, 2 * PARKED_BYTES_MAX]) {
      expect(fieldsOf(raw(bytes))).toMatchObject({
        code: 'record_undecodable',
        org_id: 'org_1',
        body: {
          key: null,
          headers: [],
          value: null,
          left_out: { bytes: bytes + 312, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
        },
      })
    }
  })

  test('is measured as in its document: a control character in a header name takes six bytes', () => {
    const named = (bytes: number) => record({ value: null, headers: [['\u0001'.repeat(bytes), null]] })
    expect(fieldsOf(named(PARKED_BYTES_MAX / 8))?.body).not.toHaveProperty('left_out')
    expect(fieldsOf(named(PARKED_BYTES_MAX / 4))?.body).toHaveProperty('left_out')
  })

  test('that cannot be decoded shows nothing of its content except a key that is an organization id', () => {
    const common = { topic: TOPIC, partition: 0, offset: 0, at: 0, code: 'record_undecodable', body: expect.anything() }
    expect(fieldsOf(record({ value: null, headers: binaryHeaders(type) }))).toEqual({ ...common, org_id: 'org_1' })
    expect(fieldsOf(record({ value: '{', key: 'Ada Lovelace' }))).toEqual(common)
    expect(fieldsOf(record({ value: null, key: null }))).toEqual({
      ...common,
      body: { key: null, headers: [], value: null },
    })
  })

  test.each([
    ['an invalid organization', { ...repData, org_id: 'Ada Lovelace' }, 'event-1', 'org_1'],
    ['data that is not an object', 'org_3', 'event-1', 'org_1'],
    ['an id that is too long for a field', { ...repData, name: 1 }, 'x'.repeat(257), 'org_1'],
  ])('with %s stores only valid fields', (_, data, id, org) => {
    const headers = binaryHeaders(type).map(([name, value]) => [name, name === 'ce_id' ? id : value] as const)
    const draft = fieldsOf(record({ value: JSON.stringify(data), headers }))
    expect(draft).toMatchObject({ code: 'data_invalid', org_id: org, type })
    expect(draft && 'event_id' in draft).toBe(id.length <= 256)
  })
})

describe('the time of a record', () => {
  test('is its own, whatever times the records around it have', async () => {
    // Microseconds, behind, none, the beginning of 1970, and more than Elasticsearch takes.
    const times = [5_000, 1_700_000_000_000_000, 3_000, -1, 0, 2 ** 60, 9_000]
    const records = times.map((time, offset) => eventRecord(rep({ name: `${offset}` }), offset, time))
    const documents = new Documents()
    await decideOneByOne(records, documents)
    for (const [offset, time] of times.entries()) {
      const at = Math.min(Math.max(0, time), Number.MAX_SAFE_INTEGER)
      expect(documents.get(`reps/org_1:rep_1:${offset}`)).toMatchObject({ at })
    }
  })

  test('is that of a parked record, too', async () => {
    const records = [eventRecord(rep(), 0, 2 ** 50), eventRecord(payout('payout_1'), 1, 70)]
    const [, parked] = await decideOneByOne(records, new Documents())
    expect(parked?.changes[0]?.draft).toMatchObject({ code: 'period_unknown', at: 70 })
  })
})

describe('a batch', () => {
  test('writes each document once, in the state after the last event, with the offset of that event', async () => {
    const records = [rep(), period(), payout('payout_1'), payout('payout_2', 'payout_1'), payout('payout_3')].map(
      (event, at) => eventRecord(event, at * 10),
    )
    const { changes, counts, parkedCodes } = await projectBatch(
      records,
      new Cache({ fromFirstRecord: false }),
      new Documents().read,
    )
    expect(changes.map(({ kind, id, version }) => `${kind}/${id}@${version}`).sort()).toEqual([
      'chains/org_1:rep_1:period_1@30',
      `parked/${TOPIC}:0:40@40`,
      'payouts/org_1:payout_1@30',
      'payouts/org_1:payout_2@30',
      'periods/org_1:period_1:10@10',
      'periods/org_1:period_1@10',
      'reps/org_1:rep_1:0@0',
      'reps/org_1:rep_1@0',
      'statements/org_1:payout_1@20',
      'statements/org_1:payout_2@30',
    ])
    expect(counts).toEqual({ applied: 4, duplicate: 0, parked: 1 })
    expect(parkedCodes).toEqual(['supersedes_mismatch'])
  })

  test('with only duplicates writes nothing', async () => {
    const documents = await tell([rep(), 'applied'], [period(), 'applied'])
    const again = [rep(), period()].map((event, at) => eventRecord(event, 10 + at))
    expect(await projectBatch(again, new Cache({ fromFirstRecord: false }), documents.read)).toMatchObject({
      changes: [],
      counts: { applied: 0, duplicate: 2, parked: 0 },
    })
  })

  test('does not change documents that it read: stored documents change only by writes', async () => {
    const documents = await tell([rep(), 'applied'], [period(), 'applied'], [payout('payout_1'), 'applied'])
    const before = JSON.stringify(documents.all())
    const cache = new Cache({ fromFirstRecord: false })
    await projectBatch([eventRecord(payout('payout_2', 'payout_1'), 9)], cache, documents.read)
    expect(JSON.stringify(documents.all())).toBe(before)
  })
})
