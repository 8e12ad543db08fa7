/**
 * What this process knows of one partition: what it decided and is not yet acknowledged (never dropped), and what it
 * decided or read lately (bounded). Valid as long as every record of the partition is projected here, in order: it is
 * thrown away with the assignment.
 */

import { CACHE_BYTES_PER_PARTITION, CACHE_HEAD_BYTES_PER_PARTITION } from '../limits.ts'
import type { AnyNewDocument, Key } from '../rules/state.ts'
import { KeyFilter } from './key-filter.ts'
import { draftOf, type Rendered } from './serialize.ts'

export class Cache {
  /** Payouts and chains, as their lines. */
  readonly #lines = new Shelf(CACHE_BYTES_PER_PARTITION)
  /** Reps, periods, payroll files and keys: small, and asked for again when many payouts have gone by. */
  readonly #heads = new Shelf(CACHE_HEAD_BYTES_PER_PARTITION)
  readonly #slabs = new Slabs()
  /** All that exists, where the partition is projected from its first record on. */
  readonly #seen: KeyFilter | undefined

  constructor(fromFirstRecord: boolean) {
    this.#seen = fromFirstRecord ? new KeyFilter() : undefined
  }

  /** The document, null where there is none; undefined when Elasticsearch must be asked. */
  get(key: Key): AnyNewDocument | null | undefined {
    if (this.#seen && !this.#seen.hasSeen(key)) return null
    const kept = this.#shelfOf(key).get(key, old => (old instanceof Line ? this.#slabs.copy(old) : old))
    return kept && draftIn(kept)
  }

  /**
   * Keeps what was read, unless it was decided meanwhile. HAZARD: what was decided and dropped meanwhile would come
   * back older; nothing is decided while its batch loads.
   */
  keep(key: Key, draft: AnyNewDocument): void {
    const shelf = this.#shelfOf(key)
    if (!shelf.has(key)) shelf.add(key, draft)
  }

  /** @returns to be called once all of it is acknowledged */
  decided(documents: readonly Rendered[]): () => void {
    // Pending before it is added: what is added may make room of what was added just before.
    const pending = [this.#lines, this.#heads].map(shelf => ({ shelf, keys: shelf.pend() }))
    for (const { key, place, draft, line } of documents) {
      if (place === 'parked' || place === 'statements') continue
      const shelf = this.#shelfOf(key)
      pending.find(one => one.shelf === shelf)?.keys.push(key)
      shelf.add(key, shelf === this.#lines ? this.#slabs.add(line) : draft)
      this.#seen?.add(key)
    }
    return () => {
      for (const { shelf, keys } of pending) shelf.acknowledged(keys)
    }
  }

  #shelfOf(key: Key): Shelf {
    return key.startsWith('payouts/') || key.startsWith('chains/') ? this.#lines : this.#heads
  }
}

/**
 * Documents up to a bound, in two generations: what comes is kept in the young one; once that is half of the bound it
 * becomes the old one, and what was old is dropped. Measured in a replay, keeping the order of each single use took a
 * twentieth of the projector's time.
 */
class Shelf {
  readonly #bytesMost: number
  #young = new Map<Key, Kept>()
  #old = new Map<Key, Kept>()
  #youngBytes = 0
  #oldBytes = 0
  /** Of what is among the young because it is pending. */
  #pendingBytes = 0
  /** What was decided and is not yet acknowledged, batch by batch. */
  readonly #pending = new Set<readonly Key[]>()

  constructor(bytesMost: number) {
    this.#bytesMost = bytesMost
  }

  has(key: Key): boolean {
    return this.#young.has(key) || this.#old.has(key)
  }

  /** What is old and asked for becomes young again, as what `renew` makes of it. */
  get(key: Key, renew: (old: Kept) => Kept): Kept | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.add(key, renew(old))
    return old
  }

  add(key: Key, kept: Kept): void {
    this.#young.set(key, kept)
    this.#youngBytes += key.length + sizeOf(kept)
    if (this.#youngBytes > this.#bytesMost / 2) this.#grow()
  }

  /** @returns where to put the keys of what stays until it is acknowledged */
  pend(): Key[] {
    const keys: Key[] = []
    this.#pending.add(keys)
    return keys
  }

  acknowledged(keys: readonly Key[]): void {
    this.#pending.delete(keys)
    // What is too large to be kept for long goes now.
    for (let times = 0; times < 2; times++) {
      if (this.#youngBytes + this.#pendingBytes + this.#oldBytes > this.#bytesMost) this.#grow()
    }
  }

  /** The young become the old; of the old there stays what is pending, and does not count until it is acknowledged. */
  #grow(): void {
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

/**
 * A document: what most of them are, and are asked for once in a while, as its line, outside of the heap; reps, periods
 * and keys, which are asked for all the time, as they are.
 */
type Kept = AnyNewDocument | Line

const draftIn = (kept: Kept): AnyNewDocument =>
  kept instanceof Line ? draftOf(JSON.parse(kept.bytes.toString('utf8'))) : kept

/** Bytes, roughly: enough to keep the cache within its bound. */
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

/**
 * Lines one after the other in pieces of memory that go when none of their lines is kept any more: the collector
 * neither copies them nor looks at them.
 */
class Slabs {
  #slab: Buffer = Buffer.alloc(0)
  #used = 0

  add(text: string): Line {
    const line = this.#room(Buffer.byteLength(text))
    line.bytes.write(text, line.length === text.length ? 'latin1' : 'utf8')
    return line
  }

  /** So that a line that is used does not keep those beside it that are not. */
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
