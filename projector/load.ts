/**
 * In: the valid events of a batch. Out: the state they touch, complete: every document a rule may ask for, or that there
 * is none. Promises: read after every write of the batches before was decided; what is not yet acknowledged comes from the
 * cache, the rest by realtime multi-get; where that is much, it is loaded for the first events only.
 * Can go wrong: Elasticsearch away (tried again), an index gone (stops).
 */
import { KeyFilter } from './key-filter.ts'
import { CACHE_BYTES_PER_PARTITION, MGET_IDS } from './limits.ts'
import type { Judged, PassedOver } from './project.ts'
import { draftOf, type Rendered } from './render.ts'
import type { Names } from './rules/decision.ts'
import type { AnyRules } from './rules/rules.ts'
import { type AnyDraft, type Key, type Name, State } from './state.ts'
import type { ValidEvent } from './validate.ts'

/** Reads documents by key; null where there is none. Of the first keys as many as one answer holds, at least one. */
export type ReadDocuments = (keys: readonly Key[]) => Promise<Map<Key, AnyDraft | null>>

export type PlacedEvent = {
  readonly event: ValidEvent
  readonly names: Names
  readonly rules: AnyRules
  readonly seq: number
  readonly at: number
}

/** The valid events among the records of a batch. */
export const eventsOf = (judged: readonly (Judged | PassedOver)[]): PlacedEvent[] =>
  judged.flatMap((item): PlacedEvent[] => {
    if (item.rules === undefined) return []
    const { record, verdict, names, rules } = item
    return [{ event: verdict, names, rules, seq: record.offset, at: record.timestamp }]
  })

/** `events`: how many of those given, from the first, the state is complete for. Of some at least one. */
export type Loaded = { readonly state: State; readonly events: number }

export const load = async (events: readonly PlacedEvent[], cache: Cache, read: ReadDocuments): Promise<Loaded> => {
  const state = new State()
  const needs = events.map(({ names }) => keysOf(Object.values(names)))
  const first = await fill(state, needs, cache, read)
  const next = events.slice(0, first).map(({ event, names, rules, seq, at }) => {
    const { data, hash } = event
    return keysOf(rules.namesNext({ data, names, hash, seq, at }, state))
  })
  return { state, events: await fill(state, next, cache, read) }
}

const keysOf = (names: readonly (Name | undefined)[]): Key[] => {
  const keys: Key[] = []
  for (const name of names) if (name !== undefined) keys.push(name.key)
  return keys
}

/** Returns for how many of the events, from the first, all that each of them needs is there now. */
const fill = async (state: State, needs: readonly Key[][], cache: Cache, read: ReadDocuments): Promise<number> => {
  const missing = new Set<Key>()
  for (const key of needs.flat()) {
    if (state.has(key)) continue
    const cached = cache.get(key)
    if (cached === undefined) missing.add(key)
    else state.set(key, cached)
  }
  let waiting = [...missing]
  while (waiting.length > 0) {
    const asked = waiting.slice(0, MGET_IDS)
    const found = await read(asked)
    for (const [key, draft] of found) {
      state.set(key, draft)
      if (draft !== null) cache.keep(key, draft)
    }
    waiting = waiting.slice(found.size)
    // What one answer does not hold is a lot: what is there is decided first.
    const complete = found.size < asked.length ? completeOf(state, needs) : 0
    if (complete > 0) return complete
  }
  return needs.length
}

const completeOf = (state: State, needs: readonly Key[][]): number => {
  const first = needs.findIndex(keys => keys.some(key => !state.has(key)))
  return first === -1 ? needs.length : first
}

/**
 * What this process knows of one partition: what it decided and is not yet acknowledged (never dropped), and what it
 * decided or read lately (bounded). Valid as long as every record of the partition is projected here, in order: it is
 * thrown away with the assignment.
 *
 * Two generations: what comes is kept in the young one; once that is half of the bound it becomes the old one, and what was
 * old is dropped. Measured in a replay, keeping the order of each single use took a twentieth of the projector's time.
 */
export class Cache {
  #young = new Map<Key, Kept>()
  #old = new Map<Key, Kept>()
  #youngBytes = 0
  #oldBytes = 0
  /** What was decided and is not yet acknowledged, batch by batch. */
  readonly #pending = new Set<readonly Key[]>()
  /** All that exists, where the partition is projected from its first record on. */
  readonly #seen: KeyFilter | undefined

  constructor(fromFirstRecord: boolean) {
    this.#seen = fromFirstRecord ? new KeyFilter() : undefined
  }

  /** The document, null where there is none; undefined when Elasticsearch must be asked. */
  get(key: Key): AnyDraft | null | undefined {
    if (this.#seen && !this.#seen.hasSeen(key)) return null
    const young = this.#young.get(key)
    if (young !== undefined) return draftIn(young)
    const old = this.#old.get(key)
    if (old !== undefined) this.#add(key, old)
    return old === undefined ? undefined : draftIn(old)
  }

  /** Keeps what was read, unless it was decided meanwhile. */
  keep(key: Key, draft: AnyDraft): void {
    if (!this.#young.has(key) && !this.#old.has(key)) this.#add(key, draft)
  }

  /** @returns to be called once all of it is acknowledged */
  decided(documents: readonly Rendered[]): () => void {
    // Pending from here on: what is added may make room of what was added just before.
    const keys: Key[] = []
    this.#pending.add(keys)
    for (const { key, place, draft, line } of documents) {
      if (place === 'parked' || place === 'statements') continue
      keys.push(key)
      this.#add(key, place === 'payouts' || place === 'chains' ? line : draft)
      this.#seen?.add(key)
    }
    return () => this.#acknowledged(keys)
  }

  #acknowledged(keys: readonly Key[]): void {
    this.#pending.delete(keys)
    // What is too large to be kept for long goes now.
    for (let times = 0; times < 2; times++) {
      if (this.#youngBytes + this.#oldBytes > CACHE_BYTES_PER_PARTITION) this.#grow()
    }
  }

  #add(key: Key, kept: Kept): void {
    this.#young.set(key, kept)
    this.#youngBytes += key.length + sizeOf(kept)
    if (this.#youngBytes > CACHE_BYTES_PER_PARTITION / 2) this.#grow()
  }

  /** The young become the old; of the old there stays what is pending, and does not count. */
  #grow(): void {
    const dropped = this.#old
    this.#old = this.#young
    this.#oldBytes = this.#youngBytes
    this.#young = new Map()
    this.#youngBytes = 0
    for (const keys of this.#pending) {
      for (const key of keys) {
        const kept = this.#old.has(key) ? undefined : dropped.get(key)
        if (kept !== undefined) this.#young.set(key, kept)
      }
    }
  }
}

/**
 * A document: what most of them are, and are asked for once in a while, as its line, which is one object in place of twenty for the
 * collector to look at; reps, periods and keys, which are asked for all the time, as they are. Measured in a replay, a twentieth more.
 */
type Kept = AnyDraft | string

const draftIn = (kept: Kept): AnyDraft => (typeof kept === 'string' ? draftOf(JSON.parse(kept)) : kept)

/** Bytes, roughly: enough to keep the cache within its bound. */
const sizeOf = (kept: Kept): number => {
  if (typeof kept === 'string') return 150 + kept.length
  const { versions, payouts, payroll, line_items } = kept.body as Partial<Record<string, unknown[]>>
  const items = [versions, payouts, payroll].reduce((sum, list) => sum + (list?.length ?? 0), 0)
  return 300 + items * 150 + (line_items?.length ?? 0) * 300
}
