/**
 * In: a generation that is read. Out: nothing, if its indices are those that the projector wrote to, and have no field
 *   that others added and that searches would read in place of ours.
 * Promises: a restored snapshot has other ids than recorded. Nothing of it is served before a projector has adopted it:
 *   no revoked key, no position. The ids are checked again while requests are served, at most INDICES_CACHE_TIME
 *   apart. If all indices of the prefix were deleted and made anew, a generation has the name of an earlier one: what
 *   this process remembers of that one is used no more.
 * Can go wrong: the ids differ, were never recorded or cannot be read, an index is missing or no role of the user
 *   shows it, a projector found that a shard lost documents, or a field was added → `unavailable`, never 401 or a short
 *   list.
 */

import {
  API_KEYS_GENERATION,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  listKinds,
} from '../../schemas/stored/documents.ts'
import { controlAddress, type GenerationLayout, type LayoutSource, layoutOf } from '../../schemas/stored/layout.ts'
import { lostAmong, missingAmong, type ShardIds } from '../../schemas/stored/shard-ids.ts'
import { Refusal, type Schedule, unavailable, waitOrAbort, withTimeLimit } from '../runtime/index.ts'
import {
  type DocumentName,
  type Generation,
  generationIdOf,
  type IndexIds,
  type MultiGet,
  type PositionReader,
  type Search,
  sliceMultiGet,
  smallDocument,
} from '../store/index.ts'
import type { ApiKeyCache } from './api-key-cache.ts'
import { INDICES_CACHE_TIME, INDICES_CHECK_INTERVAL, INDICES_CHECK_TRIES, READY_TIME_MAX } from './limits.ts'
import type { Proofs } from './pages/agreed.ts'

/** `id` is of the generation that was read; without it, the generation may be any of this name. */
export type IndexChecks = {
  /** Returns undefined if the last check is recent: a request waits only after a pause. */
  readonly check: (generation: string, id?: string) => Promise<void> | undefined
  /** Makes a check that begins now. @param withShards also compares the ids of shards, before a projector does */
  readonly checkNow: (generation: string, id?: string, withShards?: boolean) => Promise<void>
  /** Caches keep only what searches before and after a check found. Without it, nothing is checked. */
  readonly proofs?: Proofs
}

/** `at`: milliseconds of the clock when the last check that proved the indices began. `id`: what it found. */
type LastCheck = { at: number; id: string; running: Promise<void> | undefined }

