/**
 * The least that a calculation system publishes: a key, a rep, a period, a payout, and the payout that replaces it.
 *
 *   KAFKA_BROKERS=127.0.0.1:9092 npx node demo/run/publish-one.ts [--events-only]
 *
 * `--events-only` publishes no key, as a user who may only publish events. `commission keys` makes one of org_Example.
 * It prints where to read them: at `API` and `ADMIN` as the demo exports them, else at the ports of the settings.
 * Run it twice: the second time every record is a duplicate, and nothing changes.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import kafkajs from 'kafkajs'
import { kafkaConfig } from '../../core/log/index.ts'
import { apiSettings, kafkaSettings, projectorSettings, readSettings } from '../../core/runtime/index.ts'
import type { ApiKeyCreatedData, PayoutCalculatedData, PeriodData, RepData } from '../../schemas/events.ts'
import { createPublisher, toMessage } from '../data/publish.ts'

const org_id = 'org_Example'
const time = '2026-02-02T08:00:00Z'

const rep: RepData = {
  org_id,
  id: 'rep_Ines',
  name: 'Inês Duarte',
  email: null,
  status: 'active',
  started_on: '2025-04-01',
  departed_on: null,
}
const period: PeriodData = {
  org_id,
  id: 'period_January',
  kind: 'month',
  name: 'January 2026',
  timezone: 'Europe/Lisbon',
  starts_at: '2026-01-01T00:00:00Z',
  ends_at: '2026-02-01T00:00:00Z',
}
/** A payout of 7.5 % of a deal. Amounts are text: the API returns the same characters. */
const payoutOf = (id: string, supersedes_id: string | null, amount: string, commission: string) => {
  const deal_id = 'deal_17'
  const inputs = { amount, rate: '0.075' }
  const data: PayoutCalculatedData = {
    org_id,
    id,
    rep_id: rep.id,
    period_id: period.id,
    supersedes_id,
    currency: 'EUR',
    net_amount: commission,
    earned_amount: commission,
    line_items: [{ id: 'line_1', category: 'earned', description: 'Deal 17', amount: commission, deal_id }],
    calculation_trace: [
      {
        step: 1,
        name: 'Rate',
        strategy: 'flat',
        strategy_version: '3.1.0',
        inputs,
        output_amount: commission,
        deal_id,
      },
    ],
    calculated_at: time,
  }
  return data
}
const payout = payoutOf('payout_First', null, '8250.00', '618.75')
// The deal grew later. That needs a new payout that names the one it replaces, not another amount under the same id.
const replacement = payoutOf('payout_Second', payout.id, '8260.00', '619.50')

// Every reader of this file knows this key. Make your own at random, show it once, and publish its SHA-256.
const keyText = 'example_key_for_reading_only'
const key: ApiKeyCreatedData = {
  org_id,
  id: 'key_Example',
  name: 'Example',
  secret_sha256: createHash('sha256').update(keyText).digest('hex'),
  last4: keyText.slice(-4),
  permissions: ['read'],
  created_at: time,
}

const eventsOnly = process.argv.includes('--events-only')

const { API_HOST, API_PORT } = apiSettings
const { PROJECTOR_ADMIN_HOST, PROJECTOR_ADMIN_PORT } = projectorSettings
const settings = readSettings(
  { ...kafkaSettings, API_HOST, API_PORT, PROJECTOR_ADMIN_HOST, PROJECTOR_ADMIN_PORT },
  process.env,
  readFileSync,
)
const api = process.env.API ?? `http://${settings.API_HOST}:${settings.API_PORT}/api/v1`
const admin = process.env.ADMIN ?? `http://${settings.PROJECTOR_ADMIN_HOST}:${settings.PROJECTOR_ADMIN_PORT}`
const publisher = createPublisher(new kafkajs.Kafka(kafkaConfig(settings, 'publish-one', readFileSync, Date.now)))
await publisher.connect()
try {
  const keys = [toMessage({ id: 'example-key', type: 'commission.api_key.created.v1', time, data: key })]
  if (!eventsOnly) await publisher.publish(settings.KAFKA_API_KEYS_TOPIC, keys)
  // The rep and the period come before the payouts that name them.
  const events = [
    toMessage({ id: 'example-1', type: 'commission.rep.recorded.v1', time, data: rep }),
    toMessage({ id: 'example-2', type: 'commission.period.recorded.v1', time, data: period }),
    toMessage({ id: 'example-3', type: 'commission.payout.calculated.v1', time, data: payout }),
    toMessage({ id: 'example-4', type: 'commission.payout.calculated.v1', time, data: replacement }),
  ]
  const [stored] = await publisher.publish(settings.KAFKA_EVENTS_TOPIC, events)
  if (stored?.baseOffset === undefined) throw new Error('Kafka did not say where it stored the records')
  // All events of one organization are in one batch and in one partition.
  const { topicName, partition } = stored
  const last = Number(stored.baseOffset) + events.length - 1
  process.stdout.write(`published ${events.length + (eventsOnly ? 0 : 1)} records. The last one is at ${topicName}, partition ${partition}, offset ${last}.
Ask for its receipt, and read the payouts:
  curl -s '${admin}/receipts/${topicName}/${partition}/${last}?wait=10'
  curl -s -H "Authorization: Bearer ${eventsOnly ? '$KEY' : keyText}" '${api}/payouts'
`)
} finally {
  await publisher.disconnect()
}
