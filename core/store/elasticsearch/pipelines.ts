/**
 * Ingest pipelines of others: somebody can set one on an index at any time. In: a write, and the answer about its
 * document. Out: the default pipeline of the index does not run.
 * Can go wrong: `index_unsuitable`, if the final pipeline of the index, which always runs, dropped a document, or if a
 *   pipeline is missing. In a bulk request also if it only ran: it may have changed a document. The answer to a write
 *   of one document does not tell that.
 */
import { StopError } from '../../runtime/index.ts'
import { type BulkItem, reasonOf } from './answers.ts'

/** The query of a write of one document. Its answer only tells that a pipeline dropped the document. */
export const WITHOUT_PIPELINE = { pipeline: '_none' }
/** The query of a bulk request: each item of the answer also tells which pipelines it went through. */
export const WITHOUT_PIPELINES = { ...WITHOUT_PIPELINE, list_executed_pipelines: true }

/** @param item the answer to a document that was written without pipelines. @throws StopError if one ran */
export const assertNoPipeline = (index: string, { result, executed_pipelines: ran }: BulkItem['index'] = {}): void => {
  // Elasticsearch answers 200 to a document that a pipeline dropped. Nothing else of ours is answered `noop`.
  if (result === 'noop') throw throughPipeline(index, 'dropped a document')
  if (Array.isArray(ran) && ran.length > 0) throw throughPipeline(index, `ran: ${ran.join(', ')}`)
}

const throughPipeline = (index: string, what: string): StopError => {
  const advice = 'remove index.final_pipeline, then compare with a rebuild (`npx commission projection verify`)'
  return new StopError('index_unsuitable', `${index}: an ingest pipeline ${what}; ${advice}`, { index })
}

/**
 * @param answer with an error. This form of a reason quotes no document
 * @throws StopError if the index names an ingest pipeline that does not exist: it takes no document
 */
export const assertPipelineExists = (index: string, answer: unknown): void => {
  const pipeline = /^pipeline with id \[([^\]\s"]{1,255})\] does not exist$/.exec(reasonOf(answer))?.[1]
  if (pipeline === undefined) return
  const what = `the ingest pipeline ${pipeline} does not exist; remove index.default_pipeline and index.final_pipeline`
  throw new StopError('index_unsuitable', `${index}: ${what}`, { index })
}
