import { describe, expect, test } from 'vitest'
import { Refusal } from '../../../../core/runtime/refusals.ts'
import {
  bodyOf,
  type DocumentName,
  idOf,
  sliceMultiGet,
  sliceSearch,
  smallDocument,
  textOfSlice,
} from '../../../../core/store/read/slice-documents.ts'
import { liveText, multiGetAnswer, recordText, searchAnswer } from '../../../api/answers.ts'
import { addressIn } from '../../../support/layout.ts'

const reasonOf = (act: () => unknown): string | undefined => {
  try {
    act()
  } catch (error) {
    if (error instanceof Refusal && error.code === 'unavailable') return error.reason
    throw error
  }
  return undefined
}

const hostile =
  '{"text":"}]}} \\"_source\\":{ ,\\"body_bytes\\":1,\\"body\\":{} ,\\"sort\\":[9]} é😀","deep":[{"a":{}}]}'
const indices = [{ name: 'i', kind: 'payouts' }] as const
const two = () => [
  { id: 'org_a:payout_1', text: recordText(3, hostile), place: 3 },
  { id: 'org_a:payout_2', text: recordText(5, { n: '0.10' }), place: 5 },
]

describe('the hits of a search', () => {
  test('are cut at the right bytes, whatever their bodies contain', () => {
    const hits = sliceSearch(searchAnswer('i', two()), indices, 'org_a')
    expect(hits.map(hit => [idOf(hit), hit.sortValue])).toEqual([
      ['payout_1', 3],
      ['payout_2', 5],
    ])
    expect(hits.map(({ bytes, bodyStart, bodyEnd }) => bytes.toString('utf8', bodyStart, bodyEnd))).toEqual([
      hostile,
      '{"n":"0.10"}',
    ])
  })

  test('may be none', () => {
    expect(sliceSearch(searchAnswer('i', []), indices, 'org_a')).toEqual([])
  })

  test.each([
    ['timed out', { timed_out: true }, 'elasticsearch_timed_out'],
    ['lost a shard', { _shards: { total: 2, successful: 1, skipped: 0, failed: 1 } }, 'elasticsearch_partial'],
    ['did not ask a shard', { _shards: { total: 2, successful: 1, skipped: 0, failed: 0 } }, 'elasticsearch_partial'],
    ['asked no shard', { _shards: { total: 0, successful: 0, skipped: 0, failed: 0 } }, 'elasticsearch_partial'],
    ['does not report its shards', { _shards: undefined }, 'elasticsearch_partial'],
  ])('of a search that %s are refused', (_, more, reason) => {
    expect(reasonOf(() => sliceSearch(searchAnswer('i', two(), more), indices, 'org_a'))).toBe(reason)
  })

  test('of another organization or another index are refused, even one among many', () => {
    expect(reasonOf(() => sliceSearch(searchAnswer('i', two()), indices, 'org_b'))).toBe('elasticsearch_malformed_hit')
    expect(reasonOf(() => sliceSearch(searchAnswer('i', two()), [{ name: 'j', kind: 'payouts' }], 'org_a'))).toBe(
      'elasticsearch_malformed_hit',
    )
    const foreign = [...two(), { id: 'org_ab:payout_3', text: recordText(6, {}), place: 6 }]
    expect(reasonOf(() => sliceSearch(searchAnswer('i', foreign), indices, 'org_a'))).toBe(
      'elasticsearch_malformed_hit',
    )
  })

  test('whose places do not strictly increase are refused', () => {
    for (const places of [
      [5, 5],
      [5, 3],
    ]) {
      const hits = two().map((hit, at) => ({ ...hit, place: places[at] ?? 0 }))
      expect(reasonOf(() => sliceSearch(searchAnswer('i', hits), indices, 'org_a'))).toBe('elasticsearch_malformed_hit')
    }
  })

  test('are refused if the response is cut short, at any byte', () => {
    const whole = searchAnswer('i', two())
    for (let length = 0; length < whole.length; length++) {
      expect(
        reasonOf(() => sliceSearch(whole.subarray(0, length), indices, 'org_a')),
        `${length} bytes`,
      ).toMatch(/malformed/)
    }
  })

  test('are refused if anything follows the response', () => {
    const whole = searchAnswer('i', two())
    expect(reasonOf(() => sliceSearch(Buffer.concat([whole, whole]), indices, 'org_a'))).toBe(
      'elasticsearch_malformed_end',
    )
  })

  test('are refused if a body is longer or shorter than its stated size', () => {
    for (const [from, to] of [
      ['"body_bytes":12', '"body_bytes":11'],
      ['"body_bytes":12', '"body_bytes":13'],
      ['"body_bytes":12', '"body_bytes":99999'],
      ['"body_bytes":12', '"body_bytes":-12'],
      ['"body_bytes":12', '"body_bytes":12.5'],
      ['"body_bytes":12', '"body_bytes":""'],
      ['"body_bytes":12,', ''],
    ] as const) {
      const text = searchAnswer('i', two()).toString()
      expect(text).toContain(from)
      const changed = Buffer.from(text.replace(from, to))
      expect(
        reasonOf(() => sliceSearch(changed, indices, 'org_a')),
        to,
      ).toMatch(/malformed/)
    }
  })
})

describe('the documents of a multi-get', () => {
  const names: DocumentName[] = [
    { ...addressIn('c', 'live'), form: 'small' },
    { ...addressIn('i', 'org_a:payout_1'), form: 'record' },
    { ...addressIn('i', 'org_a:payout_2'), form: 'record' },
  ]
  const stored = {
    live: liveText('g"}1'),
    'org_a:payout_2': recordText(5, hostile, { superseded_by_id: null, rep_id: 'rep_1' }),
  }

  test('come in the order of the request, with undefined for a missing one', () => {
    const [live, missing, payout] = sliceMultiGet(multiGetAnswer(names, stored), names)
    expect(live && smallDocument(live)).toEqual({ kind: 'live', body: { generation: 'g"}1' } })
    expect(missing).toBeUndefined()
    expect(payout && bodyOf(payout)).toEqual(JSON.parse(hostile))
    expect(payout && textOfSlice(payout, 'superseded_by_id')).toBeNull()
    expect(payout && textOfSlice(payout, 'rep_id')).toBe('rep_1')
  })

  test('are unavailable if a shard cannot be read', () => {
    const text = multiGetAnswer(names, stored)
      .toString()
      .replace('"found":false', '"error":{"type":"no_shard_available_action_exception","reason":"\\"found\\":false"}')
    expect(reasonOf(() => sliceMultiGet(Buffer.from(text), names))).toBe('elasticsearch_partial')
  })

  test('are refused if they are not the requested ones', () => {
    const bytes = multiGetAnswer(names, stored)
    for (const asked of [names.slice(0, 2), names.toReversed(), [...names, ...names]]) {
      expect(reasonOf(() => sliceMultiGet(bytes, asked))).toMatch(/malformed|partial/)
    }
  })

  test('are refused if the response is cut short, at any byte', () => {
    const whole = multiGetAnswer(names, stored)
    for (let length = 0; length < whole.length; length++) {
      expect(
        reasonOf(() => sliceMultiGet(whole.subarray(0, length), names)),
        `${length}`,
      ).toMatch(/malformed|partial/)
    }
  })
})
