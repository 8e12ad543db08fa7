/** Documents of two topics with the same records are equal without their offsets, and nothing else is left out. */
import { expect, test } from 'vitest'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import type { Kind } from '../../../schemas/stored/documents.ts'
import type { Fields } from '../../../tools/documents/as-of.ts'
import { compareGenerations, withoutOffsets } from '../../../tools/grow/compare.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

/** A document of each form, with these offsets. */
const documentsWith = (offset: number, code = 'record_undecodable'): [kind: Kind, id: string, source: Fields][] => [
  [
    'reps',
    `org_1:rep_1:${offset}`,
    {
      org_id: 'org_1',
      first_seq: offset,
      seq: offset,
      ordinal: 1,
      until_seq: UNTIL_FOREVER,
      at: 5,
      body: { name: 'A' },
    },
  ],
  [
    'reps',
    'org_1:rep_1',
    { org_id: 'org_1', body_bytes: offset, body: { versions: [{ seq: offset, hash: 'h' }] as never } },
  ],
  [
    'payouts',
    'org_1:payout_1',
    { org_id: 'org_1', seq: offset, until_seq: offset + 9, superseded_by_id: 'payout_2', at: 5, body: { a: '1' } },
  ],
  [
    'chains',
    'org_1:rep_1:period_1',
    { org_id: 'org_1', body_bytes: offset, body: { payouts: [{ seq: offset, id: 'payout_1' }], payroll: [] } as never },
  ],
  [
    'parked',
    `t${offset}:1:${offset}`,
    { code, topic: `t${offset}`, partition: offset % 3, offset, at: 5, body: { key: null } },
  ],
]
const compared = (documents: ReturnType<typeof documentsWith>) =>
  documents.map(([kind, id, source]) => withoutOffsets(kind, { id, source }))

test('documents of the same records in two topics are equal', () => {
  expect(compared(documentsWith(7))).toEqual(compared(documentsWith(1_234)))
  expect(compared(documentsWith(7, 'batch_undecodable'))).toEqual(compared(documentsWith(7)))
})

test('a document is different if anything but an offset is: its time, its content, its organization, its versions, its end', () => {
  const before = documentsWith(7)
  const changes: Record<number, Fields[]> = {
    0: [{ at: 6 }, { body: { name: 'B' } }, { org_id: 'org_2' }, { ordinal: 2 }, { first_seq: 3 }, { until_seq: 9 }],
    1: [{ body: { versions: [{ seq: 7, hash: 'i' }] as never } }],
    2: [{ superseded_by_id: null }, { until_seq: UNTIL_FOREVER }],
    3: [{ body: { payouts: [], payroll: [] } as never }],
    4: [{ code: 'id_reused' }, { at: 6 }, { body: { key: 'a' } }],
  }
  for (const [at, all] of Object.entries(changes)) {
    for (const change of all) {
      const after = documentsWith(8)
      const [kind = 'reps', id = '', source = {}] = after[Number(at)] ?? []
      after[Number(at)] = [kind, id, { ...source, ...change }]
      expect(compared(after), JSON.stringify(change)).not.toEqual(compared(before))
    }
  }
})

/** Two generations that have one payout of 1.50, and a balance with this amount. The payout has offset 0, and 5. */
const compareWith = async (owed: string, org = 'org_1') => {
  const engine = new MemoryElasticsearch()
  const side = (generation: string, topic: string, seq: number, owed_amount: string) => {
    const payout = { kind: 'payouts', org_id: 'org_1', seq, until_seq: UNTIL_FOREVER, superseded_by_id: null }
    const content = { period_id: 'period_1', at: 5, body_bytes: 9, body: { currency: 'EUR', net_amount: '1.50' } }
    engine.put(`p-${generation}-payouts`, 'org_1:payout_1', seq, { ...payout, ...content })
    const row = { period_id: 'period_1', currency: 'EUR', owed_count: 1, paid_amount: '0', paid_count: 0, owed_amount }
    const balance = { org_id: org, seq, sequence: 1, body_bytes: 9, body: { rows: [row] } }
    engine.put(`p-${generation}-periods`, `${org}:1`, seq, balance)
    const identity = { generation, topic, cluster_id: 'c', partitions: 1, rules_version: 1, layout: 3 } as const
    return { identity, positions: [seq + 1] }
  }
  const steps = { send: engine.send, prefix: 'p', say: () => undefined, out: () => undefined }
  const clock = { sleep: async () => undefined, now: () => 0, elapsed: () => 0 }
  return compareGenerations(side('g1', 'old', 5, '1.5'), side('g2', 'new', 0, owed), { ...steps, ...clock })
}

test('a balance that is not the sum of the records makes an organization differ, also one without records', async () => {
  expect(await compareWith('1.5')).toEqual({ organizations: 1, differing: [] })
  expect(await compareWith('1.51')).toEqual({ organizations: 1, differing: ['org_1'] })
  expect(await compareWith('1.5', 'org_2')).toEqual({ organizations: 2, differing: ['org_2'] })
})
