/**
 * Documents of one partition that this process decided or read. A decided document stays until Elasticsearch confirmed
 * its write. Others are evicted at a bound. Valid only while this process projects every record in order, so it is
 * dropped with the assignment.
 */

import { CACHE_HEAD_BYTES_PER_PARTITION, CACHE_LINE_BYTES_PER_PARTITION } from '../limits.ts'
import type { AnyNewDocument, DocumentKey } from '../rules/state.ts'
import { KeyFilter } from './key-filter.ts'
import { type DecidedDocument, draftOf } from './project.ts'

export class Cache {
  /** Payouts and chains are lines: many, and rarely read. A line takes less memory than its object. */
  readonly #lines: RecentDocuments
  /** Reps, periods, payroll files and keys: small, and read again after many payouts. */
  readonly #heads: RecentDocuments
  /** Every key that exists. Only if the partition is projected from its first record on. */
  readonly #seen: KeyFilter | undefined

  /** @param share the part of the full size that this cache may take */
  constructor({ fromFirstRecord, share = 1 }: { readonly fromFirstRecord: boolean; readonly share?: number }) {
    this.#lines = new RecentDocuments(CACHE_LINE_BYTES_PER_PARTITION * share)
    this.#heads = new RecentDocuments(CACHE_HEAD_BYTES_PER_PARTITION * share)
    this.#seen = fromFirstRecord ? new KeyFilter(share) : undefined
  }

  /** Returns the document; null if none exists; undefined if Elasticsearch must be asked. */
  get(key: DocumentKey): AnyNewDocument | null | undefined {
    if (this.#seen && !this.#seen.hasSeen(key)) return null
    const kept = this.#recentOf(key).get(key)
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

  /**
   * Caches decided documents. A payout that another one replaces is removed when it is acknowledged: hardly any event
   * names it again. @returns the callback for when all of them are acknowledged
   */
  addDecided(documents: readonly DecidedDocument[]): () => void {
    // Register the keys as pending before adding documents: adding one may evict those added just before.
    const pending = [this.#lines, this.#heads].map(recent => ({ recent, keys: recent.pend() }))
    const replaced: { readonly key: DocumentKey; readonly kept: Kept }[] = []
    for (const { key, kind, draft, line } of documents) {
      if (kind === 'parked' || kind === 'statements') continue
      const recent = this.#recentOf(key)
      pending.find(one => one.recent === recent)?.keys.push(key)
      const kept = recent.add(key, recent === this.#heads ? draft : line)
      if (isReplaced(draft)) replaced.push({ key, kept })
      this.#seen?.add(key)
    }
    return () => {
      for (const { recent, keys } of pending) recent.acknowledge(keys)
      for (const { key, kept } of replaced) this.#lines.remove(key, kept)
    }
  }

  #recentOf(key: DocumentKey): RecentDocuments {
    return key.startsWith('payouts/') || key.startsWith('chains/') ? this.#lines : this.#heads
  }
}

const isReplaced = (draft: AnyNewDocument): boolean => 'superseded_by_id' in draft && draft.superseded_by_id !== null

/**
 * Documents up to a bound, in a young and an old half. When the young half is full, it becomes the old one, and the old
 * one is dropped. If many documents had left it, its newest are added to the new young half, up to a quarter of the
 * bound.
 * Measured in a replay, keeping an exact LRU order took a twentieth of the projector's time.
 */
class RecentDocuments {
  readonly #bytesMax: number
  #young = new Half()
  #old = new Half()
  /** Bytes of pending documents that were moved to the young half: they may exceed the bound. */
  #pendingBytes = 0
  /** Keys decided and not yet acknowledged, by batch. */
  readonly #pending = new Set<readonly DocumentKey[]>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  has(key: DocumentKey): boolean {
    return this.#young.documents.has(key) || this.#old.documents.has(key)
  }

  /** Returns a document. A document of the old half moves to the young half. */
  get(key: DocumentKey): Kept | undefined {
    const young = this.#young.documents.get(key)
    if (young !== undefined) return young
    const old = this.#old.documents.get(key)
    return old && this.#addKept(key, old)
  }

  /** @param given a document, or its line. @returns what is kept */
  add(key: DocumentKey, given: AnyNewDocument | string): Kept {
    return this.#addKept(key, typeof given === 'string' ? new Line(given) : given)
  }

  /** Removes a document, unless it was added again since. */
  remove(key: DocumentKey, kept: Kept): void {
    for (const half of [this.#young, this.#old]) if (half.documents.get(key) === kept) half.remove(key)
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
      if (this.#young.bytes + this.#old.bytes > this.#bytesMax) this.#turnOver()
    }
  }

  #addKept(key: DocumentKey, kept: Kept): Kept {
    this.#old.remove(key)
    this.#young.add(key, kept)
    if (this.#young.bytes - this.#pendingBytes > this.#bytesMax / 2) this.#turnOver()
    return kept
  }

  /** Makes the young half the old one. Of the old half, pending documents become young again, and maybe the newest. */
  #turnOver(): void {
    const left = this.#old
    this.#old = this.#young
    this.#young = new Half()
    // If hardly any document left the half, hardly any is read again, as in a replay. Then this only costs time.
    if (left.bytes < this.#bytesMax * 0.4) {
      for (const [key, kept] of left.newest(this.#bytesMax / 4)) this.#young.add(key, kept)
    }
    const carried = this.#young.bytes
    for (const key of [...this.#pending].flat()) {
      const kept = left.documents.get(key)
      if (kept !== undefined && !this.#young.documents.has(key)) this.#young.add(key, kept)
    }
    this.#pendingBytes = this.#young.bytes - carried
  }
}

class Half {
  readonly documents = new Map<DocumentKey, Kept>()
  /** Bytes of its documents. */
  bytes = 0

  add(key: DocumentKey, kept: Kept): void {
    this.remove(key)
    this.documents.set(key, kept)
    this.bytes += key.length + sizeOf(kept)
  }

  remove(key: DocumentKey): void {
    const kept = this.documents.get(key)
    if (kept === undefined) return
    this.documents.delete(key)
    this.bytes -= key.length + sizeOf(kept)
  }

  /** Returns the documents added last, up to `bytesMax`, in the order in which they were added. */
  newest(bytesMax: number): (readonly [DocumentKey, Kept])[] {
    let over = this.bytes - bytesMax
    return [...this.documents].filter(([key, kept]) => {
      const isOver = over > 0
      if (isOver) over -= key.length + sizeOf(kept)
      return !isOver
    })
  }
}

/** A document: its line if it is a decided payout or chain (most, rarely read), else an object. */
type Kept = AnyNewDocument | Line

const draftIn = (kept: Kept): AnyNewDocument => (kept instanceof Line ? draftOf(JSON.parse(kept.text)) : kept)

/** Estimated bytes, exact enough to bound the cache. */
const sizeOf = (kept: Kept): number => {
  if (kept instanceof Line) return 200 + kept.text.length
  const { versions, payouts, payroll, line_items } = kept.body as Partial<Record<string, unknown[]>>
  const items = [versions, payouts, payroll].reduce((sum, list) => sum + (list?.length ?? 0), 0)
  return 300 + items * 150 + (line_items?.length ?? 0) * 300
}

/**
 * An object of its own, so that two equal lines are two entries. Its text is flat once it is written to a bulk request:
 * it keeps no text of a record in memory.
 */
class Line {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}
