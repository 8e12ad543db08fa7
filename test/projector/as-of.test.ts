/**
 * A decision depends only on the records before it. It does not depend on batch boundaries, on the writes that have
 * reached Elasticsearch, or on documents that later records have already changed.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cache } from '../../core/ledger/decide/cache.ts'
import type { RawRecord } from '../../core/ledger/event/decode.ts'
import type { DocumentChange, DocumentKey } from '../../core/ledger/rules/state.ts'
import type { CommissionEvent } from '../../schemas/events.ts'
import * as examples from '../schemas/examples.ts'
import { type Decided, Documents, decideOneByOne, projectBatch } from './given.ts'
import { Model } from './model.ts'
import { type Event, eventRecord } from './records.ts'
import { keyCreated, keyRevoked } from './story.ts'

/** One step of a history. The numbers are small, so that ids collide. A `plausible` event is valid at that point. */
const choice = fc.record({
  kind: fc.constantFrom(
    ...(['rep', 'period', 'payout', 'payout', 'payout', 'payment', 'payment', 'void', 'void', 'again'] as const),
  ),
  org: fc.constantFrom('org_1', 'org_1', 'org_2'),
  rep: fc.constantFrom('rep_1', 'rep_1', 'rep_2'),
  period: fc.constantFrom('period_1', 'period_1', 'period_2'),
  number: fc.nat(30),
  other: fc.nat(30),
  plausible: fc.boolean(),
  gap: fc.nat(2),
  timestamp: fc.nat(1_000),
})
type Choice = typeof choice extends fc.Arbitrary<infer Value> ? Value : never

const known = (org_id: string): CommissionEvent[] => [
  { type: 'commission.rep.recorded.v1', data: { ...examples.rep, org_id } },
  { type: 'commission.period.recorded.v1', data: { ...examples.period, org_id } },
]

const eventOf = (choice: Choice, model: Model, before: readonly CommissionEvent[]): CommissionEvent => {
  const { org: org_id, rep: rep_id, period: period_id, number, other, plausible } = choice
  const payout = other % 5 === 0 ? null : `payout_${other}`
  const pair = { org_id, rep_id, period_id }
  switch (choice.kind) {
    case 'rep':
      return {
        type: 'commission.rep.recorded.v1',
        data: { ...examples.rep, org_id, id: rep_id, name: `${number % 3}` },
      }
    case 'period': {
      const kind = other % 5 === 0 ? 'year' : 'month'
      const data = { ...examples.period, org_id, id: period_id, name: `${number % 3}`, kind } as const
      return { type: 'commission.period.recorded.v1', data }
    }
    case 'payout': {
      const supersedes_id = plausible ? model.currentPayout(org_id, rep_id, period_id) : payout
      const id = `payout_${number}`
      return number % 2 === 0
        ? { type: 'commission.payout.recorded.v1', data: { ...examples.recorded, ...pair, id, supersedes_id } }
        : { type: 'commission.payout.calculated.v1', data: { ...examples.calculated, ...pair, id, supersedes_id } }
    }
    case 'payment': {
      const payout_id = plausible ? model.currentPayout(org_id, rep_id, period_id) : payout
      const data = { ...examples.payment, ...pair, id: `payroll_${number}`, payout_id }
      return { type: 'commission.payroll.recorded.v1', data }
    }
    case 'void': {
      const paid = model.unvoidedPayment(org_id, rep_id, period_id)
      const reverses_id = plausible && paid ? paid.id : `payroll_${other}`
      const amount = plausible || other % 3 > 0 ? '-100.00' : '100.00'
      const data = { ...examples.voided, org_id, id: `payroll_${number}`, reverses_id, amount }
      return { type: 'commission.payroll.voided.v1', data }
    }
    case 'again':
      return before[other % before.length] ?? known(org_id)[0] ?? expect.unreachable()
  }
}

type History = { readonly records: readonly RawRecord[]; readonly expected: readonly string[] }

/** Events with increasing offsets and gaps, as in a real log, with the decisions of the model. */
const historyOf = (choices: readonly Choice[]): History => {
  const model = new Model()
  const events = [...known('org_1'), ...known('org_2')]
  const expected = events.map(event => model.decide(event))
  const records = events.map((event, offset) => eventRecord(event, offset))
  for (const choice of choices) {
    const event = eventOf(choice, model, events)
    events.push(event)
    expected.push(model.decide(event))
    records.push(eventRecord(event, (records.at(-1)?.offset ?? 0) + 1 + choice.gap, choice.timestamp))
  }
  return { records, expected }
}

const history = fc.array(choice, { minLength: 1, maxLength: 40, size: 'max' }).map(historyOf)

/** Random numbers that decide where batches end, how far writes lag, and when the cache is lost. */
const chances = fc.infiniteStream(fc.nat(99))
type Chances = Iterator<number>
const chance = (chances: Chances, below: number): number => Number(chances.next().value) % below

/**
 * Projects the records like the flow, from documents that may be older or newer than the batch. Batches have any size,
 * up to three of them are written later in any order, and the cache may lose acknowledged documents.
 */
