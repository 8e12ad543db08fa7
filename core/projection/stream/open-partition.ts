/** Opens a partition: verifies its source, then reads its published position, and what is written after it. */
import { type WrittenDocument, writtenId } from '../../../schemas/stored/documents.ts'
import {
  assertNotTruncated,
  type Ends,
  endOfPartition,
  type GenerationBody,
  kafkaRetryOptions,
  type StreamLog,
} from '../../log/index.ts'
import { keepTrying, type Retrying, StopError } from '../../runtime/index.ts'
import {
  type Ask,
  assertSameIndices,
  type DocumentAnswer,
  documentPath,
  type Elasticsearch,
  openPublishedPosition,
  type PublishedPosition,
  type PublishedTimes,
  retryUntilAborted,
  type Send,
} from '../../store/index.ts'

type OpenedStream = { readonly identity: GenerationBody; readonly controlIndex: string; readonly prefix: string }

type OpenSteps = Retrying & {
  readonly streamLog: Pick<StreamLog, 'ends'>
  readonly elasticsearch: Elasticsearch
  /** Verifies the source, in all partitions. */
  readonly verifySource: (signal: AbortSignal) => Promise<void>
  /** Sends the conditional writes of positions. */
  readonly replace: Send
  readonly times: PublishedTimes
  /** Milliseconds since 1970. */
  readonly now: () => number
}

export const openPartition = async (
  partition: number,
  { identity, controlIndex, prefix }: OpenedStream,
  steps: OpenSteps,
  signal: AbortSignal,
): Promise<PublishedPosition> => {
  const { streamLog, elasticsearch, verifySource, times } = steps
  const retried =
    (send: Send): Ask =>
    request =>
      retryUntilAborted('publish', signal, steps, () => send(request, signal))
  const [request, replace] = [retried(elasticsearch.send), retried(steps.replace)]
  const retryOptions = kafkaRetryOptions(steps)
  // First, so that an added partition stops with `source_changed`, not with `index_missing`.
  await verifySource(signal)
  await assertSameIndices(identity, { request, prefix })
  const { generation, topic } = identity
  const published = await openPublishedPosition(partition, { index: controlIndex, generation, request, replace, times })
  const { position } = published.current()
  const { written, writtenFrom } = await openWritten(partition, position, { identity, controlIndex, request })
  // After both: another owner may have written and published past ends that were read before.
  const ends = await keepTrying(streamLog.ends, signal, retryOptions)
  assertNotTruncated(topic, partition, position, ends)
  if (written !== null) assertHasWritten(topic, partition, written.offset, ends)
  return { ...published, written, writtenFrom }
}

/**
 * Opens the document of the last written record. Bulk requests may arrive in another order than they were sent, so its
 * version grows with the offset, from `writtenFrom`. All owners of a partition count from the same version, that of the
 * stored document: the first owner creates it, without a record. The stored one can also be one of an older program,
 * without a relation to the offset.
 */
export const openWritten = async (
  partition: number,
  position: number,
  stored: StoredWritten,
): Promise<OpenedWritten> => {
  for (;;) {
    const found = await readWritten(partition, position, stored)
    if (found !== undefined) return found
    // Elasticsearch gives it a version above that of a deleted one. If another owner was first, this changes nothing.
    const id = writtenId(stored.identity.generation, partition)
    const path = `/${stored.controlIndex}/_create/${encodeURIComponent(id)}`
    const { status, body } = await stored.request<Versioned>({ method: 'PUT', path, body: NOTHING_WRITTEN })
    if (status === 201) return { written: null, writtenFrom: body._version - NOTHING_WRITTEN.body.offset }
    if (status !== 409) throw new StopError('index_missing', stored.controlIndex)
  }
}

/** Returns the last record whose documents are written, if it is at or after the position; undefined: no document. */
export const readWritten = async (
  partition: number,
  position: number,
  { identity, controlIndex, request }: StoredWritten,
): Promise<OpenedWritten | undefined> => {
  const path = documentPath(controlIndex, writtenId(identity.generation, partition))
  const { status, body } = await request<DocumentAnswer<WrittenDocument> & Versioned>({ method: 'GET', path })
  if (status !== 200) return undefined
  const { body: written } = body._source
  const isAhead = written.offset >= Math.max(0, position)
  return { written: isAhead ? written : null, writtenFrom: body._version - written.offset }
}

type StoredWritten = Omit<OpenedStream, 'prefix'> & { readonly request: Ask }
type Versioned = { readonly _version: number }
type OpenedWritten = { readonly written: LastWritten | null; readonly writtenFrom: number }

/** The document before the first record. */
const NOTHING_WRITTEN: WrittenDocument = { kind: 'written', body: { offset: -1, sha256: '' } }

type LastWritten = WrittenDocument['body']

export const assertHasWritten = (topic: string, partition: number, offset: number, ends: Ends): void => {
  const end = endOfPartition(partition, ends)
  if (offset < end) return
  const what = 'the partition ends before records whose documents are written'
  throw new StopError('records_deleted', `${what}; to remove them: npx commission projection adopt`, {
    ...{ topic, partition, offset, end },
  })
}
