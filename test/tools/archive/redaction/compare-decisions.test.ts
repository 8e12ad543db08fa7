import { describe, expect, test } from 'vitest'
import { compareDecisions } from '../../../../tools/archive/redaction/compare-decisions.ts'
import {
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../../../support/events.ts'
import { entriesOf } from './memory-log.ts'

const org = 'org_a'
const named = (name: string): Outgoing => repRecorded({ org_id: org, name })
const paid = (label: string, id = 'payroll_1'): Outgoing =>
  payrollRecorded({ org_id: org, id, destination: { type: 'other', label } })
const period = periodRecorded({ org_id: org })

/** Compares two logs record by record. Equal records are one object, as in a redaction. */
const compare = (before: readonly Outgoing[], after: readonly Outgoing[], stream: 'events' | 'api-keys' = 'events') => {
  const { next } = compareDecisions({ stream, topic: 'topic', partition: 0, partitions: 1 }, org)
  const changed = entriesOf(after)
  for (const [index, entry] of entriesOf(before).entries()) {
    next(entry, before[index] === after[index] ? entry : (changed[index] ?? entry))
  }
}
const keep = named('Kept')

test('other texts with the same pattern are decided alike', () => {
  const log = (a: string, b: string) => [
    period,
    named(a),
    named(b),
    named(a),
    paid(a),
    paid(a),
    paid(b),
    paid(b, 'payroll_2'),
  ]
  expect(() => compare(log('A', 'B'), log('x', 'y'))).not.toThrow()
})

describe('the first record that would be decided differently is named', () => {
  const inOther = { ...repRecorded({ org_id: 'org_b', name: 'A' }) }
  test.each([
    [
      'a version becomes a duplicate',
      [named('A'), named('B')],
      [named('x'), named('x')],
      /offset 1 .*: applied became duplicate/,
    ],
    [
      'a duplicate becomes a version',
      [named('A'), named('A')],
      [named('x'), named('y')],
      /offset 1 .*: duplicate became applied/,
    ],
    [
      'a reused id becomes a duplicate',
      [keep, period, paid('A'), paid('B')],
      [keep, period, paid('x'), paid('x')],
      /offset 3 .*: id_reused became duplicate/,
    ],
    [
      'a record that stays becomes a duplicate of one that was changed',
      [named('A'), keep],
      [named('Kept'), keep],
      /offset 1 .*: applied became duplicate/,
    ],
    [
      'a payment of another person takes the id',
      [keep, period, paid('A'), { ...paid('A') }],
      [keep, period, paid('x'), paid('y')],
      /offset 3 .*: duplicate became id_reused/,
    ],
    [
      'an event becomes invalid',
      [named('A')],
      [named('x'.repeat(1001))],
      /offset 0 .*: commission.rep.recorded.v1 became data_invalid/,
    ],
    [
      'an event becomes one of another rep',
      [named('A')],
      [repRecorded({ org_id: org, id: 'rep_2' })],
      /offset 0 .*: its documents became others/,
    ],
    [
      'an event of another organization',
      [inOther],
      [repRecorded({ org_id: 'org_b', name: 'x' })],
      /offset 0 .* no text of this person became another event/,
    ],
    [
      'a parked record loses its organization',
      [{ ...named('A'), headers: {} }],
      [{ ...named('A'), headers: {}, key: 'x', value: '{}' }],
      /offset 0 .*: its organization/,
    ],
  ])('%s', (_, before, after, refusal) => {
    expect(() => compare(before, after)).toThrow(refusal)
    expect(() => compare(before, after)).toThrow(/partition 0 of topic .*Nothing is changed$/)
  })
})

test('a payout is decided on what was before it, whoever the person is', () => {
  const log = [period, named('A'), payoutCalculated({ org_id: org }), payoutCalculated({ org_id: org })]
  expect(() => compare(log, [period, named('x'), ...log.slice(2)])).not.toThrow()
})
