/**
 * The layout of a generation, or of the API keys: which index has each kind of document, the address of each document,
 * and where to search for documents of some kinds. Layout 1 has an index for each kind, and routes a document by its
 * id. Layout 2 has one index for all kinds that lists search, and routes all documents of an organization by its id:
 * they are in one shard of each index. Layout 3 has the same indices; payouts can be searched by deal, and balances
 * by their number of changes.
 * Promises: everything that writes, reads or searches documents asks here, so that no two of them can disagree. An
 *   address is made from the kind and the id of a document alone.
 */
import { listTraits } from '../lists.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  balancesIndexOf,
  controlIndexOf,
  type GenerationDocument,
  indexOf,
  isListKind,
  type Kind,
  keptFormId,
  keptIdIn,
  kinds,
  listKinds,
  orgIn,
  recordsIndexOf,
} from './documents.ts'

/** An index of the generation, or the index of API keys. Layout 1 has no `balances`. */
export type IndexKind = Kind | 'balances' | 'api-keys'

/**
 * The address of a document: Elasticsearch finds a document only with the routing that it was written with. Undefined:
 * it is routed by its id.
 */
export type Address = { readonly _index: string; readonly _id: string; readonly routing: string | undefined }

/** Where documents of some kinds are searched. */
export type SearchTarget<Of extends Kind = Kind> = {
  /** The names of the indices, with commas. */
  readonly index: string
  /** The organization whose shards are asked; undefined for all shards. */
  readonly routing: string | undefined
  /** Every query of this target must have these: an index may also have other kinds and other organizations. */
  readonly filters: readonly object[]
  readonly records: readonly RecordIndex<Of>[]
}

/**
 * An index that is searched, and the kind of the documents that are expected in it. `idPrefix`: the id of each of these
 * documents begins with it, after the organization. Absent if the index has no other kind.
 */
export type RecordIndex<Of extends Kind = Kind> = {
  readonly name: string
  readonly kind: Of
  readonly idPrefix?: string
}

export type GenerationLayout = {
  /** The names of all indices. */
  readonly indices: readonly string[]
  readonly indexOf: (kind: IndexKind) => string
  readonly hasBalances: boolean
  /** Whether payouts can be searched by the deals of their lines. */
  readonly hasDeals: boolean
  /** Whether balances can be searched by their number of changes. */
  readonly hasSequences: boolean
  /** Whether all records of an organization are in one shard: an old copy of it lacks only the last ones. */
  readonly isInOneShard: boolean
  /** The kind of a found document, or of the document of a kept form; undefined if another index has it. */
  readonly kindOf: (index: string, id: string) => IndexKind | undefined
  readonly addressOf: (kind: IndexKind, id: string) => Address
  /**
   * The address at which the earlier form of a document is kept: in the same shard, unless an organization has several
   * (`routing_partition_size`).
   */
  readonly keptFormAddressOf: (kind: IndexKind, id: string) => Address
  /** JSON of the fields that stored documents of this kind begin with, each with a comma. */
  readonly storedWith: (kind: IndexKind) => string
  /** @param org of the documents: '' for those without one, undefined for all */
  readonly searchOf: <Of extends Kind>(kinds: readonly Of[], org: string | undefined) => SearchTarget<Of>
  /** The indices of these kinds that lists search. They must be refreshed before a position is published. */
  readonly searchedIndices: (kinds: ReadonlySet<IndexKind>) => string[]
}

/** The fields of a generation that decide its layout. With `topic`, so that a name alone does not compile. */
export type LayoutSource = Pick<
  GenerationDocument['body'],
  'generation' | 'topic' | 'layout' | 'routing_partition_size'
>

/** Returns the layout of a generation, or of the API keys. */
export const layoutOf = (prefix: string, source: LayoutSource): GenerationLayout => {
  const { generation, layout, routing_partition_size: shards = 1 } = source
  if (generation === API_KEYS_GENERATION) return layoutOfKeys(prefix)
  if (layout === undefined) return layoutByKind(prefix, generation)
  return routedLayout(prefix, generation, layout >= 3, shards === 1)
}

/** The layout of the API keys and of their parked records. */
export const layoutOfKeys = (prefix: string): GenerationLayout =>
  separateIndices(
    kind => (kind === 'parked' ? apiKeysParkedIndexOf(prefix) : apiKeysIndexOf(prefix)),
    ['api-keys', 'parked'],
    // API keys are looked up by id only.
    [],
  )

/** Layout 1. */
const layoutByKind = (prefix: string, generation: string): GenerationLayout =>
  separateIndices(
    kind => {
      if (kind === 'balances') throw new Error('layout 1 has no balances')
      return kind === 'api-keys' ? apiKeysIndexOf(prefix) : indexOf(prefix, generation, kind)
    },
    kinds,
    listKinds,
  )

