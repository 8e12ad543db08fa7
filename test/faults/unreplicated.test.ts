/**
 * Three brokers, one of them killed, of a topic that needs three in sync: nobody can read a record that is acknowledged
 * by the leader alone. Its time is over all the same, so the projector must know of it.
 */
import { expect, test } from 'vitest'
import { kafkaConfig } from '../../core/log/kafka-config.ts'
import { openCluster } from '../../core/log/records/open-cluster.ts'
import { kafkaSettings, readSettings } from '../../core/runtime/settings.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { startBrokers } from '../support/several-brokers.ts'
import { canRunSeveralNodes, START_SEVERAL_MS } from '../support/several-nodes.ts'
import { createTopics } from '../support/topics.ts'

const file = fileScope()

test.skipIf(!canRunSeveralNodes)(
  'a record that too few replicas have is within the log end, behind the end that readers are told',
  async t => {
    const brokers = await startBrokers(file)
    const configuration = { 'min.insync.replicas': '3' }
    const { events, admin, ...topics } = await createTopics(t, { partitions: 1, kafka: brokers.address, configuration })
    await brokers.untilInSync({ events, admin, ...topics })
    const settings = readSettings(kafkaSettings, { KAFKA_BROKERS: brokers.address })
    const config = kafkaConfig(settings, 'test', () => Buffer.alloc(0), Date.now)
    const access = { config, logger: topics.kafka.logger() }
    const cluster = await openCluster(access, events, new AbortController().signal)
    t.onTestFinished(() => cluster.disconnect())
    const producer = topics.kafka.producer()
    await producer.connect()
    t.onTestFinished(() => producer.disconnect())
    const publish = (acks: number) => producer.send({ topic: events, acks, messages: [{ value: 'a record' }] })
    const readable = async () => (await admin.fetchTopicOffsets(events))[0]?.high

    await publish(-1)
    expect([await readable(), await cluster.logEnds([0])]).toEqual(['1', new Map([[0, 1]])])
    const leader = await brokers.leader({ events, admin, ...topics }, 0)
    const follower = brokers.nodes.find(node => node !== leader)
    await follower?.kill()
    await publish(1)
    expect([await readable(), await cluster.logEnds([0])]).toEqual(['1', new Map([[0, 2]])])

    await follower?.restart()
    await eventually(async () => expect(await readable()).toBe('2'), { within: START_SEVERAL_MS })
    expect(await cluster.logEnds([0])).toEqual(new Map([[0, 2]]))
  },
)
