/** Commands about one organization: `projection verify --org`, `diff --org`, and `explain` of a deal. */
import { beforeAll, expect, test } from 'vitest'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { line, type Outgoing, payoutRecorded, periodRecorded, repRecorded } from '../support/events.ts'
import type { Projector } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom } from '../support/random.ts'
import { fileScope } from '../support/scope.ts'
import { allStored, call, overwrite } from '../support/stored.ts'
import { organizationsIn } from '../support/streams.ts'
import type { Topics } from '../support/topics.ts'

const PARTITIONS = 2
const file = fileScope()
// Two in one partition, so that they may be in one shard, and one in the other partition.
const [org = '', other = '', third = ''] = organizationsIn(createRandom(11), [0, 0, 1], PARTITIONS)
let topics: Topics
let prefix: string
let projector: Projector

const deal = (id: string, category: 'earned' | 'recovered' | 'adjusted', amount: string, deal_id: string | null) =>
  line({ id, category, amount, deal_id, description: `${category} ${id}` })

/** The first payout has two lines of a deal. Its replacement has none, and takes one back in the next period. */
const recordsOf = (org_id: string): Outgoing[] => [
  repRecorded({ org_id }),
  periodRecorded({ org_id }),
  periodRecorded({ org_id, id: 'period_2' }),
  payoutRecorded({
    org_id,
    id: 'payout_1',
    net_amount: '107.50',
    line_items: [
      deal('line_1', 'earned', '100.00', 'deal_1'),
      deal('line_2', 'adjusted', '5.00', 'deal_1'),
      deal('line_3', 'earned', '2.5', 'deal_2'),
    ],
  }),
  payoutRecorded({
    org_id,
    id: 'payout_2',
    supersedes_id: 'payout_1',
    net_amount: '2.5',
    line_items: [deal('line_3', 'earned', '2.5', 'deal_2')],
  }),
  payoutRecorded({
    org_id,
    id: 'payout_3',
    period_id: 'period_2',
    net_amount: '80',
    line_items: [deal('line_1', 'earned', '100', 'deal_1'), deal('line_2', 'recovered', '-20.00', 'deal_1')],
  }),
  // Parked.
  payoutRecorded({ org_id, id: 'payout_9', rep_id: 'rep_unknown' }),
]

