/** Amounts that any calculation would change keep the same characters from Kafka to HTTP. */
import { beforeAll, expect, test } from 'vitest'
import { type Client, createClient } from '../support/client.ts'
import {
  keyCreated,
  line,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  step,
} from '../support/events.ts'
import { startApi } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { fileScope } from '../support/scope.ts'

const amounts = [
  '1234.5000',
  '0.00000000000000001',
  '9876543210987654321098765432109876543210',
  '-0.10',
  '0',
  '0.00',
  '100',
  '9007199254740993',
  '0.1',
  '-1234567890123456789012345678901234567890.0987654321098765432109876543210987654321',
  `0.${'0'.repeat(39)}1`,
]

const file = fileScope()
const org = newId('org')
let client: Client

const eventsOf = (amount: string, place: number): Outgoing[] => {
  const pair = { org_id: org, rep_id: `rep_${place}`, period_id: 'period_1' }
  const lines = [line({ amount }), line({ id: 'line_2', amount: opposite(amount) }), line({ id: 'line_3', amount })]
  const calculation_trace = [
    step({ output_amount: amount }),
    step({ step: 2, inputs: { amount }, output_amount: amount }),
  ]
  const payout = { ...pair, net_amount: amount, earned_amount: amount, line_items: lines }
  return [
    repRecorded({ org_id: org, id: pair.rep_id }),
    payoutCalculated({ ...payout, id: `payout_${place}a`, calculation_trace }),
    payoutRecorded({ ...payout, id: `payout_${place}b`, supersedes_id: `payout_${place}a` }),
    payrollRecorded({ ...pair, id: `payroll_${place}a`, payout_id: `payout_${place}b`, amount }),
    payrollVoided({ org_id: org, id: `payroll_${place}b`, reverses_id: `payroll_${place}a`, amount: opposite(amount) }),
  ]
}

const opposite = (amount: string): string => {
  if (/^0(\.0+)?$/.test(amount)) return amount
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`
}

beforeAll(async () => {
  const key = newKeyText()
  const records = [
    keyCreated({ org_id: org, text: key }),
    periodRecorded({ org_id: org }),
    ...amounts.flatMap(eventsOf),
  ]
  const { prefix } = await startProjection(file, records, { partitions: 1 })
  client = createClient([await startApi(file, prefix)], key)
})

test.for(amounts.map((amount, place) => [amount, place] as const))(
  '%s has the same characters everywhere',
  async ([amount, place]) => {
    const payout = { net_amount: amount, earned_amount: amount }
    const line_items = [amount, opposite(amount), amount].map((of, at) => line({ id: `line_${at + 1}`, amount: of }))
    for (const id of [`payout_${place}a`, `payout_${place}b`]) {
      expect(await client.read(`/payouts/${id}`)).toMatchObject({ ...payout, line_items })
      expect(await client.read(`/statements/${id}`)).toMatchObject({ ...payout, line_items })
    }
    const { calculation_trace } = await client.read(`/statements/payout_${place}a`)
    expect(calculation_trace).toMatchObject([{ output_amount: amount }, { output_amount: amount, inputs: { amount } }])

    const listed = (await client.all('payouts')).find(({ id }) => id === `payout_${place}b`)
    expect(listed).toMatchObject({ ...payout, line_items })
    const files = (await client.all('payroll_files')).filter(({ rep_id }) => rep_id === `rep_${place}`)
    expect(files.map(({ amount }) => amount)).toEqual([amount, opposite(amount)])
    expect(await client.read(`/payroll_files/payroll_${place}a`)).toMatchObject({ amount })
    expect(await client.read(`/payroll_files/payroll_${place}b`)).toMatchObject({ amount: opposite(amount) })
  },
)

test('every amount in the bytes of an answer is a string', async () => {
  for (const path of ['/payouts?limit=200', '/payroll_files?limit=200', '/statements/payout_2a']) {
    const { text } = await client.askInTime(path)
    const found = [...text.matchAll(/"(?:net_|earned_|output_)?amount":(.)/g)].map(([, first]) => first)
    expect(found.length).toBeGreaterThan(5)
    expect(new Set(found)).toEqual(new Set(['"']))
  }
  expect((await client.askInTime('/payouts/payout_2a')).text).toContain(`"net_amount":"${amounts[2]}"`)
})
