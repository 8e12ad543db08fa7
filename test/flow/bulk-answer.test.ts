/**
 * The real Elasticsearch answers bulk requests in just the form that is read off the text: any other would be read too,
 * at ten times the cost.
 */
import { Client } from '@elastic/elasticsearch'
import { expect, inject, test } from 'vitest'
import { elasticsearchConfig } from '../../projector/client-options.ts'
import { BulkAnswer } from '../../projector/elasticsearch/bulk-responses.ts'
import { createElasticsearch } from '../../projector/elasticsearch/client.ts'
import { pack, render } from '../../projector/flow/serialize.ts'
import { write } from '../../projector/flow/write.ts'
import { changeOf, refOf } from '../../projector/rules/state.ts'
import { useStore } from '../support/api.ts'

test('a bulk request of which all is written, created and replaced, is read off the text of its answer', async t => {
  const { prefix } = await useStore(t)
  const settings = { ELASTICSEARCH_URL: [inject('elasticsearchUrl')], ELASTICSEARCH_INDEX_PREFIX: prefix }
  const client = new Client(
    elasticsearchConfig(settings as Parameters<typeof elasticsearchConfig>[0], () => Buffer.of()),
  )
  t.onTestFinished(() => client.close())
  const { send } = createElasticsearch(client)
  const said: boolean[] = []
  for (const version of [1, 2]) {
    const changes = ['a', 'b'].flatMap(id => [
      changeOf(refOf('statements', `org_a:payout_${id}`), version, { org_id: 'org_a', seq: version, body: {} }),
      changeOf(refOf('chains', `org_a:rep_${id}:period_1`), version, {
        org_id: 'org_a',
        body: { payouts: [], payroll: [] },
      }),
    ])
    const documents = pack(changes.map(render), place => `${prefix}-g1-${place}`)
    await write(documents, {
      request: async request => {
        const answer = await send(request)
        said.push(answer.body instanceof BulkAnswer && answer.body.saysWritten(documents))
        return answer
      },
      multiGet: () => expect.unreachable('nothing is stale'),
      pause: () => expect.unreachable('nothing is refused'),
      count: (outcome, items) => expect([outcome, items]).toEqual(['written', 4]),
      onRefused: () => undefined,
    })
  }
  expect(said).toEqual([true, true])
})
