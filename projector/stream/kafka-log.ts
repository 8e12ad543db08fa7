/** A topic in Kafka as the log of a stream: joins the group, reads, and watches that every partition has an owner. */
import type { Kafka } from 'kafkajs'
import { keepTrying } from '../elasticsearch/client.ts'
import { asUnavailable } from '../elasticsearch/retry.ts'
import type { GenerationBody, SourceAdmin } from '../kafka/source.ts'
import { createLastRecordReader, type OpenLog } from '../log/last-records.ts'
import { consume } from './consume.ts'
import { enterGroup } from './group.ts'
import type { StreamMetrics } from './metrics.ts'
import { endsOf, identify } from './monitor-source.ts'
import type { StreamLog } from './stream-log.ts'
import { watchOwners } from './watch-owners.ts'

export type KafkaAccess = {
  /** Creates a client that calls back for each new connection, before its first use. */
  readonly kafkaWithConnectHook: (onConnected: () => void) => Kafka
  readonly admin: SourceAdmin
  /** Opens connections for reads without a group. */
  readonly openLog: OpenLog
}

type Read = { readonly identity: GenerationBody; readonly groupId: string; readonly prefix: string }
type KafkaLogContext = KafkaAccess &
  Parameters<typeof enterGroup>[1] &
  Pick<Parameters<typeof watchOwners>[1], 'elapsed'> & { readonly metrics: Pick<StreamMetrics, 'setUnowned'> }

export const kafkaLog = (read: Read, context: KafkaLogContext): StreamLog => {
  const { identity, groupId } = read
  const { topic, partitions, generation } = identity
  const { admin, health, metrics, retryOptions } = context
  const part = { generation, name: 'consumer' }
  const closed = new AbortController()
  const lastRecords = createLastRecordReader(identity, context.openLog, closed.signal)
  const close = async (): Promise<void> => {
    closed.abort()
    await lastRecords.close()
  }
  return {
    identify: () => identify(admin, identity),
    verify: known => lastRecords.verify(known).catch(asUnavailable),
    ends: () => endsOf(admin, topic),
    open: async (given, signal) => {
      const { onReconnected: passOn, ...handlers } = given
      const onReconnected = (): void => {
        // There may be another cluster behind the same addresses by now.
        void lastRecords.close()
        passOn()
      }
      health.prepare(part, 'looking at the group')
      const installation = await enterGroup(read, context, signal)
      const kafka = context.kafkaWithConnectHook(onReconnected)
      health.prepare(part, 'joining the group')
      const sleep = (milliseconds: number) => retryOptions.sleep(milliseconds, signal).catch(() => undefined)
      const consumption = await keepTrying(
        () => consume(kafka, identity, groupId, installation, { ...handlers, sleep }).catch(asUnavailable),
        signal,
        { ...retryOptions, onTrouble: trouble => health.set(part, trouble && 'Kafka does not answer') },
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
