/**
 * A node of Elasticsearch stands still until the cluster has removed it, and then continues. It answers multi-gets from
 * its old copies until it knows. Here it asks the master only once a minute, so that this takes long.
 */
import { Client } from '@elastic/elasticsearch'
import { beforeAll, describe, expect, test } from 'vitest'
import { Unanswered } from '../../core/runtime/keep-trying.ts'
import { createElasticsearch, type Send } from '../../core/store/elasticsearch/client.ts'
import { getFromPrimaries, multiGet } from '../../core/store/elasticsearch/primary-reads.ts'
import { type ElasticsearchNode, startElasticsearchNodes } from '../support/elasticsearch-nodes.ts'
import { addressIn } from '../support/layout.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { canRunSeveralNodes, START_SEVERAL_MS } from '../support/several-nodes.ts'

/** The master removes a silent node after some 30 s. Then writes to its shards continue. */
const REMOVED_WITHIN_MS = 120_000
const TEST_TIMEOUT_MS = 300_000
const INDICES = ['replica-lags', 'primary-lags'] as const
const READS = 30
/** An old primary waits for a master that confirms it, and does not answer. */
const ANSWER_WITHIN_MS = 2_000
const file = fileScope()
let lagging: ElasticsearchNode
let well: Send
let stale: Send

beforeAll(async () => {
  if (!canRunSeveralNodes) return
  const nodes = await startElasticsearchNodes(file, {
    three: { 'cluster.fault_detection.leader_check.interval': '60s' },
  })
  const [first, , third] = nodes
  if (first === undefined || third === undefined) throw new Error('nodes are missing')
  lagging = third
  well = sendTo(first)
  stale = sendTo(third)
}, START_SEVERAL_MS)

const sendTo = ({ service }: ElasticsearchNode): Send => {
  const client = new Client({ node: service.address })
  file.onTestFinished(() => client.close())
  return createElasticsearch(client).send
}

/** Creates an index with its primary on one node and its replica on another. */
const createIndex = async (index: string, primary: string, replica: string): Promise<void> => {
  const allocateTo = (...names: string[]) => ({ 'index.routing.allocation.include._name': names.join() })
  const settings = { number_of_shards: 1, number_of_replicas: 0, ...allocateTo(primary) }
  await well({ method: 'PUT', path: `/${index}`, body: { settings } })
  const more = { 'index.number_of_replicas': 1, ...allocateTo(primary, replica) }
  await well({ method: 'PUT', path: `/${index}/_settings`, body: more })
  const green = { wait_for_status: 'green', wait_for_no_relocating_shards: true, timeout: '60s' }
  const { body } = await well({ method: 'GET', path: `/_cluster/health/${index}`, query: green })
  expect(body).toMatchObject({ status: 'green', active_shards: 2 })
}

const write = (index: string, version: number) =>
  eventually(
    async () => {
      const query = { version, version_type: 'external_gte' }
      await well({ method: 'PUT', path: `/${index}/_doc/a`, query, body: { version } })
    },
    { within: REMOVED_WITHIN_MS },
  )

/** Returns the versions that reads over the node gave, and 0 for no answer. */
const versionsOf = async (read: typeof multiGet, index: string): Promise<Set<number>> => {
  const versions = Array.from({ length: READS }, async () => {
    const [found] = await read(stale, [addressIn(index, 'a')], AbortSignal.timeout(ANSWER_WITHIN_MS))
    return found?.found ? found._version : 0
  })
  const unanswered = (error: unknown): number => {
    expect(error).toBeInstanceOf(Unanswered)
    return 0
  }
  return new Set(await Promise.all(versions.map(version => version.catch(unanswered))))
}

describe.skipIf(!canRunSeveralNodes)('a node that returns after the cluster removed it', () => {
  test(
    'answers multi-gets from old copies, and reads from the primaries never',
    async () => {
      await createIndex('replica-lags', 'one', 'three')
      await createIndex('primary-lags', 'three', 'one')
      for (const index of INDICES) await write(index, 5)
      await lagging.service.freeze()
      // The first write waits until the node is removed. It also waits in the sockets of the node.
      for (const index of INDICES) await write(index, 6)
      for (const index of INDICES) await write(index, 7)
      await lagging.service.thaw()
      for (const index of INDICES) {
        const versions = await versionsOf(multiGet, index)
        expect(
          [...versions].some(version => version === 5 || version === 6),
          `${index}: ${[...versions]}`,
        ).toBe(true)
      }
      expect(await versionsOf(getFromPrimaries, 'replica-lags')).toEqual(new Set([7]))
      // The old primary asks the master, and learns that it was removed.
      expect(await versionsOf(getFromPrimaries, 'primary-lags')).toEqual(new Set([0]))
    },
    TEST_TIMEOUT_MS,
  )
})
