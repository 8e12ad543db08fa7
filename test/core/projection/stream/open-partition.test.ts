/** The last record whose documents are written, as a start reads it and bulk requests write it. */
import { expect, test } from 'vitest'
import { serialize } from '../../../../core/ledger/decide/project.ts'
import { openPartition } from '../../../../core/projection/stream/assign.ts'
import { createHealth } from '../../../../core/runtime/index.ts'
import { pack } from '../../../../core/store/documents/documents.ts'
import type { Ask, Send } from '../../../../core/store/elasticsearch/client.ts'
import { laterOf, openWritten } from '../../../../core/store/positions/publish.ts'
import { addressIn, layoutIn } from '../../../support/layout.ts'

test('a start after a crash does not forget later records whose documents are written', () => {
  const before = { offset: 20, sha256: 'before' }
  expect(laterOf(before, { offset: 10, sha256: 'again' })).toEqual(before)
  const further = { offset: 21, sha256: 'further' }
  expect([laterOf(before, further), laterOf(null, further), laterOf(undefined, further)]).toEqual([
    further,
    further,
    further,
  ])
})

const identity = { generation: 'g1', topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 }

/** Elasticsearch with one document. `deletedVersion`: of a deleted one that it remembers. */
const storing = (before: { readonly version: number; readonly offset: number } | undefined, deletedVersion = 0) => {
  let stored = before
  const request = (async ({ method }) => {
    if (method === 'GET' && stored === undefined) return { status: 404, body: {} }
    if (method === 'PUT' && stored !== undefined) return { status: 409, body: {} }
    const status = method === 'PUT' ? 201 : 200
    stored ??= { version: deletedVersion + 1, offset: -1 }
    const { version, offset } = stored
    return { status, body: { _version: version, _source: { kind: 'written', body: { offset, sha256: 'a' } } } }
  }) as Ask
  return (position: number) => openWritten(0, position, { identity, controlIndex: 'control', request })
}

test('the version of a written record goes on from the stored one, and grows with the offset', async () => {
  // An older program counted its writes: 7 of them, the last one at offset 40.
  const stored = { version: 7, offset: 40 }
  const { written, writtenFrom } = await storing(stored)(41)
  expect([written, writtenFrom + 41 > 7, writtenFrom + 40]).toEqual([null, true, 7])
  expect(await storing(stored)(40)).toMatchObject({ written: { offset: 40 }, writtenFrom: -33 })
})

test('two owners that find no written record count from the same version, above that of a deleted one', async () => {
  const open = storing(undefined, 1_000)
  const owners = await Promise.all([open(0), open(0)])
  expect(owners).toEqual([owners[0], { written: null, writtenFrom: 1_002 }])
})

test('a written record goes with the documents of its batch, and replaces no later one', () => {
  const last = { kind: 'written', body: { offset: 4, sha256: 'a' } }
  const change = { ...{ key: 'reps a', kind: 'reps', id: 'a', version: 3 }, draft: { org_id: 'o', seq: 3, body: {} } }
  const documents = [serialize(change as unknown as Parameters<typeof serialize>[0])]
  const [first] = pack(
    documents,
    layoutIn(kind => kind),
    { address: addressIn('control', 'written:g1:0'), version: 11, document: last },
  )
  const [action = '', line = ''] = first?.all.toString('utf8', first.from, first.to).split('\n') ?? []
  expect(JSON.parse(action)).toEqual({
    index: { _index: 'control', _id: 'written:g1:0', version: 11, version_type: 'external_gte' },
  })
  expect([JSON.parse(line), first?.version]).toEqual([last, 11])
})

test('a record that another owner reads and writes while a partition is opened is no record that was deleted', async () => {
  let end = 59
  const send = (async ({ path }) => {
    // Without security.
    if (path.startsWith('/_security/')) return { status: 400, body: {} }
    if (path.includes('position')) return { status: 200, body: { _source: { body: { position: 58 } } } }
    if (path.endsWith('/_settings')) {
      return { status: 200, body: { 'p-control': { settings: { index: { uuid: 'u' } } } } }
    }
    if (!path.includes('written')) throw new Error(`an unknown request: ${path}`)
    // The owner before was a moment faster: the last record is in the log, and its documents are written.
    end = 60
    return { status: 200, body: { _version: 1, _source: { kind: 'written', body: { offset: 59, sha256: 'a' } } } }
  }) as Send
  const opened = openPartition(
    0,
    { identity, controlIndex: 'control', prefix: 'p' },
    {
      streamLog: { ends: async () => [{ partition: 0, low: 0, end }] },
      elasticsearch: { send },
      replace: send,
      retryOptions: { sleep: async () => undefined, random: () => 0 },
      health: createHealth({ warn: () => undefined, info: () => undefined }, () => 0),
      verifySource: async () => undefined,
      times: { read: async () => undefined, of: () => undefined, advance: async () => undefined },
      now: () => 0,
    },
    new AbortController().signal,
  )
  expect((await opened).written).toEqual({ offset: 59, sha256: 'a' })
})
