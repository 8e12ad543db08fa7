/**
 * In: a generation that is read. Out: nothing, if its indices are those that the projector wrote to.
 * Promises: a restored snapshot has other ids than recorded. Nothing of it is served before a projector has adopted it:
 *   no revoked key, no position. The ids are checked again while requests are served, at most INDICES_BELIEVED_FOR
 *   apart.
 * Can go wrong: the ids differ, were never recorded or cannot be read → `unavailable`, never 401 or a short list.
 */

import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  indexOf,
  listKinds,
} from '../../schemas/stored/documents.ts'
import type { IndexIds, MultiGet } from '../elasticsearch/client.ts'
import { type DocumentName, sliceMultiGet, smallDocument } from '../elasticsearch/slice-documents.ts'
import { Refusal, unavailable } from '../failures.ts'
import { INDICES_CACHE_TIME, INDICES_LOOK_INTERVAL, INDICES_LOOK_TRIES, READY_TIME_MAX } from '../limits.ts'
import { type Schedule, withTimeLimit } from '../time-limits.ts'
import type { ApiKeyCache } from './api-keys.ts'
import type { PositionReader } from './position.ts'

/** Returns undefined if the last check is recent: a request waits only after a pause. */
export type CheckIndices = (generation: string) => Promise<void> | undefined

type Seen = { at: number; looking: Promise<void> | undefined }

export const createCheckIndices = (
  prefix: string,
  multiGet: MultiGet,
  indexIds: IndexIds,
  now: () => number,
  later: Schedule,
): CheckIndices => {
  const seen = new Map<string, Seen>()

  const compare = async (generation: string, signal: AbortSignal): Promise<void> => {
    const name: DocumentName = { index: controlIndexOf(prefix), id: generationId(generation), form: 'small' }
    const read = indicesReadOf(prefix, generation)
    const [answer, ids] = await Promise.all([multiGet([name], signal), indexIds(read, signal)])
    const [document] = sliceMultiGet(answer, [name])
    const body = document && (smallDocument(document) as Partial<GenerationDocument>).body
    if (body === undefined) throw unavailable('no_generation')
    if (body.indices === undefined) throw unavailable('indices_not_recorded')
    for (const index of read) if (body.indices[index] !== ids.get(index)) throw unavailable('indices_replaced')
  }

  /** Tries again if a node does not answer, because another node may be asked. */
  const look = (generation: string): Promise<void> =>
    withTimeLimit(READY_TIME_MAX, later, async signal => {
      for (let tries = INDICES_LOOK_TRIES; ; tries--) {
        try {
          return await compare(generation, signal)
        } catch (error) {
          if (tries === 1 || isOfIndices(error) || signal.aborted) throw error
        }
      }
    })

  const lookOnce = (generation: string, known: Seen): Promise<void> => {
    const begun = now()
    known.looking ??= look(generation)
      .then(
        () => {
          known.at = begun
        },
        (error: unknown) => {
          // A check that failed to run proves nothing: the last result stays valid until INDICES_BELIEVED_FOR is over.
          if (isOfIndices(error)) known.at = Number.NEGATIVE_INFINITY
          throw error
        },
      )
      .finally(() => {
        known.looking = undefined
      })
    return known.looking
  }

  return generation => {
    const known = seen.get(generation) ?? { at: Number.NEGATIVE_INFINITY, looking: undefined }
    seen.set(generation, known)
    const age = now() - known.at
    if (age < INDICES_LOOK_INTERVAL) return undefined
    const looking = lookOnce(generation, known)
    if (age >= INDICES_CACHE_TIME) return looking
    // No request waits for this check; the next one uses its result.
    looking.catch(() => undefined)
    return undefined
  }
}

const ofIndices: ReadonlySet<string | undefined> = new Set([
  'no_generation',
  'indices_not_recorded',
  'indices_replaced',
])

/** Whether the check was made and the indices are not those that were recorded. */
const isOfIndices = (error: unknown): boolean => error instanceof Refusal && ofIndices.has(error.because)

/** Returns the indices that answers are read from. */
const indicesReadOf = (prefix: string, generation: string): string[] => [
  controlIndexOf(prefix),
  ...(generation === API_KEYS_GENERATION
    ? [apiKeysIndexOf(prefix)]
    : [...listKinds, 'statements' as const].map(kind => indexOf(prefix, generation, kind))),
]

/** Returns the same keys, served only while their index is the one that they were written to. */
export const keysChecked = (keys: ApiKeyCache, check: CheckIndices): ApiKeyCache => ({
  ...keys,
  remembered: key => {
    const looking = check(API_KEYS_GENERATION)
    if (looking === undefined) return keys.remembered(key)
    // The key is looked up instead, and its look-up waits for this check.
    looking.catch(() => undefined)
    return undefined
  },
  lookUp: async (key, signal) => {
    const holder = await keys.lookUp(key, signal)
    await check(API_KEYS_GENERATION)
    return holder
  },
  look: async signal => {
    await keys.look(signal)
    await check(API_KEYS_GENERATION)
  },
})

/** Returns the same positions, served only while the indices of their generation are those that were recorded. */
export const positionsChecked = (
  { readAt, oldestTime, lookAtPositions }: PositionReader,
  check: CheckIndices,
): PositionReader => ({
  readAt: async (org, documents, freshness, signal) => {
    const read = await readAt(org, documents, freshness, signal)
    await check(read.position.generation.name)
    return read
  },
  oldestTime,
  lookAtPositions: async signal => {
    const positions = await lookAtPositions(signal)
    await check(positions.generation.name)
    return positions
  },
})
