/**
 * In: the valid events of a batch. Out: their complete state: each document that a rule may read, or null.
 * Promises: all earlier batches are decided before this one loads. Unacknowledged documents come from the cache.
 * Documents that are not cached are read from the primaries of their shards. If one answer cannot hold them, only the
 * first events are loaded.
 * Can go wrong: Elasticsearch is unavailable (retries); an index is gone (stops).
 */

import type { ValidEvent } from '../event/validate.ts'
import { DOCUMENTS_ASKED } from '../limits.ts'
import type { Reads } from '../rules/decision.ts'
import type { AnyRules } from '../rules/rules.ts'
import { type AnyNewDocument, type DocumentKey, type DocumentRef, State } from '../rules/state.ts'
import type { Assessed, Skipped } from './assess.ts'
import type { Cache } from './cache.ts'

/** Reads the documents of the first keys, as many as one answer holds, at least one. Null: no such document. */
export type ReadDocuments = (keys: readonly DocumentKey[]) => Promise<Map<DocumentKey, AnyNewDocument | null>>

export type PendingEvent = {
  readonly event: ValidEvent
  readonly reads: Reads
  readonly rules: AnyRules
  readonly seq: number
}

export const eventsOf = (assessed: readonly (Assessed | Skipped)[]): PendingEvent[] =>
  assessed.flatMap((item): PendingEvent[] => {
    if (item.rules === undefined) return []
    const { record, verdict, reads, rules } = item
    return [{ event: verdict, reads, rules, seq: record.offset }]
  })

/** `count`: for how many of the events, from the first, the state is complete. At least one, if any were given. */
export type Loaded = { readonly state: State; readonly count: number }

export const load = async (events: readonly PendingEvent[], cache: Cache, read: ReadDocuments): Promise<Loaded> => {
  const state = new State()
  const needs = events.map(({ reads }) => keysOf(Object.values(reads)))
  const first = await fill(state, needs, cache, read)
  const next = events.slice(0, first).map(({ event, reads, rules, seq }) => {
    const { data, hash } = event
    return keysOf(rules.thenReads({ data, reads, hash, seq }, state))
  })
  return { state, count: await fill(state, next, cache, read) }
}

const keysOf = (refs: readonly (DocumentRef | undefined)[]): DocumentKey[] => {
  const keys: DocumentKey[] = []
  for (const ref of refs) if (ref !== undefined) keys.push(ref.key)
  return keys
}

/** Returns for how many of the events, from the first, the state is complete. */
const fill = async (
  state: State,
  needs: readonly DocumentKey[][],
  cache: Cache,
  read: ReadDocuments,
): Promise<number> => {
  const missing = new Set<DocumentKey>()
  for (const key of needs.flat()) {
    if (state.has(key)) continue
    const cached = cache.get(key)
    if (cached === undefined) missing.add(key)
    else state.set(key, cached)
  }
  let waiting = [...missing]
  while (waiting.length > 0) {
    const asked = waiting.slice(0, DOCUMENTS_ASKED)
    const found = await read(asked)
    for (const [key, draft] of found) {
      state.set(key, draft)
      if (draft !== null) cache.keep(key, draft)
    }
    waiting = waiting.slice(found.size)
    // One answer did not hold all documents, so they are many. Decide the complete events first.
    const complete = found.size < asked.length ? completeOf(state, needs) : 0
    if (complete > 0) return complete
  }
  return needs.length
}

const completeOf = (state: State, needs: readonly DocumentKey[][]): number => {
  const first = needs.findIndex(keys => keys.some(key => !state.has(key)))
  return first === -1 ? needs.length : first
}
