/** The reads of an export when the API's readers refuse, over a search client that never answers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@elastic/elasticsearch'
import { expect, onTestFinished, test } from 'vitest'
import { INDICES_CHECK_TRIES } from '../../../core/reading/limits.ts'
import { Refusal, unavailable } from '../../../core/runtime/refusals.ts'
import { createCredentials } from '../../../core/store/elasticsearch-credentials.ts'
import { openReaders, readThrough } from '../../../tools/export/readers.ts'
import { CommandError, Stopped } from '../../../tools/failures.ts'
import { READ_ATTEMPTS } from '../../../tools/limits.ts'
import { generationText, liveText, multiGetAnswer, positionText, recordText, searchAnswer } from '../../api/answers.ts'

const change = { kind: 'change', name: { kind: 'payouts', id: 'payout_1' } } as const
const instant = { kind: 'instant', milliseconds: 5 } as const

/** @param refuse throws what every read of Elasticsearch throws */
const given = (refuse: () => never) => {
  const stopping = new AbortController()
  const counts = { reads: 0, sleeps: 0 }
  const read = async (): Promise<never> => {
    counts.reads++
    return refuse()
  }
  const sleep = async () => void counts.sleeps++
  const time = () => 1_000_000
  const client = { search: read, multiGet: read, indexIds: async () => new Map<string, string>() }
  const readers = readThrough(client, { prefix: 'p', now: time, elapsed: time, sleep, signal: stopping.signal })
  return { readers, counts, stopping }
}

test('a read without an answer is repeated, and fails after the last attempt with the reason', async () => {
  const { readers, counts } = given(() => {
    throw unavailable('elasticsearch_connection')
  })
  const reading = readers.readTotals('org_1', undefined)
  await expect(reading).rejects.toThrow(new CommandError('Elasticsearch cannot be read: elasticsearch_connection'))
  expect(counts).toEqual({ reads: READ_ATTEMPTS, sleeps: READ_ATTEMPTS - 1 })
})

test.for([
  { what: 'a role hides documents', reason: 'documents_hidden', checks: 3 },
  { what: 'roles are not told any more', reason: 'roles_unknown', checks: 2 + READ_ATTEMPTS * INDICES_CHECK_TRIES },
] as const)(
  'a page is given out only after a check that began after it was read: $what',
  async ({ reason, checks }) => {
    const kinds = ['reps', 'periods', 'payouts', 'payroll_files', 'statements'].map(kind => `p-g1-${kind}`)
    const indices = Object.fromEntries(['p-control', ...kinds].map(name => [name, 'id']))
    const stored = {
      live: liveText('g1'),
      'generation:g1': generationText('g1', 1, { indices }),
      'position:g1:0': positionText(9, 7),
    }
    const found = ['rep_1', 'rep_2'].map((id, seq) => {
      const text = recordText(seq, { id }, { first_seq: seq, ordinal: 1, at: 1 })
      return { id: `org_a:${id}:${seq}`, place: seq, text }
    })
    let isHiding = false
    let checked = 0
    const reads = {
      search: async () => searchAnswer('p-g1-reps', isHiding ? found.slice(0, 1) : found),
      multiGet: async (names: Parameters<typeof multiGetAnswer>[0]) => multiGetAnswer(names, stored),
      indexIds: async () => {
        checked++
        if (isHiding) throw unavailable(reason)
        return new Map(Object.entries(indices))
      },
    }
    const time = () => 1_000_000
    const sleep = async () => undefined
    const { signal } = new AbortController()
    const { readList } = readThrough(reads, { prefix: 'p', now: time, elapsed: time, sleep, signal })
    const page = { limit: 2, startingAfter: undefined, asOf: undefined }
    expect((await readList('org_a', 'reps', page)).hits).toHaveLength(2)
    expect(checked).toBe(2)
    isHiding = true
    const refused = new CommandError(`Elasticsearch cannot be read: ${reason}`)
    await expect(readList('org_a', 'reps', page)).rejects.toThrow(refused)
    expect(checked).toBe(checks)
  },
)

test('an interrupted command does not repeat a read', async () => {
  const its = given(() => {
    its.stopping.abort(new Stopped())
    throw unavailable('elasticsearch_connection')
  })
  await expect(its.readers.readTotals('org_1', undefined)).rejects.toThrow('stopped')
  expect(its.counts).toEqual({ reads: 1, sleeps: 0 })
})

test('a refused moment is reported as the option: an unknown change by its kind, an instant by the reason', async () => {
  const message = '`as_of` must not be later than some time.'
  const { readers, counts } = given(() => {
    throw new Refusal('invalid_request', { message })
  })
  await expect(readers.readTotals('org_1', change)).rejects.toThrow('--as-of: there is no such change')
  await expect(readers.readTotals('org_1', instant)).rejects.toThrow('--as-of must not be later than some time.')
  const parameters = { limit: 1, startingAfter: undefined, asOf: change }
  await expect(readers.readList('org_1', 'periods', parameters)).rejects.toThrow('--as-of: there is no such change')
  expect(counts).toEqual({ reads: 3, sleeps: 0 })
})

test('another error is not translated', async () => {
  const { readers } = given(() => {
    throw new TypeError('a defect')
  })
  await expect(readers.readStatement('org_1', 'payout_1', change)).rejects.toThrow(TypeError)
})

test('a read whose key is refused is repeated with the key that its file has by now', async () => {
  const asked = new Set<string | undefined>()
  const server = createServer(({ headers }, answer) => {
    asked.add(headers.authorization)
    answer.writeHead(401, { 'Content-Type': 'application/json', 'X-Elastic-Product': 'Elasticsearch' }).end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const client = new Client({
    node: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    auth: { apiKey: 'old' },
  })
  onTestFinished(async () => {
    await client.close()
    server.close()
  })
  const keys = ['first', 'second']
  const time = () => 1_000_000
  const readers = openReaders({
    client,
    credentials: createCredentials(() => ({ apiKey: keys.shift() ?? 'second' })),
    ...{ prefix: 'p', now: time, elapsed: time, sleep: async () => undefined, signal: new AbortController().signal },
  })
  await expect(readers.readTotals('org_1', undefined)).rejects.toThrow(CommandError)
  expect([...asked]).toEqual(['ApiKey first', 'ApiKey second'])
})
