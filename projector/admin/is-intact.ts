/**
 * Whether a generation still has the indices that were recorded for it. A copy that replaced one, or a shard that lost
 * documents, can lack parked records that its positions have passed. In: the document of the generation, after what is
 * asked for was read of its indices. Out: whether that says something. An outcome counts for INTACT_REMEMBERED_MS.
 * Can go wrong: Elasticsearch does not answer.
 */

import { StopError } from '../../core/runtime/index.ts'
import { assertSameIndices, generationIdOf, type Send } from '../../core/store/index.ts'
import type { GenerationDocument } from '../../schemas/stored/documents.ts'
import { INTACT_REMEMBERED_MS } from '../limits.ts'

/** @throws Unanswered */
export type IsIntact = (identity: GenerationDocument['body'], signal: AbortSignal) => Promise<boolean>

/** @param elapsed milliseconds of a monotonic clock */
export const createIsIntact = (send: Send, prefix: string, elapsed: () => number): IsIntact => {
  const known = new Map<string, { readonly id: string; readonly at: number; readonly isIntact: boolean }>()

  const check: IsIntact = async (identity, signal) => {
    try {
      await assertSameIndices(identity, { request: asked => send(asked, signal), prefix })
      return true
    } catch (error) {
      if (error instanceof StopError) return false
      throw error
    }
  }

  return async (identity, signal) => {
    const { generation } = identity
    const [id, at, before] = [generationIdOf(generation, identity.indices), elapsed(), known.get(generation)]
    if (before?.id === id && at - before.at < INTACT_REMEMBERED_MS) return before.isIntact
    const isIntact = await check(identity, signal)
    known.set(generation, { id, at, isIntact })
    return isIntact
  }
}
