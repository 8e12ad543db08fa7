/**
 * Whether a generation still has the indices that were recorded for it. A copy that replaced one, or a shard that lost
 * documents, can lack parked records that its positions have passed. In: the document of the generation, after what is
 * asked for was read of its indices. Out: whether that says something. An outcome counts for INTACT_REMEMBERED_MS.
 * Can go wrong: Elasticsearch does not answer, or does not tell the id of a shard of the parked records.
 */

import { StopError } from '../../core/runtime/index.ts'
import { createSameIndices, type Send } from '../../core/store/index.ts'
import type { GenerationDocument } from '../../schemas/stored/documents.ts'

/** @throws Unanswered */
export type IsIntact = (identity: GenerationDocument['body'], signal: AbortSignal) => Promise<boolean>

/** @param elapsed milliseconds of a monotonic clock */
export const createIsIntact = (send: Send, prefix: string, elapsed: () => number): IsIntact => {
  const { assertSame } = createSameIndices(elapsed)
  return async (identity, signal) => {
    try {
      await assertSame(identity, { request: asked => send(asked, signal), prefix })
      return true
    } catch (error) {
      if (error instanceof StopError) return false
      throw error
    }
  }
}
