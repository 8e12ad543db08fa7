/**
 * The example of docs/evolution.md: a `.v2` of an event type comes, while an older projector runs. The next release is
 * the present one with the code of that page. The tests depend on their order.
 */
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import {
  dataOf,
  envelope,
  keyCreated,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import { type Api, type Projector, startApi, startProjector } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope } from '../support/scope.ts'
import type { Topics } from '../support/topics.ts'

const file = fileScope()
const NEXT = { NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/next-release.ts')}` }
const org_id = newId('org')
const text = newKeyText()
let topics: Topics
let prefix: string
let old: Projector
let next: Projector
let api: Api

const REPS = ['rep_1', 'rep_2', 'rep_3']
const payoutOf = (rep_id: string): Outgoing => payoutCalculated({ org_id, id: `payout_${rep_id.slice(4)}`, rep_id })

beforeAll(async () => {
  ;({
    topics,
    prefix,
    projector: old,
  } = await startProjection(file, [
    keyCreated({ org_id, text }),
    ...REPS.map(id => repRecorded({ org_id, id })),
    periodRecorded({ org_id }),
    ...REPS.map(payoutOf),
    payrollRecorded({ org_id, id: 'payroll_first', rep_id: 'rep_1' }),
  ]))
  api = await startApi(file, prefix)
})

/** The second version of a payment, as in the example. */
const paymentV2 = (id: string, rep_id: string): Outgoing => {
  const { amount, currency, ...data } = dataOf(payrollRecorded({ org_id, id, rep_id })) as Record<string, unknown>
  const value = JSON.stringify({ ...data, money: { amount, currency } })
  return { stream: 'events', key: org_id, headers: envelope('commission.payroll.recorded.v2'), value }
}
const ofNext = (...args: string[]): Promise<Ran> =>
  runCommand(args, { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, ...NEXT })

const get = async (path: string) => {
  const answer = await fetchInTime(api, path, text)
  expect(answer.status).toBe(200)
  return answer.json() as Promise<Record<string, never>>
}
/** The sum that left through payroll, and the ids and amounts of its records. */
const paid = async () => {
  const { data: totals } = (await get('/totals')) as unknown as { data: { totals: object[] } }
  const { data } = (await get('/payroll_files')) as unknown as { data: Record<string, unknown>[] }
  return { totals: totals.totals, records: data.map(({ id, amount, currency }) => `${id} ${amount} ${currency}`) }
}
const FIRST = 'payroll_first 100.00 EUR'

const codeOf = async (projector: Projector, records: readonly Outgoing[]) => {
  const published = await topics.publish(records)
  const receipts = published.map(({ partition, offset }) =>
    eventually(async () => {
      const { status, text: body } = await projector.ask(`/receipts/${topics.events}/${partition}/${offset}?wait=60`)
      const { state, code } = JSON.parse(body) as { state: string; code?: string }
      expect([status, state === 'not_yet'], body).toEqual([200, false])
      return code ?? state
    }),
  )
  return Promise.all(receipts)
}

test('an older projector parks a second version as type_unknown, and the records that refer to it', async () => {
  const early = [
    paymentV2('payroll_1', 'rep_2'),
    payrollVoided({ org_id, id: 'payroll_2', reverses_id: 'payroll_1' }),
    paymentV2('payroll_3', 'rep_2'),
  ]
  expect(await codeOf(old, early)).toEqual(['type_unknown', 'payroll_reversal_invalid', 'type_unknown'])
  expect((await paid()).records).toEqual([FIRST])
})

test('the next release makes a generation that is equal: parked records stay parked', async () => {
  const rebuilt = await ofNext('projection', 'rebuild')
  expect(rebuilt, rebuilt.said).toMatchObject({ code: 0 })
  next = await startProjector(file, { topics, prefix, settings: NEXT })
  for (const args of [
    ['verify', 'g1', 'g2'],
    ['swap', 'g2'],
  ]) {
    const ran = await ofNext('projection', ...args)
    expect(ran, ran.said).toMatchObject({ code: 0 })
  }
  expect(await old.stop()).toEqual({ code: 0, signal: null })
  expect((await paid()).records).toEqual([FIRST])
})

test('the next release applies a second version; the same record in the first version is no duplicate', async () => {
  const late = [
    paymentV2('payroll_4', 'rep_3'),
    paymentV2('payroll_4', 'rep_3'),
    payrollRecorded({ org_id, id: 'payroll_4', rep_id: 'rep_3' }),
  ]
  expect(await codeOf(next, late)).toEqual(['published', 'published', 'id_reused'])
  expect((await paid()).records).toEqual([FIRST, 'payroll_4 100.00 EUR'])
})

test('the parked records are published again and applied in order, and the totals are right', async () => {
  const again = (...args: string[]) => ofNext('parked', 'publish-again', '--json', '--org', org_id, ...args)
  const [first, second, third, reused] = jsonLines(await again('--publish')).map(({ outcome }) => outcome)
  expect([first, second, third, reused]).toEqual(['applied', 'applied', 'applied', 'refused'])
  const { records, totals } = await paid()
  expect(records).toEqual([
    FIRST,
    'payroll_4 100.00 EUR',
    'payroll_1 100.00 EUR',
    'payroll_2 -100.00 EUR',
    'payroll_3 100.00 EUR',
  ])
  // Of three reps: 300.00 owed, and 100.00 paid to each.
  expect(totals).toEqual([
    {
      period_id: 'period_1',
      currency: 'EUR',
      owed_amount: '300',
      owed_count: 3,
      paid_amount: '300',
      paid_count: 5,
      open_amount: '0',
    },
  ])
  expect(jsonLines(await again('--publish')).map(({ outcome }) => outcome)).toEqual([
    'already_there',
    'already_there',
    'already_there',
    'refused',
  ])
})

test('an answer does not show the version of a record', async () => {
  const [first, second] = await Promise.all(['payroll_first', 'payroll_4'].map(id => get(`/payroll_files/${id}`)))
  const shape = (answer: unknown) => Object.keys((answer as { data: object }).data)
  expect(shape(second)).toEqual(shape(first))
})

test('a rebuild applies both versions again', async () => {
  for (const args of [['rebuild'], ['verify', 'g2', 'g3']]) {
    const ran = await ofNext('projection', ...args)
    expect(ran, ran.said + ran.out).toMatchObject({ code: 0 })
  }
})

test('a projector of the older release does not start on the new generation alone', async () => {
  const dropped = await ofNext('projection', 'drop', 'g1')
  expect(dropped, dropped.said).toMatchObject({ code: 0 })
  const late = await startProjector(file, { topics, prefix, groupId: `${prefix}-late` })
  expect(await late.exited).toEqual({ code: 1, signal: null })
  expect(late.log()).toContain('rules_changed')
})
