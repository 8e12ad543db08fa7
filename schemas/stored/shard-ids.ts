/**
 * Identifies the documents of a primary shard by the id of its history. A node that starts again, a replica that
 * becomes primary and a shard that moves keep it. `allocate_empty_primary` and `allocate_stale_primary` keep the id of
 * the index but not this one: documents can be missing.
 */

/** By index name and number of the shard: `payouts/0`. */
export type ShardIds = Readonly<Record<string, string>>

const fields = ['routing.primary', 'commit.user_data.history_uuid'].map(field => `indices.*.shards.*.${field}`)

/** A pattern leaves out an index that somebody has hidden, unless it is told. */
const OPEN_AND_HIDDEN = 'open,hidden'

/**
 * Any statistics come with the ids; `get` cost least.
 * @param indices names, or a pattern: it matches the indices that the user may ask about
 */
export const shardIdsRequest = (indices: string) =>
  ({
    method: 'GET',
    path: `/${indices}/_stats/get`,
    query: { level: 'shards', filter_path: fields.join(), expand_wildcards: OPEN_AND_HIDDEN },
  }) as const

type Copy = {
  readonly routing?: { readonly primary?: boolean }
  readonly commit?: { readonly user_data?: { readonly history_uuid?: string } }
}
type Stats = {
  readonly indices?: Readonly<Record<string, { readonly shards?: Readonly<Record<string, readonly Copy[]>> }>>
}

/** Returns the ids of these indices that are there: a shard that is not assigned, or still starts, has none. */
export const shardIdsIn = (answer: unknown, names: readonly string[]): ShardIds => {
  const ids: Record<string, string> = {}
  const { indices = {} } = answer as Stats
  for (const index of names) {
    const { shards = {} } = indices[index] ?? {}
    for (const [shard, copies] of Object.entries(shards)) {
      const id = copies.find(({ routing }) => routing?.primary)?.commit?.user_data?.history_uuid
      if (id !== undefined) ids[`${index}/${shard}`] = id
    }
  }
  return ids
}

/** Names the number of shards of each index. */
export const shardCountsRequest = (prefix: string) =>
  ({
    method: 'GET',
    path: `/${prefix}-*/_settings`,
    query: { filter_path: '*.settings.index.number_of_shards', expand_wildcards: OPEN_AND_HIDDEN },
  }) as const

type Counted = { readonly settings?: { readonly index?: { readonly number_of_shards?: string | number } } }

/**
 * Returns the ids to record; undefined if one of all shards of these indices has none: it still starts, and would never
 * be compared.
 */
export const recordableIds = (ids: ShardIds, counts: unknown, names: readonly string[]): ShardIds | undefined => {
  const isWhole = names.every(name => {
    const count = Number((counts as Readonly<Record<string, Counted>>)[name]?.settings?.index?.number_of_shards)
    return count > 0 && Array.from({ length: count }).every((_, shard) => ids[`${name}/${shard}`] !== undefined)
  })
  return isWhole ? ids : undefined
}

export const indexOfShard = (shard: string): string => shard.slice(0, shard.lastIndexOf('/'))

/** Returns the recorded shards of these indices without an id now: not assigned, or still starting. */
export const missingAmong = (
  recorded: ShardIds = {},
  found: ShardIds = {},
  ofIndex: (index: string) => boolean = () => true,
): readonly string[] =>
  Object.keys(recorded).filter(shard => found[shard] === undefined && ofIndex(indexOfShard(shard)))

/** Returns the first shard of these indices whose id is not the recorded one. Without both ids it is left out. */
export const lostAmong = (
  recorded: ShardIds = {},
  found: ShardIds = {},
  ofIndex: (index: string) => boolean = () => true,
): string | undefined =>
  Object.entries(recorded).find(([shard, id]) => (found[shard] ?? id) !== id && ofIndex(indexOfShard(shard)))?.[0]
