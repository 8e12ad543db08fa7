import { expect, test } from 'vitest'
import type { Request } from '../../../core/store/elasticsearch/client.ts'
import { kinds } from '../../../schemas/stored/documents.ts'
import type { CommandContext } from '../../../tools/context.ts'
import { summarize } from '../../../tools/documents/summarize.ts'
import { sending } from '../../support/answering.ts'

const PARTITIONS = 4
const identity = { generation: 'g1', topic: 't', layout: 3 } as const
const positions = Array.from({ length: PARTITIONS }, () => 100)

type Pit = { readonly index: string; readonly routing: unknown }
type Search = { readonly query: { readonly bool?: { readonly filter: readonly object[] } } }

type Stored = { readonly _id: string; readonly _source: object }

/** Sums up a generation that has only these payouts. Returns the points in time that were opened, and the searches. */
const requestsOf = async (only: string | undefined, payouts: readonly Stored[] = []) => {
  const pits: Pit[] = []
  const searches: Search[] = []
  const answer = ({ method, path, query, body }: Request) => {
    if (path.endsWith('_refresh')) return { _shards: { total: 1, successful: 1, failed: 0 } }
    if (path.endsWith('/_pit') && method === 'POST') {
      pits.push({ index: path.split('/')[1] ?? '', routing: query?.routing })
      return { id: 'pit' }
    }
    if (path !== '/_search') return {}
    searches.push(body as Search)
    const found = JSON.stringify(body).includes('"kind":["payouts"]') ? payouts : []
    const hits = found.map((hit, at) => ({ ...hit, sort: [at] }))
    return { pit_id: 'pit', timed_out: false, _shards: { total: 1, successful: 1, failed: 0 }, hits: { hits } }
  }
  const send = sending(async request => ({ status: 200, body: answer(request) }))
  const context = { prefix: 'p', send, say: () => undefined, now: () => 0, sleep: async () => undefined }
  const { summaries } = await summarize(identity, positions, only, context as unknown as CommandContext)
  return { pits, searches, summaries }
}

test('of one organization only its shard and its documents are read, also of balances and parked records', async () => {
  const { pits, searches } = await requestsOf('org_1')
  // Balances, then each kind.
  expect(pits.length).toBe(kinds.length + 1)
  expect(searches.length).toBe(pits.length)
  for (const [at, { index, routing }] of pits.entries()) {
    const isRouted = !index.endsWith('-periods') && !index.endsWith('-parked')
    expect([index, routing]).toEqual([index, isRouted ? 'org_1' : undefined])
    expect([index, searches[at]?.query.bool?.filter]).toEqual([
      index,
      expect.arrayContaining([{ term: { org_id: 'org_1' } }]),
    ])
  }
})

test('of all organizations every document is read', async () => {
  const { pits, searches } = await requestsOf(undefined)
  expect(pits.map(({ routing }) => routing).filter(routing => routing !== undefined)).toEqual([])
  expect(JSON.stringify(searches)).not.toContain('org_id')
})

test('a damaged amount ends no summary: the sum is that of the others, and the digest differs', async () => {
  const payoutOf = (id: string, seq: number, net_amount: unknown): Stored => ({
    _id: `org_1:${id}`,
    _source: { org_id: 'org_1', seq, superseded_by_id: null, body_bytes: 2, body: { currency: 'EUR', net_amount } },
  })
  const summaryWith = async (amount: unknown) => {
    const stored = [payoutOf('payout_1', 1, '10.50'), payoutOf('payout_2', 2, amount)]
    return (await requestsOf('org_1', stored)).summaries.get('org_1')
  }
  const digests = new Set([(await summaryWith('0.00'))?.digest])
  for (const damaged of ['12,50', '0x10', 'Infinity', '', null, 12.5]) {
    const summary = await summaryWith(damaged)
    expect(summary).toMatchObject({ counts: { payouts: 2 }, owed: { EUR: '10.5' } })
    digests.add(summary?.digest)
  }
  expect(digests.size).toBe(7)
})
