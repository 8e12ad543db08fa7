/** Opens a partition: verifies its source, then reads its published position, and what is written after it. */
import { type WrittenDocument, writtenId } from '../../schemas/stored/documents.ts'
import type { DocumentAnswer } from '../elasticsearch/answers.ts'
import {
  type Ask,
  documentPath,
  type Elasticsearch,
  keepTrying,
  type RetryOptions,
  type Send,
} from '../elasticsearch/client.ts'
import { kafkaRetryOptions, retryUntilAborted } from '../elasticsearch/retry.ts'
import { StopError } from '../failures.ts'
import { openPublishedPosition, type PublishedPosition } from '../flow/publish.ts'
import type { PublishedTimes } from '../flow/publish-times.ts'
import { assertSameIndices } from '../generations/indices.ts'
import type { Health } from '../health.ts'
import { assertNotTruncated, type Ends, endOfPartition, type GenerationBody } from '../kafka/source.ts'
import type { StreamLog } from './stream-log.ts'

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
  const written = await readWritten(partition, position, { identity, controlIndex, request })
  assertNotTruncated(topic, partition, position, ends)
  if (written !== null) assertHasWritten(topic, partition, written.offset, ends)
  return { ...published, written }
}

/** Returns the last record whose documents are written, if it is at or after the position. */
const readWritten = async (
  partition: number,
  position: number,
  { identity, controlIndex, request }: Omit<OpenedStream, 'prefix'> & { readonly request: Ask },
): Promise<WrittenDocument['body'] | null> => {
  const path = documentPath(controlIndex, writtenId(identity.generation, partition))
  const { status, body } = await request<DocumentAnswer<WrittenDocument>>({ method: 'GET', path })
  const written = status === 200 ? body._source.body : null
  return written !== null && written.offset >= position ? written : null
}

type LastWritten = WrittenDocument['body']

/**
 * Returns the later one of two written records. After a crash, documents of later records are there until they are
 * written again: an earlier record in their place would let a log that lost them go on.
 */
export const laterOf = (before: LastWritten | null | undefined, last: LastWritten): LastWritten =>
  before && before.offset > last.offset ? before : last

const assertHasWritten = (topic: string, partition: number, offset: number, ends: Ends): void => {
  const end = endOfPartition(partition, ends)
  if (offset < end) return
  const what = 'the partition ends before records whose documents are written'
  throw new StopError('records_deleted', `${what}; to remove them: npm run projection -- adopt`, {
    ...{ topic, partition, offset, end },
  })
}
