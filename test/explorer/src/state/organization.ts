/** An API of an organization with some changes, for the explorer's readers. It counts its requests. */
import { type Change, type Client, RefusedError } from '../../../../client/src/index.ts'

/** A payout, and the payout that it replaced; or a change of a rep, by its id. */
export type GivenPayout = { readonly id: string; readonly replaces: string | null }

const payout = (id: string, supersedes_id: string | null = null) => ({
  ...{ id, net_amount: `${id.length}.5`, currency: 'EUR', supersedes_id },
})
export const changeOf = ({ id, replaces }: GivenPayout, at: number): Change =>
  ({
    id,
    kind: id.startsWith('rep_') ? 'reps' : 'payouts',
    sequence: at + 1,
    supersedes_id: replaces,
    record: payout(id, replaces),
  }) as unknown as Change

type Options = {
  /** Changes that fit into a page, however many are asked for: pages of large records are shorter. */
  readonly room?: number
  /** Whether the key may read totals. */
  readonly hasTotals?: boolean
}

export const organizationOf = (given: readonly GivenPayout[], { room = 200, hasTotals = true }: Options = {}) => {
  const changes = given.map(changeOf)
  const sent = { requests: 0, changes: 0 }
  const refusal = () => new RefusedError(new Response(null, { status: 403 }), { code: 'forbidden', message: 'no' })
  async function* pages(after: number, limit: number) {
    for (let begin = after; ; ) {
      sent.requests++
      const data = changes.slice(begin, begin + Math.min(limit, room))
      sent.changes += data.length
      begin += data.length
      const hasMore = begin < changes.length
      yield { data, hasMore, nextCursor: '', projectionTime: '' }
      if (!hasMore) return
    }
  }
  const client = {
    changes: ({ after = 0, limit = 200 }: { after?: number; limit?: number }) => ({
      pages: () => pages(after, limit),
      async *[Symbol.asyncIterator]() {
        for await (const { data } of pages(after, limit)) yield* data
      },
    }),
    payouts: async function* ({ ids }: { ids: readonly string[] }) {
      sent.requests++
      yield* ids.map(id => payout(id))
    },
    totals: async () => {
      sent.requests++
      if (!hasTotals) throw refusal()
      return { last_sequence: changes.length }
    },
    /** A moment of these tests is the number of changes that were there. */
    asOf: (moment: string) => ({ totals: async () => ({ last_sequence: Number(moment) }) }),
  } as unknown as Client
  return { client, sent }
}