const projectAnyhow = async (
  records: readonly RawRecord[],
  documents: Documents,
  chances: Chances,
  stream: 'events' | 'api-keys' = 'events',
): Promise<{ parkedCodes: string[]; counts: Record<string, number> }> => {
  let cache = new Cache({ fromFirstRecord: false })
  const parkedCodes: string[] = []
  const counts: Record<string, number> = {}
  const unwritten: Awaited<ReturnType<typeof projectBatch>>[] = []
  const writeOne = (): void => {
    const [written] = unwritten.splice(chance(chances, unwritten.length), 1)
    documents.write(written?.changes ?? [])
    written?.acknowledged()
  }
  for (let from = 0; from < records.length; ) {
    const size = 1 + chance(chances, 6)
    const projection = await projectBatch(records.slice(from, from + size), cache, documents.read, { stream })
    from += size
    parkedCodes.push(...projection.parkedCodes)
    for (const [outcome, count] of Object.entries(projection.counts)) counts[outcome] = (counts[outcome] ?? 0) + count
    unwritten.push(projection)
    while (unwritten.length > chance(chances, 4)) writeOne()
    if (unwritten.length === 0 && chance(chances, 3) === 0) cache = new Cache({ fromFirstRecord: false })
  }
  while (unwritten.length > 0) writeOne()
  return { parkedCodes, counts }
}

const summary = (decided: readonly Decided[]) => {
  const of = (outcome: string) => decided.filter(one => one.outcome === outcome).length
  const parkedCodes = decided.map(({ outcome }) => outcome).filter(code => code !== 'applied' && code !== 'duplicate')
  return { parkedCodes, counts: { applied: of('applied'), duplicate: of('duplicate'), parked: parkedCodes.length } }
}

/** Every document in any of its states since an offset, independent of the others, as after a crash or a late owner. */
const anyDocumentsSince = (from: number, decided: readonly Decided[], chances: Chances): Documents => {
  const states = new Map<DocumentKey, DocumentChange[]>()
  for (const change of decided.flatMap(({ changes }) => changes)) {
    const { key } = change
    states.set(key, [...(states.get(key) ?? []), change])
  }
  const documents = new Documents()
  for (const changes of states.values()) {
    const before = changes.filter(({ version }) => version < from).length
    const state = changes[before + chance(chances, changes.length - before + 1) - 1]
    if (state !== undefined) documents.write([state])
  }
  return documents
}

describe('for any history of commission events', () => {
  const seen = new Map<string, number>()

  test('each event is decided according to the contract', async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ records, expected }) => {
        const decided = await decideOneByOne(records, new Documents())
        expect(decided.map(({ outcome }) => outcome)).toEqual(expected)
        for (const outcome of expected) seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
      }),
      { numRuns: 150 },
    )
    // The histories must reach every rule, or the comparison proves nothing about it.
    const rules = ['applied', 'duplicate', 'id_reused', 'period_changed', 'rep_unknown', 'period_unknown']
    rules.push('supersedes_mismatch', 'payout_mismatch', 'payroll_already_recorded', 'payroll_reversal_invalid')
    expect([...seen.keys()].sort()).toEqual(rules.sort())
  })

  test('batch boundaries and delayed writes change no decision and no document', async () => {
    await fc.assert(
      fc.asyncProperty(history, chances, async ({ records }, chances) => {
        const documents = new Documents()
        const decided = await decideOneByOne(records, documents)
        const anyhow = new Documents()
        expect(await projectAnyhow(records, anyhow, chances)).toEqual(summary(decided))
        expect(anyhow.all()).toEqual(documents.all())
      }),
      { numRuns: 100 },
    )
  })

  test('a redelivery from any offset over the final documents gives the same decision for each record', async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.nat(), async ({ records }, choice) => {
        const documents = new Documents()
        const decided = await decideOneByOne(records, documents)
        const start = choice % records.length
        const again = documents.copy()
        const redelivered = await decideOneByOne(records.slice(start), again)
        expect(redelivered).toEqual(decided.slice(start))
        expect(again.all()).toEqual(documents.all())
      }),
      { numRuns: 100 },
    )
  })

  test('a redelivery over documents in any mix of later states has the same result', async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.nat(), chances, async ({ records }, choice, chances) => {
        const documents = new Documents()
        const decided = await decideOneByOne(records, documents)
        const start = choice % records.length
        const crashed = anyDocumentsSince(records[start]?.offset ?? 0, decided, chances)
        const rest = records.slice(start)
        expect(await projectAnyhow(rest, crashed, chances)).toEqual(summary(decided.slice(start)))
        expect(crashed.all()).toEqual(documents.all())
      }),
      { numRuns: 150 },
    )
  })
})

describe('for any history of API keys', () => {
  const keys = fc
    .array(
      fc.record({
        org_id: fc.constantFrom('org_1', 'org_2'),
        id: fc.constantFrom('key_1', 'key_2', 'key_3'),
        secret: fc.constantFrom('a', 'b', 'c', 'd'),
        revoked: fc.boolean(),
      }),
      { minLength: 1, maxLength: 25, size: 'max' },
    )
    .map(choices =>
      choices
        .map(
          ({ org_id, id, secret, revoked }): Event =>
            revoked ? keyRevoked(id, { org_id }) : keyCreated(id, secret, { org_id }),
        )
        .map((event, offset) => eventRecord(event, offset * 2)),
    )

  test('redelivered over documents in any mix of later states, it has the same result', async () => {
    await fc.assert(
      fc.asyncProperty(keys, fc.nat(), chances, async (records, choice, chances) => {
        const documents = new Documents()
        const decided = await decideOneByOne(records, documents, { stream: 'api-keys' })
        const start = choice % records.length
        const rest = records.slice(start)
        const redelivered = await decideOneByOne(rest, documents.copy(), { stream: 'api-keys' })
        expect(redelivered.map(({ outcome, changes }) => ({ outcome, changes }))).toEqual(
          decided.slice(start).map(({ outcome, changes }) => ({ outcome, changes })),
        )
        const crashed = anyDocumentsSince(records[start]?.offset ?? 0, decided, chances)
        expect(await projectAnyhow(rest, crashed, chances, 'api-keys')).toEqual(summary(decided.slice(start)))
        expect(crashed.all()).toEqual(documents.all())
      }),
      { numRuns: 150 },
    )
  })
})
