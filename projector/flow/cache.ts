/**
 * Documents of one partition that this process decided or read. A decided document stays until Elasticsearch confirmed
 * its write. Others are evicted at a bound. Valid only while this process projects every record in order, so it is
 * dropped with the assignment.
 */

import { CACHE_BYTES_PER_PARTITION, CACHE_HEAD_BYTES_PER_PARTITION } from '../limits.ts'
import type { AnyNewDocument, DocumentKey } from '../rules/state.ts'
import { KeyFilter } from './key-filter.ts'
import { draftOf, type Rendered } from './serialize.ts'

export class Cache {
  /** Payouts and chains. */
  readonly #lines = new RecentDocuments(CACHE_BYTES_PER_PARTITION)
  /** Reps, periods, payroll files and keys: small, and read again after many payouts. */
  readonly #heads = new RecentDocuments(CACHE_HEAD_BYTES_PER_PARTITION)
  readonly #slabs = new Slabs()
  /** Every key that exists. Only if the partition is projected from its first record on. */
  readonly #seen: KeyFilter | undefined

  constructor(fromFirstRecord: boolean) {
    this.#seen = fromFirstRecord ? new KeyFilter() : undefined
  }

  /** Returns the document; null if none exists; undefined if Elasticsearch must be asked. */
  get(key: DocumentKey): AnyNewDocument | null | undefined {
    if (this.#seen && !this.#seen.hasSeen(key)) return null
    const kept = this.#recentOf(key).get(key, old => (old instanceof Line ? this.#slabs.copy(old) : old))
    return kept && draftIn(kept)
  }

  /**
   * Caches a read document unless it was decided meanwhile. HAZARD: a document decided and evicted during the load
   * would come back older. No batch is decided during a load, which prevents this.
   */
  keep(key: DocumentKey, draft: AnyNewDocument): void {
    const recent = this.#recentOf(key)
    if (!recent.has(key)) recent.add(key, draft)
  }

  /** Caches decided documents. @returns the callback for when all of them are acknowledged */
  addDecided(documents: readonly Rendered[]): () => void {
    // Register the keys as pending before adding documents: adding one may evict those added just before.
    const pending = [this.#lines, this.#heads].map(recent => ({ recent, keys: recent.pend() }))
    for (const { key, kind, draft, line } of documents) {
      if (kind === 'parked' || kind === 'statements') continue
      const recent = this.#recentOf(key)
      pending.find(one => one.recent === recent)?.keys.push(key)
      recent.add(key, recent === this.#lines ? this.#slabs.add(line) : draft)
      this.#seen?.add(key)
    }
    return () => {
      for (const { recent, keys } of pending) recent.acknowledge(keys)
    }
  }

  #recentOf(key: DocumentKey): RecentDocuments {
    return key.startsWith('payouts/') || key.startsWith('chains/') ? this.#lines : this.#heads
  }
}

/**
 * Documents up to a bound, in a young and an old half. At half the bound, the young half becomes the old one, and the
 * old one is dropped. Measured in a replay, keeping an exact LRU order took a twentieth of the projector's time.
 */
class RecentDocuments {
  readonly #bytesMax: number
  #young = new Map<DocumentKey, Kept>()
  #old = new Map<DocumentKey, Kept>()
  #youngBytes = 0
  #oldBytes = 0
  /** Bytes of pending documents that were moved to the young half. */
  #pendingBytes = 0
  /** Keys decided and not yet acknowledged, by batch. */
  readonly #pending = new Set<readonly DocumentKey[]>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  has(key: DocumentKey): boolean {
    return this.#young.has(key) || this.#old.has(key)
  }

  /** Returns a document. A document of the old half is renewed and moves to the young half. */
  get(key: DocumentKey, renew: (old: Kept) => Kept): Kept | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.add(key, renew(old))
    return old
  }

  add(key: DocumentKey, kept: Kept): void {
    this.#young.set(key, kept)
    this.#youngBytes += key.length + sizeOf(kept)
    if (this.#youngBytes > this.#bytesMax / 2) this.#turnOver()
  }

  /** @returns the list for keys of documents that must stay until they are acknowledged */
  pend(): DocumentKey[] {
    const keys: DocumentKey[] = []
    this.#pending.add(keys)
    return keys
  }

  acknowledge(keys: readonly DocumentKey[]): void {
    this.#pending.delete(keys)
    // Pending documents may have exceeded the bound. The first turn makes the young half old, the second drops it.
    for (let times = 0; times < 2; times++) {
      if (this.#youngBytes + this.#pendingBytes + this.#oldBytes > this.#bytesMax) this.#turnOver()
    }
  }

  /** Makes the young half the old one. Drops the old half; its pending documents become young again. */
  #turnOver(): void {
    const dropped = this.#old
    this.#old = this.#young
    this.#oldBytes = this.#youngBytes + this.#pendingBytes
    this.#young = new Map()
    this.#youngBytes = 0
    this.#pendingBytes = 0
    for (const keys of this.#pending) {
      for (const key of keys) {
        const kept = this.#old.has(key) ? undefined : dropped.get(key)
        if (kept === undefined || this.#young.has(key)) continue
        this.#young.set(key, kept)
        this.#pendingBytes += key.length + sizeOf(kept)
      }
    }
  }
}

/** A document: a line outside of the heap if it is a decided payout or chain (most, rarely read), else an object. */
type Kept = AnyNewDocument | Line

const draftIn = (kept: Kept): AnyNewDocument =>
  kept instanceof Line ? draftOf(JSON.parse(kept.bytes.toString('utf8'))) : kept

/** Estimated bytes, exact enough to bound the cache. */
const sizeOf = (kept: Kept): number => {
  if (kept instanceof Line) return 200 + kept.length
  const { versions, payouts, payroll, line_items } = kept.body as Partial<Record<string, unknown[]>>
  const items = [versions, payouts, payroll].reduce((sum, list) => sum + (list?.length ?? 0), 0)
  return 300 + items * 150 + (line_items?.length ?? 0) * 300
}

class Line {
  readonly #slab: Buffer
  readonly #from: number
  readonly length: number
  constructor(slab: Buffer, from: number, length: number) {
    this.#slab = slab
    this.#from = from
    this.length = length
  }
  get bytes(): Buffer {
    return this.#slab.subarray(this.#from, this.#from + this.length)
  }
}

/** Lines in large buffers: never copied or scanned by the garbage collector, and freed with their last line. */
class Slabs {
  #slab: Buffer = Buffer.alloc(0)
  #used = 0

  add(text: string): Line {
    const line = this.#room(Buffer.byteLength(text))
    line.bytes.write(text, line.length === text.length ? 'latin1' : 'utf8')
    return line
  }

  /** Copies a line to the current buffer: a line in use must not keep the unused lines beside it in memory. */
  copy(other: Line): Line {
    const line = this.#room(other.length)
    other.bytes.copy(line.bytes)
    return line
  }

  #room(length: number): Line {
    if (this.#used + length > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(Math.max(length, SLAB_BYTES))
      this.#used = 0
    }
    const line = new Line(this.#slab, this.#used, length)
    this.#used += length
    return line
  }
}
const SLAB_BYTES = 256 * 1024
