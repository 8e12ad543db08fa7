/** An operation counts as done only if the answer says so about exactly this one. */
import { expect, test } from 'vitest'
import type { Answer, Request } from '../../../core/store/elasticsearch/client.ts'
import { carryOut, type Operation } from '../../../tools/leftovers/carry-out.ts'
import { sending } from '../../support/answering.ts'

const address = { _index: 'p-a', _id: 'a', routing: undefined }
const stores: Operation = { ...address, lines: [{ index: address }, { kept: true }] }
const deletes: Operation = { ...address, lines: [{ delete: address }] }

/** Carries out one operation, whose request gets these answers, one after another. */
const carriedOut = async (operation: Operation, ...answers: readonly Answer[]) => {
  const asked: Request[] = []
  const steps = {
    send: sending(async request => answers[asked.push(request) - 1] ?? { status: 500, body: {} }),
    ...{ say: () => undefined, sleep: async () => undefined },
  }
  await carryOut([operation], steps)
  return asked
}
const items = (...all: readonly object[]): Answer => ({ status: 200, body: { items: all } })
const stored = (fields: object) => ({ index: { ...address, ...fields } })
const deleted = (fields: object) => ({ delete: { ...address, ...fields } })

test('a document that is stored, deleted or gone before is done', async () => {
  for (const status of [200, 201]) expect(await carriedOut(stores, items(stored({ status })))).toHaveLength(1)
  for (const status of [200, 404]) expect(await carriedOut(deletes, items(deleted({ status })))).toHaveLength(1)
})

test('a document that is refused for now is sent again', async () => {
  const refused = stored({ status: 429, error: { type: 'es_rejected_execution_exception' } })
  expect(await carriedOut(stores, items(refused), items(stored({ status: 201 })))).toHaveLength(2)
})

test('the default pipeline of an index does not run', async () => {
  const [{ query } = {}] = await carriedOut(stores, items(stored({ status: 201 })))
  expect(query).toEqual({ pipeline: '_none', list_executed_pipelines: true })
})

const OTHER = 'with other items than were sent'
test.each([
  ['of status 404', stores, { status: 404, body: '<html>' }, 'p-a cannot be written: Elasticsearch answers 404'],
  ['without items', stores, { status: 200, body: {} }, OTHER],
  ['with more items', stores, items(stored({ status: 201 }), stored({ status: 201 })), OTHER],
  ['without the item', stores, items(null as unknown as object), OTHER],
  ['about another action', stores, items(deleted({ status: 200 })), OTHER],
  ['about another document', stores, items(stored({ _id: 'b', status: 201 })), OTHER],
  ['about another index', stores, items(stored({ _index: 'p-b', status: 201 })), OTHER],
  ['without a status of the item', stores, items(stored({})), OTHER],
  ['that nothing is there to store in', stores, items(stored({ status: 404 })), 'Elasticsearch answers 404'],
  ['that a pipeline dropped it', stores, items(stored({ status: 200, result: 'noop' })), 'dropped a document'],
  ['that a pipeline ran', stores, items(stored({ status: 201, executed_pipelines: ['trim'] })), 'ran: trim'],
  [
    'that the shard of a deletion is away',
    deletes,
    items(deleted({ status: 404, error: { type: 'shard_not_found_exception' } })),
    'Elasticsearch answers 404',
  ],
])('an answer %s ends the command', async (_, operation, answer, why) => {
  await expect(carriedOut(operation, answer)).rejects.toThrow(why)
})
