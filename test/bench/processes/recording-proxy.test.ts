/** The projector writes and reads with bulk requests. The bulk ceiling repeats only writes: reads would be refused. */
import { expect, test } from 'vitest'
import { isBulkWrite } from '../../../bench/processes/recording-proxy.ts'
import { serialize } from '../../../core/ledger/decide/project.ts'
import { documentChangeOf, refOf } from '../../../core/ledger/rules/state.ts'
import { Unanswered } from '../../../core/runtime/keep-trying.ts'
import { pack, write } from '../../../core/store/documents/documents.ts'
import type { Request } from '../../../core/store/elasticsearch/client.ts'
import { replacements } from '../../../core/store/elasticsearch/client.ts'
import { getFromPrimaries } from '../../../core/store/elasticsearch/primary-reads.ts'
import { getting, sending } from '../../support/answering.ts'
import { addressIn, layoutIn } from '../../support/layout.ts'

const pathOf = ({ path, query = {} }: Request): string =>
  `${path}?${Object.entries(query)
    .map(([name, value]) => `${name}=${value}`)
    .join('&')}`

/** Returns the path of the first request. */
const firstPath = async (run: (send: ReturnType<typeof sending>) => Promise<unknown>): Promise<string> => {
  const paths: string[] = []
  const send = sending(async request => {
    paths.push(pathOf(request))
    throw new Unanswered('elasticsearch', 503)
  })
  await run(send).catch(() => undefined)
  return String(paths[0])
}

test('bulk requests that write are recorded, and those that only read are not', async () => {
  const change = documentChangeOf(refOf('statements', 's'), 1, { org_id: 'o', seq: 1, body: {} })
  const written = await firstPath(request =>
    write(
      pack(
        [serialize(change)],
        layoutIn(place => place),
      ),
      {
        request,
        getDocuments: getting(async () => []),
        pause: async () => expect.unreachable('one request is enough'),
        count: () => undefined,
        onRefused: () => undefined,
      },
    ),
  )
  const replaced = pathOf(replacements.combine([{ method: 'PUT', path: '/c/_doc/p', body: {} }]))
  const read = await firstPath(send => getFromPrimaries(send, [addressIn('c', 'p')]))
  expect([written, replaced, read].every(path => path.startsWith('/_bulk'))).toBe(true)
  expect([written, replaced, read].map(isBulkWrite)).toEqual([true, true, false])
})
