/**
 * In: the indices of a generation, and the positions of its partitions. Out: the documents that an event at or after
 *   the position of their partition has made or touched.
 * Promises: each document is looked at, because a bulk request that was cut off can have written any part of a batch: a
 *   chain without its payout, for example, that no search for records finds. Only versions and fields that
 *   Elasticsearch has in columns are read.
 * Can go wrong: Elasticsearch is away (retries); a shard does not answer (the command ends).
 */

import type { DocumentVersion, SearchAnswer } from '../../core/store/index.ts'
import { KEYS_PARTITION, partitionOf } from '../../schemas/partition.ts'
import { keptIdIn } from '../../schemas/stored/documents.ts'
import type { Address, GenerationLayout, IndexKind } from '../../schemas/stored/layout.ts'
import { type RetryContext, withRetries } from '../documents/read-retries.ts'
import { cannotOpen, KEEP_ALIVE } from '../documents/scan.ts'
import { refreshAll, wholeAnswer } from '../documents/shards.ts'
import { CommandError } from '../failures.ts'
import { LEFTOVERS_PAGE } from '../limits.ts'

/** The layout of a generation, or of the API keys. */
export type Searched = { readonly layout: GenerationLayout; readonly isOfKeys: boolean }

export type Leftover = DocumentVersion & {
  readonly address: Address
  readonly kind: IndexKind
  readonly partition: number
  readonly version: number
}

/** One page of documents: how many they are, those that were found, and whether an earlier form is kept among them. */
export type LeftoversPage = { readonly seen: number; readonly found: readonly Leftover[]; readonly isKept: boolean }

/** @param positions by partition */
export async function* findLeftovers(
  { layout, isOfKeys }: Searched,
  positions: readonly number[],
  reading: RetryContext,
): AsyncGenerator<LeftoversPage> {
  const { send } = reading
  const indices = layout.indices.join()
  await refreshAll(indices, reading)
  const opened = await withRetries(reading, () =>
    send<{ readonly id: string }>({ method: 'POST', path: `/${indices}/_pit`, query: { keep_alive: KEEP_ALIVE } }),
  )
  if (opened.status === 400) throw new CommandError(cannotOpen(indices, opened.status))
  if (opened.status !== 200) throw new CommandError(dropped(indices, opened.status))
  let pit = opened.body.id
  try {
    for (let after: readonly unknown[] | undefined; ; ) {
      const answer = await withRetries(reading, () =>
        send<Page>({
          method: 'POST',
          path: '/_search',
          body: {
            size: LEFTOVERS_PAGE,
            track_total_hits: false,
            pit: { id: pit, keep_alive: KEEP_ALIVE },
            query: { match_all: {} },
            sort: [{ _shard_doc: 'asc' }],
            version: true,
            seq_no_primary_term: true,
            _source: false,
            // Of parked records, the partition counts.
            docvalue_fields: ['org_id', 'partition'],
            ...(after && { search_after: after }),
          },
        }),
      )
      const body = wholeAnswer(indices, answer)
      pit = body.pit_id
      const { hits } = body.hits
      const found = hits.flatMap((hit): Leftover[] => {
        const { _index, _id, _routing: routing, _version: version, _seq_no, _primary_term } = hit
        const kind = layout.kindOf(_index, _id)
        if (kind === undefined) throw new CommandError(`${_index} is not an index of the generation, but an alias`)
        if (keptIdIn(_id) !== undefined) return []
        const partition = isOfKeys ? KEYS_PARTITION : partitionIn(hit, positions.length)
        if (version < (positions[partition] ?? 0)) return []
        return [{ address: { _index, _id, routing }, kind, partition, version, _seq_no, _primary_term }]
      })
      yield { seen: hits.length, found, isKept: hits.some(({ _id }) => keptIdIn(_id) !== undefined) }
      if (hits.length < LEFTOVERS_PAGE) return
      after = hits.at(-1)?.sort
    }
  } finally {
    await send({ method: 'DELETE', path: '/_pit', body: { id: pit } }).catch(() => undefined)
  }
}

type Hit = DocumentVersion & {
  readonly _index: string
  readonly _id: string
  readonly _routing?: string
  readonly _version: number
  readonly fields?: { readonly org_id?: readonly string[]; readonly partition?: readonly number[] }
  readonly sort: readonly unknown[]
}
type Page = SearchAnswer<Hit> & { readonly pit_id: string }

/** A parked record has its partition, since it may be in another one than that of its organization. */
const partitionIn = ({ _index, _id, fields = {} }: Hit, partitions: number): number => {
  const [org] = fields.org_id ?? []
  const partition = fields.partition?.[0] ?? (org === undefined ? undefined : partitionOf(org, partitions))
  if (partition !== undefined) return partition
  throw new CommandError(`${_index} has a document without an organization: ${_id}`)
}

/** The message if something of a generation is missing. */
export const dropped = (what: string, status: number): string =>
  `${what} cannot be read: ${status}. If somebody drops the generation, let it end, and run the same again`
