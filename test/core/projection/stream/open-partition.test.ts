/** The last record whose documents are written, as a start reads it and bulk requests write it. */
import { expect, test } from 'vitest'
import { pack, serialize } from '../../../../core/ledger/decide/serialize.ts'
import { laterOf, readWritten } from '../../../../core/projection/stream/open-partition.ts'
import type { Ask } from '../../../../core/store/elasticsearch/client.ts'

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

const reading = (position: number, status: number, _version = 0, offset = 0) => {
  const body = status === 200 ? { _version, _source: { kind: 'written', body: { offset, sha256: 'a' } } } : {}
  const request = (async () => ({ status, body })) as unknown as Ask
  const identity = { ...{ generation: 'g1', topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 } }
  return readWritten(0, position, () => 1_770_000_000_000, { identity, controlIndex: 'control', request })
}

test('the version of a written record goes on from the stored one, and grows with the offset', async () => {
  // An older program counted its writes: 7 of them, the last one at offset 40.
  const { written, writtenFrom } = await reading(41, 200, 7, 40)
  expect([written, writtenFrom + 41 > 7, writtenFrom + 40]).toEqual([null, true, 7])
  expect(await reading(40, 200, 7, 40)).toMatchObject({ written: { offset: 40 }, writtenFrom: -33 })
})

test('after adopt has deleted the document, its version is above the deleted one, whatever the offset is', async () => {
  const before = await reading(0, 404)
  expect(before.written).toBe(null)
  // In a second, fewer records than versions are written.
  const later = readWritten(0, 0, () => 1_770_000_001_000, {
    identity: { ...{ generation: 'g1', topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 } },
    controlIndex: 'control',
    request: (async () => ({ status: 404, body: {} })) as unknown as Ask,
  })
  expect((await later).writtenFrom).toBeGreaterThan(before.writtenFrom + 100_000)
  expect(Number.isSafeInteger(before.writtenFrom + 2 ** 40)).toBe(true)
})

test('a written record goes with the documents of its batch, and replaces no later one', () => {
  const last = { kind: 'written', body: { offset: 4, sha256: 'a' } }
  const change = { ...{ key: 'reps a', kind: 'reps', id: 'a', version: 3 }, draft: { org_id: 'o', seq: 3, body: {} } }
  const documents = [serialize(change as unknown as Parameters<typeof serialize>[0])]
  const [first] = pack(documents, kind => kind, { index: 'control', id: 'written:g1:0', version: 11, document: last })
  const [action = '', line = ''] = first?.all.toString('utf8', first.from, first.to).split('\n') ?? []
  expect(JSON.parse(action)).toEqual({
    index: { _index: 'control', _id: 'written:g1:0', version: 11, version_type: 'external_gte' },
  })
  expect([JSON.parse(line), first?.version]).toEqual([last, 11])
})
