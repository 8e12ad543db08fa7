/** The texts of people that a generation stores, in each layout. */
import { describe, expect, test } from 'vitest'
import type { Kind } from '../../../schemas/stored/documents.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import type { CommandContext } from '../../../tools/context.ts'
import { findTexts } from '../../../tools/subjects/find-subjects.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

const payment = { id: 'payroll_1', destination: { label: 'Bank' } }
const stored: readonly (readonly [kind: Kind, id: string, body: object])[] = [
  ['reps', 'rep_1', { id: 'rep_1', name: 'Ada', email: 'ada@example.org' }],
  ['periods', 'period_1', { id: 'period_1', name: 'January' }],
  ['payouts', 'payout_1', { id: 'payout_1' }],
  ['payroll_files', 'payroll_1', payment],
]

describe.each([
  ['by kind', undefined],
  ['routed', 2],
] as const)('in a generation with the layout %s', (_, layout) => {
  const fill = (...orgs: readonly string[]) => {
    const engine = new MemoryElasticsearch()
    const { indices, addressOf, storedWith } = layoutOf('p', {
      generation: 'g1',
      topic: 't',
      ...(layout && { layout }),
    })
    for (const [place, org_id] of orgs.entries()) {
      for (const [kind, id, body] of stored) {
        const { _index, _id, routing } = addressOf(kind, `${org_id}:${id}`)
        const source = { org_id, seq: place, rep_id: 'rep_1', body_bytes: 9, body }
        engine.put(_index, _id, place, JSON.parse(`{${storedWith(kind)}${JSON.stringify(source).slice(1)}`), routing)
      }
    }
    const context = { send: engine.send, prefix: 'p', sleep: async () => undefined } as unknown as CommandContext
    return { label: 'g1', name: 'g1', indices, context }
  }

  test('the texts of reps and payroll records are found, and no other document is read as one', async () => {
    const found = await Array.fromAsync(findTexts(fill('org_1', 'org_2'), undefined, undefined))
    expect(found.map(({ kind, id, subject }) => [kind, id, subject?.org])).toEqual([
      ['reps', 'rep_1', 'org_1'],
      ['reps', 'rep_1', 'org_2'],
      ['payroll_files', 'payroll_1', 'org_1'],
      ['payroll_files', 'payroll_1', 'org_2'],
    ])
  })

  test('of one organization, only its texts are found', async () => {
    const found = await Array.fromAsync(findTexts(fill('org_1', 'org_2'), 'org_2', undefined))
    expect(found.map(({ kind, subject }) => [kind, subject?.org])).toEqual([
      ['reps', 'org_2'],
      ['payroll_files', 'org_2'],
    ])
  })

  test('while it is dropped, the texts in the indices that are left are found', async () => {
    const { indices, ...generation } = fill('org_1')
    const left = indices.filter(index => index !== 'p-g1-reps')
    const found = await Array.fromAsync(findTexts({ ...generation, indices: left }, 'org_1', undefined))
    expect(found.map(({ kind }) => kind)).toEqual(layout === 2 ? ['reps', 'payroll_files'] : ['payroll_files'])
  })
})
