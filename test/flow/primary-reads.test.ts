/** Reads from the primaries of a real Elasticsearch: they give what was stored, and change nothing. */
import { Client } from '@elastic/elasticsearch'
import { expect, inject, test } from 'vitest'
import { createElasticsearch, type Send } from '../../core/store/elasticsearch/client.ts'
import { getFromPrimaries, multiGet } from '../../core/store/elasticsearch/primary-reads.ts'
import { prepareCommon } from '../../core/store/generations/prepare.ts'
import { useStore } from '../support/api.ts'
import { newId, repRecorded } from '../support/events.ts'
import { expectNotReady, retried } from '../support/installation.ts'
import { addressIn, layoutOfFresh } from '../support/layout.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { call, createPrefix, indexNamed, indexWith } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

/** Elasticsearch would write these in another way if it parsed them. */
const SOURCE = '{"org_id":"org_a","body":{"b":[1.10,1e2,12345678901234567890],  "a":"\\u0041\u{1f4b6}"}}'

const useElasticsearch = async (t: Parameters<typeof useStore>[0]) => {
  const { prefix } = await useStore(t)
  const client = new Client({ node: inject('elasticsearchUrl') })
  t.onTestFinished(() => client.close())
  return { index: `${prefix}-g1-chains`, prefix, send: createElasticsearch(client).send }
}

/** A chain, in the layout of new generations. */
const addressOf = (index: string, id: string) => layoutOfFresh(index.replace('-g1-chains', '')).addressOf('chains', id)

const store = async (send: Send, _index: string): Promise<void> => {
  const { routing } = addressOf(_index, 'org_a:one')
  const operation = { index: { _index, _id: 'org_a:one', routing, version: 41, version_type: 'external' } }
  await send({ method: 'POST', path: '/_bulk', bulk: Buffer.from(`${JSON.stringify(operation)}\n${SOURCE}\n`) })
}

test('a read from the primaries gives each document as it was stored, byte for byte, and does not change it', async t => {
  const { index, send } = await useElasticsearch(t)
  await store(send, index)
  const docs = [addressOf(index, 'org_a:one'), addressOf(index, 'org_a:none')]
  const { routing } = addressOf(index, 'org_a:one')
  const update = JSON.stringify({ update: { _index: index, _id: 'org_a:one', routing } })
  const bulk = Buffer.from(`${update}\n{"doc":{}}\n`)
  const answer = await fetch(`${inject('elasticsearchUrl')}/_bulk?_source=true`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: bulk,
  })
  expect(await answer.text()).toContain(`"_source":${SOURCE}`)
  for (const read of [getFromPrimaries, multiGet]) {
    expect(await read(send, docs)).toMatchObject([
      { _id: 'org_a:one', found: true, _version: 41, _source: JSON.parse(SOURCE) },
      { _id: 'org_a:none', found: false },
    ])
  }
})

test('a read from the primaries gives only the fields that were asked for', async t => {
  const { index, send } = await useElasticsearch(t)
  await store(send, index)
  const docs = [
    { ...addressOf(index, 'org_a:one'), _source: ['org_id'] },
    { ...addressOf(index, 'org_a:one'), _source: false as const },
  ]
  expect(await getFromPrimaries(send, docs)).toEqual([
    { _id: 'org_a:one', found: true, _version: 41, _source: { org_id: 'org_a' } },
    { _id: 'org_a:one', found: true, _version: 41, _source: undefined },
  ])
})

test('a read from the primaries of a missing index stops, and creates no index', async t => {
  const { prefix, send } = await useElasticsearch(t)
  const _index = `${prefix}-g9-chains`
  await prepareCommon({ request: send, prefix, shards: 1 })
  await expect(getFromPrimaries(send, [addressIn(_index, 'a')])).rejects.toThrow(
    expect.objectContaining({ code: 'index_missing' }),
  )
  expect(await send({ method: 'GET', path: `/${_index}` })).toMatchObject({ status: 404 })
})

test('a read that a write block refuses is named on /readyz and counted for an alert, and works when the block ends', async t => {
  const topics = await createTopics(t, { partitions: 1 })
  const prefix = createPrefix(t)
  const publishRep = () => topics.publish([repRecorded({ org_id: newId('org') })])
  await publishRep()
  const first = await startProjector(t, { topics, prefix })
  await untilCaughtUp(first)
  await first.stop()
  // It does not know all keys of the partition, so it reads new ones too.
  const projector = await startProjector(t, { topics, prefix })
  await untilCaughtUp(projector)
  const block = (value: boolean) =>
    call('PUT', `/${indexWith(indexNamed(prefix, 'reps'))}/_settings`, { 'index.blocks.write': value })
  expect((await block(true)).status).toBe(200)
  await publishRep()
  await expectNotReady(projector, /answers 403, cluster_block_exception/, /^elasticsearch read$/)
  await eventually(async () => expect(await retried({ projector })).toBeGreaterThan(0))
  expect((await block(false)).status).toBe(200)
  await untilCaughtUp(projector)
})
