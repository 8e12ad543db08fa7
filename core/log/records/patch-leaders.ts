/**
 * Makes kafkajs read a partition from the leader that most brokers named last.
 *
 * kafkajs asks one broker who leads: after an error, or after five minutes. A leader that was replaced, and is cut off
 * from the other brokers, still answers clients. It reports no error, and it gets no new records. A consumer stays with
 * it, and a refresh may ask the same broker again.
 *
 * In: what most brokers answer about the leaders of a topic (`open-cluster.ts`), with the id of the topic.
 * Out: every client of the process goes to the leader of the highest epoch.
 * Can go wrong: nobody has told the leaders of the topic for LEADERS_TRUSTED_MS, brokers have no ids of topics, or the
 *   client does not know the broker → the leader that the client knows. A broker that is not cut off then refuses.
 */
import { loadKafkajs } from '../kafka/load-kafkajs.ts'
import { topicIdAmong } from '../kafka/patch-topic-ids.ts'
import { LEADERS_TRUSTED_MS } from '../limits.ts'

/** A partition in an answer to Metadata. Old brokers tell no epoch. */
export type LedPartition = { readonly partitionId: number; readonly leader: number; readonly leaderEpoch?: number }

type Cluster = {
  findTopicPartitionMetadata(topic: string): readonly LedPartition[]
  getNodeIds(): readonly string[]
}

/** By the id of the topic. */
const told = new Map<string, { readonly led: readonly LedPartition[]; readonly isTrusted: () => boolean }>()

/** @param elapsed milliseconds of a monotonic clock; the brokers were asked at `askedAt` */
export const tellLeaders = (led: readonly LedPartition[], askedAt: number, elapsed: () => number): void => {
  const id = topicIdAmong(led)
  if (id !== undefined) told.set(id, { led, isTrusted: () => elapsed() - askedAt <= LEADERS_TRUSTED_MS })
}

let patched = false

/** Must be called before the first connection. Idempotent. */
export const readFromPresentLeaders = (): void => {
  if (patched) return
  patched = true
  const { prototype } = loadKafkajs<{ readonly prototype: Cluster }>('cluster/index')
  const { findTopicPartitionMetadata } = prototype
  prototype.findTopicPartitionMetadata = function (topic) {
    const known = findTopicPartitionMetadata.call(this, topic)
    const present = told.get(topicIdAmong(known) ?? '')
    if (!present?.isTrusted()) return known
    const nodes = this.getNodeIds()
    const led = present.led.filter(({ leader }) => nodes.includes(String(leader)))
    return known.map(of => ({
      ...of,
      ...ofHighestEpoch([of, ...led.filter(one => one.partitionId === of.partitionId)]),
    }))
  }
}

/** Of several answers about one partition; the first one if brokers tell no epoch. */
export const ofHighestEpoch = (answers: readonly LedPartition[]): LedPartition | undefined =>
  answers.toSorted((a, b) => epochOf(b) - epochOf(a))[0]

const epochOf = ({ leaderEpoch = -1 }: LedPartition): number => leaderEpoch