/** Creates the checks of the index ids of a generation. @param elapsed milliseconds of a monotonic clock */
export const createIndexChecks = (
  prefix: string,
  multiGet: MultiGet,
  indexIds: IndexIds,
  elapsed: () => number,
  later: Schedule,
): IndexChecks => {
  const lastChecks = new Map<string, LastCheck>()
  let begun = 0
  let passed: ReadonlyMap<string, number> = new Map()

  const compare = async (generation: string, withShards: boolean, signal: AbortSignal): Promise<string> => {
    const name: DocumentName = { ...controlAddress(prefix, generationId(generation)), form: 'small' }
    // Only the document says which layout it is. The answer leaves out indices that are missing, or not shown.
    const possible = layouts.flatMap(layout => indicesReadOf(prefix, generation, layout))
    const [answer, ids] = await Promise.all([
      multiGet([name], signal),
      indexIds([...new Set(possible)], signal, withShards),
    ])
    const [document] = sliceMultiGet(answer, [name])
    const body = document && smallDocument<GenerationDocument>(document).body
    if (body === undefined) throw unavailable('no_generation')
    if (body.indices === undefined) throw unavailable('indices_not_recorded')
    if (body.lost !== undefined) throw unavailable('shard_lost')
    const read = indicesReadOf(prefix, generation, body.layout)
    const others = read.filter(index => body.indices?.[index] !== ids.get(index))
    if (others.some(index => ids.has(index))) throw unavailable('indices_replaced')
    if (others.length > 0) throw unavailable('index_not_shown')
    if (withShards) assertShards(body.shards, Object.fromEntries(ids), read)
    return generationIdOf(generation, body.indices)
  }

  /** Tries again if a node does not answer, because another node may be asked. */
  const checkWithRetries = (generation: string, withShards = false): Promise<string> =>
    withTimeLimit(READY_TIME_MAX, later, async signal => {
      const number = ++begun
      for (let tries = INDICES_CHECK_TRIES; ; tries--) {
        try {
          const id = await compare(generation, withShards, signal)
          passed = new Map([...passed, [generation, Math.max(number, passed.get(generation) ?? 0)]])
          return id
        } catch (error) {
          if (tries === 1 || isMismatch(error) || signal.aborted) throw error
        }
      }
    })

  const checkShared = (generation: string, last: LastCheck): Promise<void> => {
    const begunAt = elapsed()
    last.running ??= checkWithRetries(generation)
      .then(
        id => {
          last.at = begunAt
          last.id = id
        },
        (error: unknown) => {
          // A check that failed to run proves nothing: the last result stays valid until INDICES_CACHE_TIME is over.
          if (isMismatch(error)) last.at = Number.NEGATIVE_INFINITY
          throw error
        },
      )
      .finally(() => {
        last.running = undefined
      })
    return last.running
  }

  const anew = (): Refusal => unavailable('generation_made_anew')
  const requireSame = (id: string | undefined, found: string): void => {
    if (id !== undefined && id !== found) throw anew()
  }

  return {
    check: (generation, id) => {
      const last = lastChecks.get(generation) ?? { at: Number.NEGATIVE_INFINITY, id: '', running: undefined }
      lastChecks.set(generation, last)
      const age = elapsed() - last.at
      const running = age < INDICES_CHECK_INTERVAL ? undefined : checkShared(generation, last)
      if (running !== undefined && age >= INDICES_CACHE_TIME)
        return id === undefined ? running : running.then(() => requireSame(id, last.id))
      // No request waits for this check; the next one uses its result.
      running?.catch(() => undefined)
      return id === undefined || id === last.id ? undefined : Promise.reject(anew())
    },
    checkNow: async (generation, id, withShards) => requireSame(id, await checkWithRetries(generation, withShards)),
    proofs: { begun: () => begun, passed: () => passed },
  }
}

/**
 * Each recorded shard must be found: Elasticsearch leaves out the shards of a node that does not answer, without an
 * error. Projectors that may not ask for ids record none, and then nothing is compared.
 */
const assertShards = (recorded: ShardIds | undefined, found: ShardIds, indices: readonly string[]): void => {
  const isRead = (index: string): boolean => indices.includes(index)
  if (lostAmong(recorded, found, isRead) !== undefined) throw unavailable('shard_lost')
  if (missingAmong(recorded, found, isRead).length > 0) throw unavailable('shards_unknown')
}

/** Whether the check was made and the indices are not those that were recorded. */
const isMismatch = (error: unknown): boolean => error instanceof Refusal && error.retry === 'no'

/** Whether a read fails this way after its generation was made anew with other partitions, indices or positions. */
const isOfAnother = (error: unknown): boolean =>
  error instanceof Refusal &&
  ['position_went_back', 'no_position', 'elasticsearch_partial'].includes(error.reason ?? '')

/** Returns the indices that answers are read from. */
const indicesReadOf = (prefix: string, generation: string, layout: LayoutSource['layout']): string[] => {
  const found = layoutOf(prefix, { generation, topic: '', ...(layout && { layout }) })
  const read = generation === API_KEYS_GENERATION ? [found.indexOf('api-keys')] : indicesOfRecords(found)
  return [controlIndexOf(prefix), ...read]
}

const indicesOfRecords = ({ indexOf, hasBalances }: GenerationLayout): string[] => {
  const read = [...listKinds, 'statements', ...(hasBalances ? (['balances'] as const) : [])] as const
  return [...new Set(read.map(indexOf))]
}

