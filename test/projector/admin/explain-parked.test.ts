/** The detail in the receipt of a parked record. */
import { expect, test } from 'vitest'
import { Unanswered } from '../../../core/runtime/keep-trying.ts'
import { createParkedExplainer, type ParkedLocation } from '../../../projector/admin/explain-parked.ts'
import { EXPLAINED_BYTES_MAX, EXPLANATIONS_AT_ONCE_MAX, RECEIPTS_POLL_TIMEOUT_MS } from '../../../projector/limits.ts'
import { storedNameOf } from '../../../schemas/stored/live-names.ts'
import { sending } from '../../support/answering.ts'
import { dataOf, payoutCalculated, periodRecorded, repRecorded } from '../../support/events.ts'
import { Clock } from '../clock.ts'
import { everythingRuns, Held } from '../held.ts'

const at: ParkedLocation = {
  stream: 'events',
  topic: 't',
  partition: 2,
  partitions: 6,
  offset: 7,
  code: 'data_invalid',
}
const OF_CODE = 'data: expected the fields that the JSON Schema of its type has, got others'
const never = new AbortController().signal
const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** A parked document with this data, as the projector stores it. */
const parkedDocument = (type: string, data: object, body_bytes = 1_000) => ({
  code: 'data_invalid',
  topic: 't',
  partition: 2,
  offset: 7,
  at: 0,
  body_bytes,
  body: {
    key: base64('org_1'),
    headers: Object.entries({ ce_specversion: '1.0', ce_id: '1', ce_type: type, ce_source: '/t' }).map(
      ([name, value]) => [name, base64(value)],
    ),
    value: base64(JSON.stringify(data)),
  },
})

const setUp = (document: object | undefined) => {
  const clock = new Clock()
  const gate = new Held<string, void>()
  const asked: string[] = []
  let held = false
  const send = sending(async ({ body }, signal) => {
    const [doc] = (body as { docs: { _index: string; _id: string; _source?: string[] }[] }).docs
    asked.push([doc?._index, doc?._id, ...(doc?._source ?? [])].join('/'))
    if (held) await gate.call(doc?._id ?? '')
    if (signal?.aborted) throw new Unanswered('elasticsearch', 0)
    const _source =
      doc?._id === 'live' ? { body: { generation: storedNameOf({ generation: 'g2', layout: 3 }) } } : document
    return { status: 200, body: { docs: [{ _id: doc?._id, found: _source !== undefined, _version: 1, _source }] } }
  })
  const stop = new AbortController()
  const explain = createParkedExplainer(send, 'c', { sleep: clock.sleep, stopping: stop.signal })
  return { clock, gate, asked, explain, stop, hold: () => (held = true) }
}

const rep = dataOf(repRecorded({ org_id: 'org_1' })) as object
const period = dataOf(periodRecorded({ org_id: 'org_1' })) as object
const payout = dataOf(payoutCalculated({ org_id: 'org_1' })) as object

test.each([
  ['commission.rep.recorded.v1', { ...rep, name: 7 }, '/name must be string, got a number'],
  [
    'commission.period.recorded.v1',
    { ...period, ends_at: '2020-01-01T00:00:00Z' },
    '/ends_at: expected an instant after /starts_at, got an earlier one',
  ],
  [
    'commission.payout.calculated.v1',
    { ...payout, currency: 'euro' },
    '/currency must match pattern "^[A-Z]{3}$", got a text of 4 characters',
  ],
  // Parked by other rules than those of this version.
  ['commission.rep.recorded.v1', rep, OF_CODE],
  ['commission.rep.recorded.v2', { ...rep, name: 7 }, OF_CODE],
])('the field and the rule are those of the stored record: %s %#', async (type, data, detail) => {
  const { explain, asked } = setUp(parkedDocument(type, data))
  expect(await explain(at, never)).toBe(detail)
  expect(asked).toEqual(['c-control/live', 'c-g2-parked/t:2:7/body_bytes', 'c-g2-parked/t:2:7'])
})

test('a large record is not read: its receipt has the sentence of its code', async () => {
  const { explain, asked } = setUp(
    parkedDocument('commission.rep.recorded.v1', { ...rep, name: 7 }, EXPLAINED_BYTES_MAX + 1),
  )
  expect(await explain(at, never)).toBe(OF_CODE)
  expect(asked).toHaveLength(2)
})

test('a few records are explained at once; a late or stopped one gives the sentence of its code and no error', async () => {
  const { clock, gate, explain, stop, hold } = setUp(parkedDocument('commission.rep.recorded.v1', { ...rep, name: 7 }))
  hold()
  const all = Array.from({ length: EXPLANATIONS_AT_ONCE_MAX + 1 }, () => explain(at, never))
  await everythingRuns()
  expect(gate.calls).toHaveLength(EXPLANATIONS_AT_ONCE_MAX)
  await clock.move(RECEIPTS_POLL_TIMEOUT_MS)
  while (gate.calls.length > 0) await gate.at(0).letGo()
  expect(await Promise.all(all)).toEqual(all.map(() => OF_CODE))
  expect(gate.count).toBe(EXPLANATIONS_AT_ONCE_MAX)
  stop.abort()
  expect(await explain(at, never)).toBe(OF_CODE)
})

test('a record that is no longer parked, after a swap, has the sentence of its code', async () => {
  expect(await setUp(undefined).explain(at, never)).toBe(OF_CODE)
})

test('a record that was too large to be kept has the sentence of its code', async () => {
  const { body, ...document } = parkedDocument('commission.rep.recorded.v1', rep)
  const left_out = { bytes: 9_000_000, sha256: 'x' }
  const { explain } = setUp({ ...document, code: 'record_undecodable', body: { ...body, value: null, left_out } })
  expect(await explain({ ...at, code: 'record_undecodable' }, never)).toBe(
    'expected a CloudEvents event as strict JSON in UTF-8, got something else',
  )
})
