/** Models that generators make from `contract/events` publish every type of event, and no character changes. */
import { describe, expect, test } from 'vitest'
import { schemaOfType } from '../../schemas/events.ts'
import { keysOf } from '../../schemas/objects.ts'
import { CONTRACT } from '../contract/contract.ts'
import {
  keyCreated,
  keyRevoked,
  line,
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  step,
  withData,
} from '../support/events.ts'
import { untilCaughtUp } from '../support/processes.ts'
import { javaProgram, mavenProgram, npmProgram, pythonProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { runCopy } from '../support/run-copy.ts'
import { everythingProjected } from '../support/stored.ts'

const languages = [
  { folder: 'python', generator: 'datamodel-code-generator', programs: [pythonProgram] },
  { folder: 'typescript', generator: 'json-schema-to-typescript', programs: [npmProgram] },
  { folder: 'java', generator: 'jsonschema2pojo', programs: [javaProgram, mavenProgram] },
] as const

/** More than a double holds. */
const LARGE = '9007199254740993.10'

/** The events that each program publishes. */
const eventsOf = (org_id: string): Outgoing[] => [
  repRecorded({ org_id, name: 'Zoë 😀' }),
  periodRecorded({ org_id }),
  payoutCalculated({
    org_id,
    net_amount: '1034.6000',
    earned_amount: '1234.6000',
    line_items: [
      line({ description: 'Renewal', amount: '1234.6000', deal_id: 'deal_4' }),
      line({ id: 'line_2', category: 'recovered', description: 'Advance', amount: '-200.00' }),
    ],
    calculation_trace: [
      step({
        ...{ name: 'Rate', strategy: 'tiered_rate', strategy_version: '2026-01', deal_id: 'deal_4' },
        ...{ inputs: { booked: '15432.50', rate: '0.08' }, output_amount: '1234.60000000000000000001' },
      }),
      step({
        ...{ step: 2, name: 'Advance', strategy: 'recover', strategy_version: '3' },
        ...{ inputs: {}, output_amount: '-200.00' },
      }),
    ],
    calculated_at: '2026-02-02T07:15:04.250Z',
  }),
  payoutRecorded({
    ...{ org_id, id: 'payout_2', supersedes_id: 'payout_1', net_amount: LARGE, earned_amount: '0' },
    line_items: [line({ category: 'adjusted', description: '', amount: LARGE })],
    recorded_at: '2026-02-03T08:00:00Z',
  }),
  payrollRecorded({
    ...{ org_id, payout_id: 'payout_2', amount: LARGE, destination: { type: 'bank_account', label: 'Account 7' } },
  }),
  payrollVoided({ org_id, amount: `-${LARGE}` }),
  withData(keyCreated({ org_id, name: 'Payroll', permissions: ['payouts:read', 'changes:read'] }), {
    secret_sha256: '0f'.repeat(32),
    last4: 'a_-Z',
  }),
  keyRevoked({ org_id }),
]

for (const { folder, generator, programs } of languages) {
  describe.skipIf(programs.includes(undefined))(`with models of ${generator}`, () => {
    test('each type of event is published, and an event with the same characters is a duplicate', async t => {
      const { topics, prefix, projector } = await startProjection(t, [])
      const org = `org_${folder}`
      const environment = {
        ...{ CONTRACT, ORG: org, KAFKA_BROKERS: topics.brokers, TOPIC: topics.events, KEYS_TOPIC: topics.apiKeys },
      }
      expect(await runCopy(`models/${folder}`, environment)).toEqual([String(keysOf(schemaOfType).length)])
      await untilCaughtUp(projector)
      const stored = await everythingProjected(prefix)
      expect(stored).toMatchObject({ parked: [], 'api-keys-parked': [] })
      expect(stored.payouts).toHaveLength(2)
      const text = JSON.stringify(stored).replaceAll('\\', '')
      for (const amount of ['1034.6000', '1234.60000000000000000001', LARGE, `-${LARGE}`])
        expect(text).toContain(`amount":"${amount}"`)
      // An event that differs in one character would be parked as `id_reused`, or make another version of a rep.
      await topics.publish(eventsOf(org))
      await untilCaughtUp(projector)
      expect(await everythingProjected(prefix)).toEqual(stored)
    })
  })
}
