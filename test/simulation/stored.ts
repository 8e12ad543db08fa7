/**
 * An index of the simulated Elasticsearch: documents with external versions and sequence numbers, in shards. Reads by
 * id return the last write; those of an old copy, the write before. A search returns the documents of each shard as of
 * its last refresh. Not simulated: merges, and restarts that lose acknowledged writes.
 */
import { keptIdIn } from '../../schemas/stored/documents.ts'
import type { IndexDefinition } from '../../schemas/stored/mappings.ts'

export type Stored = {
  readonly id: string
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
  write(id: string, version: number, source: string, fields: Stored['fields'], isOverSame = false): 200 | 201 | 409 {
    const before = this.documents.get(id)
    if (before !== undefined && before.version >= version + (isOverSame ? 1 : 0)) return 409
    this.#put(id, version, source, fields)
    return before === undefined ? 201 : 200
  }

  /** Writes only if the document still has the sequence number `seen`, or does not exist. */
  replace(id: string, seen: number | 'nothing', source: string): Stored | 409 {
    const before = this.documents.get(id)
    if ((before?.seqNo ?? 'nothing') !== seen) return 409
    return this.#put(id, (before?.version ?? 0) + 1, source, JSON.parse(source))
  }

  /** Returns a document as an old copy of its shard has it: without the last write. */
  inOldCopy(id: string): Stored | undefined {
    return this.#before.get(id)
  }

  delete(id: string): boolean {
    if (this.documents.delete(id)) this.#unrefreshed[this.shardOf(id)]?.add(id)
    else return false
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
      if (this.shardOf(id) !== shard) continue
      copy.documents.set(id, stored)
      copy.searchable[shard]?.set(id, stored)
    }
    copy.#seqNo = Math.max(copy.#seqNo, this.#seqNo)
  }

  refresh(shard: number): void {
    const ids = this.#unrefreshed[shard]
    for (const id of ids ?? []) {
      const document = this.documents.get(id)
      if (document !== undefined) this.searchable[shard]?.set(id, document)
      else this.searchable[shard]?.delete(id)
    }
    ids?.clear()
  }

  shardOf(id: string): number {
    // A kept form is routed to the shard of its document.
    const routing = keptIdIn(id) ?? id
    let hash = 7
    for (let at = 0; at < routing.length; at++) hash = (Math.imul(hash, 31) + routing.charCodeAt(at)) | 0
    return (hash >>> 3) % this.shards
  }

  /** Whether the mapping has every field: `dynamic: strict`. */
  takes(fields: Stored['fields']): boolean {
    return Object.keys(fields).every(name => name in this.definition.mappings.properties)
  }

  #put(id: string, version: number, source: string, fields: Stored['fields']): Stored {
    const stored = { id, version, seqNo: this.#seqNo++, source, fields }
    const before = this.documents.get(id)
    if (before !== undefined) this.#before.set(id, before)
    this.documents.set(id, stored)
    this.#unrefreshed[this.shardOf(id)]?.add(id)
    return stored
  }
}