const projection = (...args: string[]): Promise<Ran> =>
  runCommand(['projection', ...args], { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
const done = async (...args: string[]): Promise<Ran> => {
  const ran = await projection(...args)
  expect(ran, `${ran.out}${ran.said}`).toMatchObject({ code: 0 })
  return ran
}

beforeAll(async () => {
  const records = [org, other, third].flatMap(recordsOf)
  ;({ topics, prefix, projector } = await startProjection(file, records, { partitions: PARTITIONS }))
  await done('rebuild')
  await done('verify', 'g1', 'g2')
  await projector.stop()
})

/** Changes an amount in the second generation, as a defect would. */
const damage = async (of: string): Promise<void> => {
  const found = (await allStored(`${prefix}-g2-payouts`)).find(({ id }) => id === `${of}:payout_3`)
  if (found === undefined) throw new Error('there is no such payout')
  const { body, ...fields } = found.source as { body: Record<string, unknown> }
  const source = { ...fields, body: { ...body, net_amount: '81' } }
  expect((await overwrite(`${prefix}-g2-payouts`, { ...found, source })).status).toBe(200)
}

test('damage of another organization does not matter to --org; one of its own is named, and forbids a swap', async () => {
  await damage(other)
  const equal = await done('verify', 'g1', 'g2', '--org', org)
  expect(equal.out.toString().split('\n').filter(Boolean)).toEqual([expect.stringMatching(`^${org}: equal; `)])
  expect(equal.said).toContain(`comparing ${org} in g1 and g2 as of 14 records of partition 0`)
  expect(equal.said).toContain('A swap needs a comparison of all organizations')
  expect(await projection('diff', 'g1', 'g2', '--org', org)).toMatchObject({ code: 0 })
  expect(await projection('diff', 'g1', 'g2')).toMatchObject({ code: 3 })

  const [summary, difference] = jsonLines(await projection('verify', 'g1', 'g2', '--org', other, '--json'))
  expect(summary).toMatchObject({ organization: other, equal: false, g1: { counts: { payouts: 3, parked: 1 } } })
  expect(difference).toMatchObject({ organization: other, kind: 'payouts', id: `${other}:payout_3` })
  expect(await projection('verify', 'g1', 'g2', '--org', other)).toMatchObject({
    code: 1,
    said: expect.stringContaining('1 of 1 organizations differ'),
  })
  expect(await projection('swap', 'g2')).toMatchObject({
    code: 1,
    said: expect.stringContaining('g2 was found different from g1'),
  })

  expect(await projection('verify', 'g1', 'g2', '--org', third)).toMatchObject({ code: 0 })
  // It is equal, but that does not undo the difference that was found.
  expect((await projection('swap', 'g2')).said).toContain('g2 was found different from g1')

  await damage(org)
  const named = await projection('verify', 'g1', 'g2', '--org', org)
  expect([named.code, named.out.toString()]).toEqual([
    1,
    expect.stringContaining(`payouts ${org}:payout_3: body.net_amount is "80" in g1, "81" in g2`),
  ])
})

test('an organization that neither generation has is no equal organization', async () => {
  expect(await projection('verify', 'g1', 'g2', '--org', 'org_unknown')).toMatchObject({
    code: 1,
    said: expect.stringContaining('neither g1 nor g2 has anything of org_unknown'),
  })
})

test('a wrong balance of an organization that lost all its records is named', async () => {
  const balance = { org_id: 'org_lost', seq: 0, sequence: 1_000, body_bytes: 11, body: { rows: [] } }
  const stored = await call('PUT', `/${prefix}-g2-periods/_doc/org_lost:1000?refresh=true`, balance)
  expect(stored.status).toBe(201)
  const ran = await projection('verify', 'g1', 'g2', '--org', 'org_lost')
  expect([ran.code, ran.out.toString()]).toEqual([
    1,
    'g2 org_lost: the balance after change 1000 is not the sum of the records\n',
  ])
})

test('a deal is explained by its lines in all payouts, replaced ones too, and by their sums in current ones', async () => {
  const [explained] = jsonLines(await done('explain', 'deal_1', '--org', org, '--json'))
  expect(explained).toMatchObject({
    generation: 'g1',
    organization: org,
    deal: 'deal_1',
    payouts: [
      {
        payout: 'payout_1',
        rep: 'rep_1',
        period: 'period_1',
        replaces: null,
        replaced_by: 'payout_2',
        net_amount: '107.50',
        lines: [
          { id: 'line_1', category: 'earned', amount: '100.00', description: 'earned line_1' },
          { id: 'line_2', category: 'adjusted', amount: '5.00', description: 'adjusted line_2' },
        ],
      },
      {
        payout: 'payout_3',
        period: 'period_2',
        replaced_by: null,
        lines: [{ amount: '100' }, { amount: '-20.00' }],
      },
    ],
    line_totals: [
      { period: 'period_2', currency: 'EUR', category: 'earned', amount: '100', line_count: 1 },
      { period: 'period_2', currency: 'EUR', category: 'recovered', amount: '-20', line_count: 1 },
    ],
  })
  const text = (await done('explain', 'deal_1', '--org', org)).out.toString()
  expect(text).toContain(`deal_1 of ${org}: 2 payouts with a line of it, 1 of them current`)
  expect(text).toContain('payout_1 of rep_1 for period_1: replaced by payout_2, without the deal')
  expect(text).toMatch(/line_2 {2}recovered {2}-20\.00 {2}recovered line_2/)
  expect(text).toContain('in current payouts\n')
  const second = (await done('explain', 'deal_2', '--org', org)).out.toString()
  expect(second).toContain('payout_1 of rep_1 for period_1: replaced by payout_2\n')
})

test('a deal that no payout of the organization has is not explained', async () => {
  expect(await projection('explain', 'deal_9', '--org', org)).toMatchObject({
    code: 1,
    said: `no payout of ${org} in g1 has a line of deal_9\n`,
  })
})
