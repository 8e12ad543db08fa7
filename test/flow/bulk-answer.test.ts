/** Bulk responses of Elasticsearch have the form that is recognized from the text: parsing costs ten times more. */
import { Client } from '@elastic/elasticsearch'
import { expect, inject, test } from 'vitest'
import { pack, serialize } from '../../core/ledger/decide/serialize.ts'
import { documentChangeOf, refOf } from '../../core/ledger/rules/state.ts'
import { write } from '../../core/store/documents/write.ts'
import { BulkAnswer } from '../../core/store/elasticsearch/bulk-responses.ts'
import { createElasticsearch } from '../../core/store/elasticsearch/client.ts'
import { elasticsearchConfig } from '../../core/store/elasticsearch-config.ts'
import { sending } from '../support/answering.ts'
import { useStore } from '../support/api.ts'
import { layoutIn } from '../support/layout.ts'

test('a bulk response in which all is written, created or replaced, is recognized from its text', async t => {
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
      documentChangeOf(refOf('statements', `org_a:payout_${id}`), version, { org_id: 'org_a', seq: version, body: {} }),
      documentChangeOf(refOf('chains', `org_a:rep_${id}:period_1`), version, {
        org_id: 'org_a',
        body: { payouts: [], payroll: [] },
      }),
    ])
    const documents = pack(
      changes.map(serialize),
      layoutIn(place => `${prefix}-g1-${place}`),
    )
    await write(documents, {
      request: sending(async request => {
        const answer = await send(request)
        said.push(answer.body instanceof BulkAnswer && answer.body.confirmsWrites(documents))
        return answer
      }),
      getDocuments: () => expect.unreachable('nothing is stale'),
      pause: () => expect.unreachable('nothing is refused'),
      count: (outcome, items) => expect([outcome, items]).toEqual(['written', 4]),
      onRefused: () => undefined,
    })
  }
  expect(said).toEqual([true, true])
})
