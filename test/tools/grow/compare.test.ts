/** Documents of two topics with the same records are equal without their offsets, and nothing else is left out. */
import { expect, test } from 'vitest'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import type { Kind } from '../../../schemas/stored/documents.ts'
import type { Fields } from '../../../tools/documents/as-of.ts'
import { withoutOffsets } from '../../../tools/grow/compare.ts'

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
