import { describe, expect, test } from 'vitest'
import { Cache } from '../../../../core/ledger/decide/cache.ts'
import { load, type PendingEvent, type ReadDocuments } from '../../../../core/ledger/decide/decide-batch.ts'
import { serialize } from '../../../../core/ledger/decide/project.ts'
import { DOCUMENTS_ASKED } from '../../../../core/ledger/limits.ts'
import { type DocumentKey, documentChangeOf, refOf, State } from '../../../../core/ledger/rules/state.ts'
import { Documents, tell } from '../../../projector/given.ts'
import { assess, type Event, eventRecord } from '../../../projector/records.ts'
import { payment, payout, period, rep, voided } from '../../../projector/story.ts'

describe('loading', () => {
  const placed = (events: readonly Event[], from = 100): PendingEvent[] =>
    events.flatMap((event, at) => {
      const { record, verdict, reads, rules } = assess(eventRecord(event, from + at), {
        stream: 'events',
        partition: 0,
        partitions: 1,
      })
      return rules === undefined ? [] : [{ event: verdict, reads, rules, seq: record.offset }]
    })
  const reading = (documents: Documents) => {
    const asked: DocumentKey[][] = []
    const read: ReadDocuments = keys => {
      asked.push([...keys].sort())
      return documents.read(keys)
    }
    return { asked, read }
  }

  test('reads everything that a batch may need, each document once, in at most two rounds', async () => {
    const documents = await tell(
      [rep(), 'applied'],
      [period(), 'applied'],
      [payout('payout_1'), 'applied'],
      [payment('payroll_1'), 'applied'],
    )
    const { asked, read } = reading(documents)
    const events = [
      rep({ name: 'Ada' }),
      payout('payout_2', 'payout_1'),
      payout('payout_3', 'payout_2'),
      voided('payroll_2', 'payroll_1'),
    ]
    await load(placed(events), new Cache({ fromFirstRecord: false }), read)
    expect(asked).toEqual([
      [
        'chains/org_1:rep_1:period_1',
        'payouts/org_1:payout_1',
        'payouts/org_1:payout_2',
        'payouts/org_1:payout_3',
        'payroll_files/org_1:payroll_1',
        'payroll_files/org_1:payroll_2',
        'periods/org_1:period_1',
        'reps/org_1:rep_1',
      ],
      ['reps/org_1:rep_1:0'],
    ])
  })

  test('reads at most DOCUMENTS_ASKED keys per request', async () => {
    const sizes: number[] = []
    const read: ReadDocuments = async keys => {
      sizes.push(keys.length)
      return new Map(keys.map(key => [key, null]))
    }
    const events = Array.from({ length: DOCUMENTS_ASKED + 1 }, (_, at) => rep({ id: `rep_${at}` }))
    expect((await load(placed(events), new Cache({ fromFirstRecord: false }), read)).count).toBe(events.length)
    expect(sizes).toEqual([DOCUMENTS_ASKED, 1])
  })

  test('keeps the first events that one response covers, at least one, and leaves the others for later', async () => {
    const asked: number[] = []
    const read: ReadDocuments = async keys => {
      asked.push(keys.length)
      return new Map(keys.slice(0, 3).map(key => [key, null]))
    }
    const events = placed([rep({ id: 'rep_1' }), rep({ id: 'rep_2' }), payout('payout_1'), rep({ id: 'rep_3' })])
    // The response holds one of the four documents of the payout.
    const { state, count: complete } = await load(events, new Cache({ fromFirstRecord: false }), read)
    expect(complete).toBe(2)
    expect(state.head(refOf('reps', 'org_1:rep_2'))).toBeNull()
    // Alone, the payout takes two responses: no event is decided with only a part of its documents.
    expect((await load(events.slice(2, 3), new Cache({ fromFirstRecord: false }), read)).count).toBe(1)
    expect(asked).toEqual([6, 4, 1])
  })

  test('the second round of keys can be too large as well', async () => {
    const documents = await tell([rep({ id: 'rep_1' }), 'applied'], [rep({ id: 'rep_2' }), 'applied'])
    const read: ReadDocuments = async keys => {
      const found = await documents.read(keys)
      return keys[0]?.split(':').length === 3 ? new Map([...found].slice(0, 1)) : found
    }
    const events = placed([rep({ id: 'rep_1', name: 'Ada' }), rep({ id: 'rep_2', name: 'Bo' })])
    expect((await load(events, new Cache({ fromFirstRecord: false }), read)).count).toBe(1)
  })

  test('does not read a found document again; a missing one is read again', async () => {
    const documents = await tell([rep(), 'applied'], [period(), 'applied'])
    const cache = new Cache({ fromFirstRecord: false })
    const { asked, read } = reading(documents)
    await load(placed([payout('payout_1')]), cache, read)
    await load(placed([payout('payout_1')]), cache, read)
    expect(asked[1]).toEqual(['chains/org_1:rep_1:period_1', 'payouts/org_1:payout_1'])
  })

  test('reads nothing if the cache has everything, or if there is no event', async () => {
    const cache = new Cache({ fromFirstRecord: false })
    const pending = ['reps/org_1:rep_1', 'reps/org_1:rep_1:0'] as const
    const body = { versions: [{ seq: 0, hash: 'x' }] }
    cache.addDecided(
      pending.map(key => serialize(documentChangeOf(refOf('reps', key.slice(5)), 0, { org_id: 'org_1', body }))),
    )
    const { asked, read } = reading(new Documents())
    await load(placed([rep()]), cache, read)
    await load([], cache, read)
    expect(asked).toEqual([])
  })
})

test('a rule that uses a document that was not loaded is a defect, not a missing document', () => {
  const state = new State()
  const payout = refOf('payouts', 'org_1:payout_1')
  expect(() => state.payout(payout)).toThrow('not loaded')
  state.set(payout.key, null)
  expect(state.payout(payout)).toBeNull()
})
