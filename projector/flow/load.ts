/**
 * In: the valid events of a batch. Out: the complete state that they touch: each document that a rule may ask for, or
 * that there is none.
 * Promises: every write of the batches before was decided before this one loads. Documents that are not yet
 * acknowledged come from the cache; those that the cache does not have come from a realtime multi-get. Where that is
 * much, the state is loaded for the first events only.
 * Can go wrong: Elasticsearch away (tried again), an index gone (stops).
 */

import type { ValidEvent } from '../event/validate.ts'
import { MGET_IDS } from '../limits.ts'
import type { Names } from '../rules/decision.ts'
import type { AnyRules } from '../rules/rules.ts'
import { type AnyNewDocument, type DocumentRef, type Key, State } from '../rules/state.ts'
import type { Cache } from './cache.ts'
import type { Assessed, PassedOver } from './project.ts'

/** Reads documents by key; null where there is none. Of the first keys as many as one answer holds, at least one. */
export type ReadDocuments = (keys: readonly Key[]) => Promise<Map<Key, AnyNewDocument | null>>

export type PlacedEvent = {
  readonly event: ValidEvent
  readonly names: Names
  readonly rules: AnyRules
  readonly seq: number
  readonly at: number
}

/** The valid events among the records of a batch. */
export const eventsOf = (assessed: readonly (Assessed | PassedOver)[]): PlacedEvent[] =>
  assessed.flatMap((item): PlacedEvent[] => {
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

const keysOf = (names: readonly (DocumentRef | undefined)[]): Key[] => {
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
