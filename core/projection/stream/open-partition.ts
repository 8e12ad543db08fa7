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
import { type Health, keepTrying, type RetryOptions, StopError } from '../../runtime/index.ts'
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

type OpenSteps = {
  readonly streamLog: Pick<StreamLog, 'ends'>
  readonly elasticsearch: Elasticsearch
  readonly retryOptions: Omit<RetryOptions, 'onTrouble'>
  readonly health: Health
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
  // After the position: another owner may have published past ends that were read before.
  const ends = await keepTrying(streamLog.ends, signal, retryOptions)
  const { position } = published.current()
  const { written, writtenFrom } = await readWritten(partition, position, steps.now, {
    identity,
    controlIndex,
    request,
  })
  assertNotTruncated(topic, partition, position, ends)
  if (written !== null) assertHasWritten(topic, partition, written.offset, ends)
  return { ...published, written, writtenFrom }
}

/**
 * Returns the last record whose documents are written, if it is at or after the position, and the first version of its
 * document. Bulk requests may arrive in another order than they were sent, so the version grows with the offset. It
 * goes on from the stored one, which can be one of an older program, without a relation to the offset.
 */
export const readWritten = async (
  partition: number,
  position: number,
  now: () => number,
  { identity, controlIndex, request }: Omit<OpenedStream, 'prefix'> & { readonly request: Ask },
): Promise<{ readonly written: LastWritten | null; readonly writtenFrom: number }> => {
  const path = documentPath(controlIndex, writtenId(identity.generation, partition))
  type Answer = DocumentAnswer<WrittenDocument> & { readonly _version: number }
  const { status, body } = await request<Answer>({ method: 'GET', path })
  // Above the version of a deleted document, which Elasticsearch remembers for a minute.
  if (status !== 200) return { written: null, writtenFrom: now() * VERSIONS_PER_MS }
  const { body: written } = body._source
  const writtenFrom = body._version - written.offset
  return { written: written.offset >= position ? written : null, writtenFrom }
}

/** More than the records of a partition in a millisecond. */
const VERSIONS_PER_MS = 1_000

type LastWritten = WrittenDocument['body']

/**
 * Returns the later one of two written records. After a crash, documents of later records are there until they are
 * written again: an earlier record in their place would let a log that lost them go on.
 */
export const laterOf = (before: LastWritten | null | undefined, last: LastWritten): LastWritten =>
  before && before.offset > last.offset ? before : last

export const assertHasWritten = (topic: string, partition: number, offset: number, ends: Ends): void => {
  const end = endOfPartition(partition, ends)
  if (offset < end) return
  const what = 'the partition ends before records whose documents are written'
  throw new StopError('records_deleted', `${what}; to remove them: npm run projection -- adopt`, {
    ...{ topic, partition, offset, end },
  })
}
