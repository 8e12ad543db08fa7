/** Commands whose Kafka is not the source of the projection: any lag that they could show would be wrong. */
import { expect, inject, test } from 'vitest'
import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { controlIndexOf, generationId } from '../../schemas/stored/documents.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { createStore } from '../support/documents.ts'
import { createTopics } from '../support/topics.ts'

test('the lag of a projection of another cluster is not shown', async t => {
  const topics = await createTopics(t, { partitions: 2 })
  const store = await createStore(inject('elasticsearchUrl'), { partitions: 2 })
  t.onTestFinished(async () => void (await store.remove()))
  const status = () => runCommand(['projection', 'status', '--json'], commandSettings(topics, store.prefix))
  const { clusterId } = await topics.admin.describeCluster()
  const madeFrom = async (cluster_id: string): Promise<void> => {
    const body = { generation: 'g1', topic: topics.events, cluster_id, partitions: 2, rules_version: RULES_VERSION }
    store.put(controlIndexOf(store.prefix), generationId('g1'), JSON.stringify({ kind: 'generation', body }))
    await store.flush()
  }
  await madeFrom(clusterId)
  expect(await status()).toMatchObject({ code: 0 })
  await madeFrom('another')
  const ran = await status()
  expect([ran.code, ran.out.length, ran.said]).toEqual([
    1,
    0,
    expect.stringContaining('not the one this projection was made from'),
  ])
})