const separateIndices = (
  nameOf: (kind: IndexKind) => string,
  ours: readonly IndexKind[],
  searched: readonly IndexKind[],
): GenerationLayout => {
  const kindsByIndex = new Map(ours.map(kind => [nameOf(kind), kind]))
  return {
    indices: [...kindsByIndex.keys()],
    indexOf: nameOf,
    hasBalances: false,
    hasDeals: false,
    hasSequences: false,
    isInOneShard: false,
    kindOf: index => kindsByIndex.get(index),
    addressOf: (kind, id) => ({ _index: nameOf(kind), _id: id, routing: undefined }),
    keptFormAddressOf: (kind, id) => ({ _index: nameOf(kind), _id: keptFormId(id), routing: id }),
    storedWith: () => '',
    searchOf: (some, org) => {
      const records = some.map(kind => ({ name: nameOf(kind), kind }))
      return {
        index: records.map(({ name }) => name).join(),
        routing: undefined,
        filters: filtersOfOrg(org),
        records,
      }
    },
    searchedIndices: some => [...some].filter(kind => searched.includes(kind)).map(nameOf),
  }
}

/** Layouts 2 and 3. */
const routedLayout = (
  prefix: string,
  generation: string,
  hasDeals: boolean,
  isInOneShard: boolean,
): GenerationLayout => {
  const records = recordsIndexOf(prefix, generation)
  const nameOf = (kind: IndexKind): string => {
    if (kind === 'api-keys') return apiKeysIndexOf(prefix)
    if (kind === 'balances') return balancesIndexOf(prefix, generation)
    return isListKind(kind) ? records : indexOf(prefix, generation, kind)
  }
  const ofOthers = new Map(otherKinds.map(kind => [nameOf(kind), kind]))
  const routingOf = (kind: IndexKind, id: string): string | undefined => (isRouted(kind) ? orgIn(id) : undefined)
  return {
    indices: [records, ...ofOthers.keys()],
    indexOf: nameOf,
    hasBalances: true,
    hasDeals,
    hasSequences: hasDeals,
    isInOneShard,
    kindOf: (index, id) => (index === records ? listKindOf(id) : ofOthers.get(index)),
    addressOf: (kind, id) => ({ _index: nameOf(kind), _id: id, routing: routingOf(kind, id) }),
    keptFormAddressOf: (kind, id) => ({
      _index: nameOf(kind),
      _id: keptFormId(id),
      routing: routingOf(kind, id) ?? id,
    }),
    storedWith: kind => (isListKind(kind) ? `"kind":"${kind}",` : ''),
    searchOf: (some, org) => {
      const ofRecords = some.filter(isListKind)
      const isOfKind = ofRecords.length > 0 && ofRecords.length < listKinds.length
      return {
        index: [...new Set(some.map(nameOf))].join(),
        routing: org !== '' && some.every(isRouted) ? org : undefined,
        filters: [...(isOfKind ? [{ terms: { kind: some } }] : []), ...filtersOfOrg(org)],
        records: some.map(kind => ({
          name: nameOf(kind),
          kind,
          ...(isListKind(kind) && { idPrefix: `${listTraits[kind].idPrefix}_` }),
        })),
      }
    },
    searchedIndices: some => ([...some].some(isListKind) ? [records] : []),
  }
}

const otherKinds = ['statements', 'chains', 'parked', 'balances'] as const

/**
 * Parked records have one shard for all: most of those who ask for one know its offset, and no organization. Balances
 * are few.
 */
const isRouted = (kind: IndexKind): boolean => kind !== 'parked' && kind !== 'balances' && kind !== 'api-keys'

/** The kind of a record, by the prefix of its id; undefined for another document. */
const listKindOf = (id: string): Kind | undefined => {
  const document = keptIdIn(id) ?? id
  const own = document.slice(document.indexOf(':') + 1)
  return listKinds.find(kind => own.startsWith(`${listTraits[kind].idPrefix}_`))
}

const filtersOfOrg = (org: string | undefined): object[] => {
  if (org === undefined) return []
  return [org === '' ? { bool: { must_not: { exists: { field: 'org_id' } } } } : { term: { org_id: org } }]
}

/** The address of a parked record, the same in each layout. @param generation of events, or API_KEYS_GENERATION */
export const parkedAddress = (prefix: string, generation: string, id: string): Address => ({
  _index: parkedIndexOf(prefix, generation),
  _id: id,
  routing: undefined,
})

/** The index of parked records, the same in each layout. @param generation of events, or API_KEYS_GENERATION */
export const parkedIndexOf = (prefix: string, generation: string): string =>
  generation === API_KEYS_GENERATION ? apiKeysParkedIndexOf(prefix) : indexOf(prefix, generation, 'parked')

/** The address of a document of the control index. */
export const controlAddress = (prefix: string, id: string): Address => ({
  _index: controlIndexOf(prefix),
  _id: id,
  routing: undefined,
})
