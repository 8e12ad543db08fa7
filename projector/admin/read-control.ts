/** Reads documents of the control index, as last written. */

import { StopError, Unanswered } from '../../core/runtime/index.ts'
import { isServed, multiGet, type Send } from '../../core/store/index.ts'
import type { Stream } from '../../schemas/events.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../../schemas/stored/documents.ts'
import { controlAddress } from '../../schemas/stored/layout.ts'
import { withPlainNames } from '../../schemas/stored/live-names.ts'

/** Returns documents by id. @throws StopError `index_missing` for one that does not exist; Unanswered */
export const getControlDocuments = async <Document>(
  send: Send,
  prefix: string,
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<Map<string, Document>> => {
  const documents = new Map<string, Document>()
  if (ids.length === 0) return documents
  for (const document of await multiGet<Document>(
    send,
    ids.map(id => controlAddress(prefix, id)),
    signal,
  )) {
    if (!document.found) throw missing(prefix, document._id)
    documents.set(document._id, document._source)
  }
  return documents
}

/** Returns one document. @throws as `getControlDocuments` */
export const getControlDocument = async <Document>(
  send: Send,
  prefix: string,
  id: string,
  signal: AbortSignal,
): Promise<Document> => {
  const document = (await getControlDocuments<Document>(send, prefix, [id], signal)).get(id)
  if (document === undefined) throw new Error('a multi-get answers without its only document')
  return document
}

/** A partition that a receipt is asked for. */
type AskedPartition = { readonly stream: Stream; readonly topic: string; readonly partition: number }

/** There is no receipt: the topic that was asked for is not `live`, the topic of the live generation. */
export type OtherTopic = { readonly state: 'other_topic'; readonly live: string }
/** Why there is no receipt. `not_served`: documents may be missing, so the API refuses readers, too. */
export type NoReceipt = OtherTopic | { readonly state: 'not_served' }
export const NOT_SERVED: NoReceipt = { state: 'not_served' }

/** Returns the generation that has the records of a stream while `live` is the live one. */
export const generationOfStream = (stream: Stream, live: string): string =>
  stream === 'events' ? live : API_KEYS_GENERATION

/**
 * How far a partition is decided. Until it `isServed`, the API refuses readers. So nothing of it is published; what is
 * parked before the position is known.
 */
type LivePosition = { readonly position: number; readonly isServed: boolean }

type LivePositions = {
  readonly live: GenerationDocument['body']
  /** Returns the published position of one of the partitions. @throws StopError `index_missing` if it does not exist */
  readonly positionOf: (one: AskedPartition) => LivePosition | NoReceipt
  /** Returns the generation that has the records of a stream that was asked for. @throws as `positionOf` */
  readonly identityOf: (stream: Stream) => GenerationDocument['body']
}

/**
 * Reads the live generation and its positions of these partitions. The live document comes again after them in the same
 * multi-get: one shard has them all, and reads them in order. A swap between the two requests is noticed so, and
 * everything is read again: after it, the other generation decides records that readers never see.
 * @throws StopError `index_missing` for a document that does not exist; Unanswered
 */
export const getLivePositions = async (
  send: Send,
  prefix: string,
  asked: readonly AskedPartition[],
  signal: AbortSignal,
): Promise<LivePositions> => {
  for (;;) {
    const { generation } = withPlainNames((await getControlDocument<LiveDocument>(send, prefix, LIVE_ID, signal)).body)
    const idOf = ({ stream, partition }: AskedPartition): string =>
      positionId(generationOfStream(stream, generation), partition)
    const identityId = (stream: Stream): string => generationId(generationOfStream(stream, generation))
    const identities = ['events', ...asked.map(({ stream }) => stream)] as const
    const ids = [...new Set([...asked.map(idOf), ...identities.map(identityId)]), LIVE_ID]
    const addresses = ids.map(id => controlAddress(prefix, id))
    const found = new Map<string, ControlDocument>()
    for (const document of await multiGet<ControlDocument>(send, addresses, signal))
      if (document.found) found.set(document._id, document._source)
    const now = found.get(LIVE_ID)
    // An answer that is too long has the first documents only.
    if (now?.kind !== 'live') throw new Unanswered('elasticsearch', 0)
    if (withPlainNames(now.body).generation !== generation) continue
    const identityOf = (stream: Stream): GenerationDocument['body'] => {
      const identity = found.get(identityId(stream))
      if (identity?.kind !== 'generation') throw missing(prefix, identityId(stream))
      return identity.body
    }
    const live = identityOf('events')
    const { topic } = live
    const positionOf = (one: AskedPartition): LivePosition | NoReceipt => {
      // While a topic grows, and afterwards, this process may project a generation that is not live: the offsets and
      // partitions of its topic are others.
      if (one.stream === 'events' && one.topic !== topic) return { state: 'other_topic', live: topic }
      const position = found.get(idOf(one))
      if (position?.kind !== 'position') throw missing(prefix, idOf(one))
      const { body } = position
      const mayLack = identityOf(one.stream).lost !== undefined || body.removing
      return mayLack ? NOT_SERVED : { position: body.position, isServed: isServed(body) }
    }
    return { live, positionOf, identityOf }
  }
}
type ControlDocument = LiveDocument | GenerationDocument | PositionDocument

const missing = (prefix: string, id: string): StopError =>
  new StopError('index_missing', `${id} in ${controlIndexOf(prefix)}`)
