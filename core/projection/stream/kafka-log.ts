/** A topic in Kafka as the log of a stream: joins the group, reads, and watches that every partition has an owner. */

import { API_KEYS_GENERATION } from '../../../schemas/stored/documents.ts'
import {
  asUnanswered,
  consume,
  createLastRecordReader,
  type Ends,
  enterGroup,
  type GenerationBody,
  type KafkaAccess,
  type StreamLog,
} from '../../log/index.ts'
import { keepTrying } from '../../runtime/index.ts'
import { type Elasticsearch, installationOf, retryUntilAborted } from '../../store/index.ts'
import { ENDS_LATE_MS } from '../limits.ts'
import type { StreamMetrics } from '../progress/metrics.ts'
import { endsOf, identify } from './monitor-source.ts'
import { watchOwners } from './watch-owners.ts'

type Read = { readonly identity: GenerationBody; readonly groupId: string; readonly prefix: string }
type KafkaLogContext = KafkaAccess &
  Parameters<typeof enterGroup>[2] &
  Pick<Parameters<typeof watchOwners>[1], 'elapsed'> & {
    readonly elasticsearch: Elasticsearch
    readonly metrics: Pick<StreamMetrics, 'setUnowned'>
    /** KAFKA_MAX_MESSAGE_BYTES. */
    readonly messageBytes?: number
    readonly warn?: (details: Readonly<Record<string, string | number>>, message: string) => void
  }

const ENDS_UNKNOWN =
  'are not known with open transactions, or most brokers do not say who leads: no published time moves'

const KEYS_HIDDEN = 'hide events of API keys: a key that one of them revokes is still accepted'

export const kafkaLog = (read: Read, context: KafkaLogContext): StreamLog => {
  const { identity, groupId, prefix } = read
  const { topic, partitions, generation } = identity
  const { admin, health, metrics, retryOptions, elapsed, messageBytes, warn } = context
  const part = { generation, name: 'consumer' }
  const ofEnds = { generation, name: 'ends of partitions' }
  const ofOpen = { generation, name: 'open transactions' }
  const closed = new AbortController()
  const { signal } = closed
  const lastRecords = createLastRecordReader(identity, context.openLog, signal, milliseconds =>
    retryOptions.sleep(milliseconds, signal),
  )
  /** Without these ends no published time moves. They are asked for again at once, so it is told only if it lasts. */
  let unknownSince: number | undefined
  let stopping: AbortSignal | undefined
  const tellUnknown = (isKnown: boolean): void => {
    // Nobody takes back a reason that a stopped generation reports.
    if (signal.aborted || stopping?.aborted) return
    if (isKnown) unknownSince = undefined
    else unknownSince ??= elapsed()
    const isLate = unknownSince !== undefined && elapsed() - unknownSince > ENDS_LATE_MS
    health.set(ofEnds, isLate ? ENDS_UNKNOWN : undefined)
  }
  /** By partition: a log end that nobody could read up to, and since when. */
  let hidden: ReadonlyMap<number, { readonly end: number; readonly since: number }> = new Map()
  /** Of events, the age of the published time tells it. API keys have no published time. */
  const tellHidden = (ends: Ends): void => {
    if (generation !== API_KEYS_GENERATION || signal.aborted || stopping?.aborted) return
    const now = elapsed()
    hidden = new Map(
      ends.flatMap(({ partition, end, logEnd = end }) => {
        const before = hidden.get(partition)
        if (before !== undefined && Math.min(before.end, logEnd) > end) return [[partition, before]]
        return logEnd > end && Number.isFinite(logEnd) ? [[partition, { end: logEnd, since: now }]] : []
      }),
    )
    const isLate = [...hidden.values()].some(({ since }) => now - since > ENDS_LATE_MS)
    health.set(ofOpen, isLate ? KEYS_HIDDEN : undefined)
  }
  /** Others can change settings of the topic at any time. The start has told of those at the first look. */
  let warnedOf: readonly string[] | undefined
  const tellNew = (warnings: readonly string[]): void => {
    for (const warning of warnings) if (warnedOf?.includes(warning) === false) warn?.({ topic }, warning)
    warnedOf = warnings
  }
  const close = async (): Promise<void> => {
    closed.abort()
    await lastRecords.close()
  }
  return {
    identify: async () => tellNew(await identify(admin, identity, messageBytes)),
    verify: (known, onFurther) => lastRecords.verify(known, onFurther).catch(asUnanswered),
    ends: async () => {
      const numbers = Array.from({ length: partitions }, (_, partition) => partition)
      const [ends, logEnds] = await Promise.all([
        endsOf(admin, topic),
        lastRecords.logEnds(numbers).catch(() => undefined),
      ])
      tellUnknown(numbers.every(partition => logEnds?.has(partition)))
      const all = ends.map(of => ({ ...of, logEnd: logEnds?.get(of.partition) ?? Number.POSITIVE_INFINITY }))
      tellHidden(all)
      return all
    },
    open: async (given, signal) => {
      stopping = signal
      const { onReconnected: passOn, ...handlers } = given
      const onReconnected = (): void => {
        // There may be another cluster behind the same addresses by now.
        void lastRecords.close()
        passOn()
      }
      health.prepare(part, 'looking at the group')
      const installation = await retryUntilAborted('prepare', signal, context, () =>
        installationOf(prefix, context.elasticsearch),
      )
      // Stops if the group has members of another installation.
      await enterGroup(read, installation, context, signal)
      const kafka = context.kafkaWithConnectHook(onReconnected)
      health.prepare(part, 'joining the group')
      const sleep = (milliseconds: number) => retryOptions.sleep(milliseconds, signal).catch(() => undefined)
      const consumption = await keepTrying(
        () => consume(kafka, identity, groupId, installation, { ...handlers, sleep }).catch(asUnanswered),
        signal,
        { ...retryOptions, onTrouble: trouble => health.set(part, trouble?.message) },
      )
      const owners = { groupId, generation, topic, partitions, installation }
      const onUnowned = (count: number): void => metrics.setUnowned(topic, count)
      const stop = (): Promise<void> => close().then(consumption.stop)
      return {
        consumption: { ...consumption, stop },
        watch: watching => watchOwners(owners, { ...context, onUnowned }, watching),
      }
    },
  }
}
