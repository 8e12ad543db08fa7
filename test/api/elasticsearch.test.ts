/** The answers of an Elasticsearch that is not what it says. */
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { createElasticsearch } from '../../api/elasticsearch.ts'

const answering = (text: string) => {
  const outcomes: string[] = []
  const elasticsearch = createElasticsearch({
    transport: async () => ({ statusCode: 200, body: Readable.from([Buffer.from(text)]), meta: { connection: {} } }),
    answered: () => undefined,
    otherNodes: 0,
    observe: (_, outcome) => outcomes.push(outcome),
    now: () => 0,
  })
  return { outcomes, indexIds: () => elasticsearch.indexIds(['a'], new AbortController().signal) }
}

test.each(['', '{"a":', '<html>', 'null', '7', '"a"', '[]', '{"a":null}', '{"a":{"settings":{"index":{"uuid":7}}}}'])(
  'ids of indices that come as %j are unavailable: nothing is known of the indices',
  async text => {
    const { indexIds } = answering(text)
    await expect(indexIds()).rejects.toMatchObject({
      code: 'unavailable',
      because: 'elasticsearch_malformed_index_ids',
    })
  },
)

test('ids of indices are read by the names of the indices; those that are not there have none', async () => {
  const { indexIds } = answering('{"a":{"settings":{"index":{"uuid":"x","history":{"uuid":"y"}}}}}')
  expect([...(await indexIds())]).toEqual([['a', 'x/y']])
  expect([...(await answering('{}').indexIds())]).toEqual([])
})

test('ids of indices are asked of another node where one does not know them, as often as there are others', async () => {
  const statuses = [503, 200]
  const elasticsearch = createElasticsearch({
    transport: async () => ({
      statusCode: statuses.shift() ?? 500,
      body: Readable.from([Buffer.from('{}')]),
      meta: { connection: {} },
    }),
    answered: () => undefined,
    otherNodes: 1,
    observe: () => undefined,
    now: () => 0,
  })
  const ask = () => elasticsearch.indexIds(['a'], new AbortController().signal)
  expect([...(await ask())]).toEqual([])
  await expect(ask()).rejects.toMatchObject({ because: 'elasticsearch_status_500' })
})
