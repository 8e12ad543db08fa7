/**
 * An index of the simulated Elasticsearch: documents with external versions and sequence numbers, in shards. A document
 * is in the shard of its routing, or else of its id; a read that asks another shard finds nothing. Reads by id return
 * the last write; those of an old copy, the write before. A search returns the documents of each shard as of its last
 * refresh. Not simulated: merges, and restarts that lose acknowledged writes.
 */
import type { IndexDefinition } from '../../schemas/stored/mappings.ts'

/** A document, and the routing with which it is asked for. */
export type Address = { readonly _id: string; readonly routing?: string | undefined }

export type Stored = {
  readonly id: string
  readonly routing: string | undefined
  readonly shard: number
  readonly version: number
  readonly seqNo: number
  readonly source: string
  readonly fields: Readonly<Record<string, unknown>>
}

export class Index {
  readonly name: string
  readonly definition: IndexDefinition
  /** A restored index has another one. */
  readonly uuid: string
  readonly documents = new Map<string, Stored>()
  /** The documents that a search sees, by shard. */
  readonly searchable: readonly Map<string, Stored>[]
  readonly shards: number
  readonly #unrefreshed: Set<string>[]
  /** Each document before its last write. */
  readonly #before = new Map<string, Stored>()
  #seqNo = 0

  constructor(name: string, definition: IndexDefinition, uuid = `uuid-of-${name}`) {
    this.name = name
    this.uuid = uuid
    this.definition = definition
    this.shards = Number(definition.settings.number_of_shards)
    this.searchable = Array.from({ length: this.shards }, () => new Map())
    this.#unrefreshed = Array.from({ length: this.shards }, () => new Set())
  }

  /** Writes with an external version: only over an older version, or also over the same one. */
  write(address: Address, version: number, source: string, fields: Stored['fields'], isOverSame = false) {
    const before = this.find(address)
    if (before !== undefined && before.version >= version + (isOverSame ? 1 : 0)) return 409
    this.#put(address, version, source, fields)
    return before === undefined ? 201 : 200
  }

  /** Writes only if the document still has the sequence number `seen`, or does not exist. */
  replace(address: Address, seen: number | 'nothing', source: string): Stored | 409 {
    const before = this.find(address)
    if ((before?.seqNo ?? 'nothing') !== seen) return 409
    return this.#put(address, (before?.version ?? 0) + 1, source, JSON.parse(source))
  }

  /** Returns a document if it is in the shard of this address. */
  find(address: Address): Stored | undefined {
    const stored = this.documents.get(address._id)
    return stored?.shard === this.shardOf(address) ? stored : undefined
  }

  /** Returns a document as an old copy of its shard has it: without the last write. */
  inOldCopy(address: Address): Stored | undefined {
    const stored = this.#before.get(address._id)
    return stored?.shard === this.shardOf(address) ? stored : undefined
  }

  delete(address: Address): boolean {
    const stored = this.find(address)
    if (stored === undefined) return false
    this.documents.delete(stored.id)
    this.#unrefreshed[stored.shard]?.add(stored.id)
    return true
  }

  copy(): Index {
    const copy = new Index(this.name, this.definition, this.uuid)
    for (const [id, stored] of this.documents) copy.documents.set(id, stored)
    for (const [shard, seen] of this.searchable.entries()) {
      for (const [id, stored] of seen) copy.searchable[shard]?.set(id, stored)
      for (const id of this.#unrefreshed[shard] ?? []) copy.#unrefreshed[shard]?.add(id)
    }
    copy.#seqNo = this.#seqNo
    return copy
  }

  /** Copies the documents of a shard into another index, as a snapshot does: written ones, searchable or not. */
  copyShardTo(shard: number, copy: Index): void {
    for (const [id, stored] of this.documents) {
      if (stored.shard !== shard) continue
      copy.documents.set(id, stored)
      copy.searchable[shard]?.set(id, stored)
    }
    copy.#seqNo = Math.max(copy.#seqNo, this.#seqNo)
  }

  refresh(shard: number): void {
    const ids = this.#unrefreshed[shard]
    for (const id of ids ?? []) {
      const document = this.documents.get(id)
      if (document?.shard === shard) this.searchable[shard]?.set(id, document)
      else this.searchable[shard]?.delete(id)
    }
    ids?.clear()
  }

  shardOf({ _id, routing = _id }: Address): number {
    return (hashOf(routing) + (hashOf(_id) % this.#partitionSize)) % this.shards
  }

  /** The shards that a search with this routing asks. */
  shardsOf(routing: string | undefined): number[] {
    if (routing === undefined) return Array.from({ length: this.shards }, (_, shard) => shard)
    return Array.from({ length: this.#partitionSize }, (_, part) => (hashOf(routing) + part) % this.shards)
  }

  /** Whether the index refuses requests for a document without a routing, and this is one. */
  lacksRouting({ routing }: Address): boolean {
    return this.definition.mappings._routing?.required === true && routing === undefined
  }

  /** Whether the mapping has every field: `dynamic: strict`. */
  takes(fields: Stored['fields']): boolean {
    return Object.keys(fields).every(name => name in this.definition.mappings.properties)
  }

  #put(address: Address, version: number, source: string, fields: Stored['fields']): Stored {
    const { _id: id, routing } = address
    const stored = { id, routing, shard: this.shardOf(address), version, seqNo: this.#seqNo++, source, fields }
    const before = this.documents.get(id)
    if (before !== undefined) this.#before.set(id, before)
    this.documents.set(id, stored)
    this.#unrefreshed[stored.shard]?.add(id)
    return stored
  }

  get #partitionSize(): number {
    return Number(this.definition.settings.routing_partition_size ?? 1)
  }
}

const hashOf = (text: string): number => {
  let hash = 7
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return hash >>> 3
}
