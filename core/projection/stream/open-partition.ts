/** Opens a partition: verifies its source, then reads its published position, and what is written after it. */
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
  type Elasticsearch,
  openPublishedPosition,
  openWritten,
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

export const assertHasWritten = (topic: string, partition: number, offset: number, ends: Ends): void => {
  const end = endOfPartition(partition, ends)
  if (offset < end) return
  const what = 'the partition ends before records whose documents are written'
  throw new StopError('records_deleted', `${what}; to remove them: npx commission projection adopt`, {
    ...{ topic, partition, offset, end },
  })
}
