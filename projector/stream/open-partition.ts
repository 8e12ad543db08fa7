/** Opens a partition: verifies its source, then reads its published position. */
import { type Ask, type Elasticsearch, keepTrying, type RetryOptions, type Send } from '../elasticsearch/client.ts'
import { kafkaRetryOptions, retryUntilAborted } from '../elasticsearch/retry.ts'
import { openPublishedPosition, type PublishedPosition } from '../flow/publish.ts'
import type { PublishedTimes } from '../flow/publish-times.ts'
import { assertSameIndices } from '../generations/indices.ts'
import type { Health } from '../health.ts'
import { assertNotTruncated, type GenerationBody } from '../kafka/source.ts'
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
  assertNotTruncated(topic, partition, published.current().position, ends)
  return published
}