/** Layout 3 has the indices of layout 2. */
const layouts = [undefined, 2] as const

/** Waits for a check until the request ends. The check continues, because other requests share it. */
const waitFor = async (running: Promise<void> | undefined, signal: AbortSignal): Promise<void> => {
  if (running !== undefined) await waitOrAbort(running, signal)
}

/** Returns the same keys, served only while their index is the one that they were written to. */
export const keysChecked = (keys: ApiKeyCache, check: IndexChecks['check']): ApiKeyCache => {
  /** Forgets what was read of a refused index: once that index is adopted, it would be served. */
  const checkKeys = (): Promise<void> | undefined =>
    check(API_KEYS_GENERATION)?.catch((error: unknown) => {
      keys.forget()
      throw error
    })

  return {
    ...keys,
    remembered: key => {
      const running = checkKeys()
      if (running === undefined) return keys.remembered(key)
      // The key is looked up instead, and its look-up waits for this check.
      running.catch(() => undefined)
      return undefined
    },
    lookup: async (key, signal) => {
      const holder = await keys.lookup(key, signal)
      await waitFor(checkKeys(), signal)
      return holder
    },
    checkServed: async signal => {
      await keys.checkServed(signal).catch(async (error: unknown) => {
        // If their index is missing or not shown, the check says so.
        await waitFor(checkKeys(), signal)
        throw error
      })
      await waitFor(checkKeys(), signal)
    },
  }
}

/** Returns the same positions, served only while the indices of their generation are those that were recorded. */
export const positionsChecked = (
  { readAt, oldestTime, readServedPositions, latest, liveBefore, forget }: PositionReader,
  check: IndexChecks['check'],
): PositionReader => {
  const checkRead = async (generation: Generation, signal: AbortSignal): Promise<void> => {
    try {
      await waitFor(check(generation.name, generation.id), signal)
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'generation_made_anew') forget(generation)
      throw error
    }
  }
  const checked = async <Read>(read: Promise<Read>, generationIn: (read: Read) => Generation, signal: AbortSignal) => {
    const before = liveBefore()
    try {
      const found = await read
      await checkRead(generationIn(found), signal)
      return found
    } catch (error) {
      if (before !== undefined && isOfAnother(error)) await checkRead(before, signal).catch(() => undefined)
      throw error
    }
  }
  return {
    readAt: (scope, documents, freshness) =>
      checked(readAt(scope, documents, freshness), ({ position }) => position.generation, scope.signal),
    oldestTime,
    readServedPositions: signal => checked(readServedPositions(signal), ({ generation }) => generation, signal),
    latest,
    liveBefore,
    forget,
  }
}

const NOTHING_SEARCHED = '{"size":0,"track_total_hits":false,"query":{"match_none":{}}}'

/**
 * Returns the same positions, for a readiness check: only if the user may search each index of their generation. Asked
 * once in INDICES_CHECK_INTERVAL, since each request finds it out for itself. Another failure than 403 says nothing
 * about the user: perhaps a shard is away, and the others answer.
 */
export const searchesPermitted = (
  readServedPositions: PositionReader['readServedPositions'],
  search: Search,
  elapsed: () => number,
): PositionReader['readServedPositions'] => {
  let last = { id: '', at: Number.NEGATIVE_INFINITY }
  return async signal => {
    const served = await readServedPositions(signal)
    const { id, layout } = served.generation
    const at = elapsed()
    if (id === last.id && at - last.at < INDICES_CHECK_INTERVAL) return served
    const index = indicesOfRecords(layout).join()
    await search({ index, routing: undefined }, NOTHING_SEARCHED, signal).catch((error: unknown) => {
      if (error instanceof Refusal && error.reason === 'elasticsearch_status_403') throw error
    })
    last = { id, at }
    return served
  }
}
