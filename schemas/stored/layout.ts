/**
 * The layout of a generation, or of the API keys: which index has each kind of document, the address of each document,
 * and where to search for documents of some kinds.
 * Promises: everything that writes, reads or searches documents asks here, so that no two of them can disagree. An
 *   address is made from the kind and the id of a document alone.
 */
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  type GenerationDocument,
  indexOf,
  type Kind,
  keptFormId,
  kinds,
  listKinds,
} from './documents.ts'

/** An index of the generation, or the index of API keys. */
export type IndexKind = Kind | 'api-keys'

/**
 * The address of a document: Elasticsearch finds a document only with the routing that it was written with. Undefined:
 * it is routed by its id.
 */
export type Address = { readonly _index: string; readonly _id: string; readonly routing: string | undefined }

/** Where documents of some kinds are searched. */
export type SearchTarget<Of extends Kind = Kind> = {
  /** The names of the indices, with commas. */
  readonly index: string
  readonly records: readonly RecordIndex<Of>[]
}

/** An index that is searched, and the kind of the documents that are expected in it. */
export type RecordIndex<Of extends Kind = Kind> = { readonly name: string; readonly kind: Of }

export type GenerationLayout = {
  /** The names of all indices. */
  readonly indices: readonly string[]
  readonly indexOf: (kind: IndexKind) => string
  /** The kind of a found document; undefined if another index has it. */
  readonly kindOf: (index: string, id: string) => IndexKind | undefined
  readonly addressOf: (kind: IndexKind, id: string) => Address
  /** The address at which the earlier form of a document is kept: in the same shard. */
  readonly keptFormAddressOf: (kind: IndexKind, id: string) => Address
  readonly searchOf: <Of extends Kind>(kinds: readonly Of[]) => SearchTarget<Of>
  /** The indices of these kinds that lists search. They must be refreshed before a position is published. */
  readonly searchedIndices: (kinds: ReadonlySet<IndexKind>) => string[]
}

/** The fields of a generation that decide its layout. */
export type LayoutSource = Pick<GenerationDocument['body'], 'generation'>

/** Returns the layout of a generation, or of the API keys. */
export const layoutOf = (prefix: string, { generation }: LayoutSource): GenerationLayout => {
  const isOfKeys = generation === API_KEYS_GENERATION
  const nameOf = (kind: IndexKind): string => {
    if (isOfKeys) return kind === 'parked' ? apiKeysParkedIndexOf(prefix) : apiKeysIndexOf(prefix)
    return kind === 'api-keys' ? apiKeysIndexOf(prefix) : indexOf(prefix, generation, kind)
  }
  const ours: readonly IndexKind[] = isOfKeys ? ['api-keys', 'parked'] : kinds
  const kindsByIndex = new Map(ours.map(kind => [nameOf(kind), kind]))
  return {
    indices: [...kindsByIndex.keys()],
    indexOf: nameOf,
    kindOf: index => kindsByIndex.get(index),
    addressOf: (kind, id) => ({ _index: nameOf(kind), _id: id, routing: undefined }),
    keptFormAddressOf: (kind, id) => ({ _index: nameOf(kind), _id: keptFormId(id), routing: id }),
    searchOf: some => {
      const records = some.map(kind => ({ name: nameOf(kind), kind }))
      return { index: records.map(({ name }) => name).join(), records }
    },
    // API keys are looked up by id only.
    searchedIndices: some => (isOfKeys ? [] : [...some].filter(kind => searched.has(kind)).map(nameOf)),
  }
}

const searched: ReadonlySet<IndexKind> = new Set(listKinds)

/** The address of a document of the control index. */
export const controlAddress = (prefix: string, id: string): Address => ({
  _index: controlIndexOf(prefix),
  _id: id,
  routing: undefined,
})
