import { describe, expect, test } from 'vitest'
import { contentHash } from '../../../../api/answer/answer-page.ts'
import type { SealKey } from '../../../../core/reading/sealed/key-store.ts'
import { createOpenRecords } from '../../../../core/reading/sealed/open-records.ts'
import { type Hit, idOf, numberOf, sliceSearch } from '../../../../core/store/read/slice-documents.ts'
import type { SealedLocation } from '../../../../schemas/sealed/sealed-text.ts'
import { recordText, searchAnswer } from '../../../api/answers.ts'
import { seal, sealKey } from '../../../support/seal.ts'

const signal = new AbortController().signal
const org = 'org_a'
const repBody = (id: string, name: string, email: string | null = null) => ({ id, name, email, status: 'active' })
const place = (record: string, field: SealedLocation['field'] = 'name') => ({ org, record, field, keyId: 'k1' })
const bodyOf = ({ bytes, bodyStart, bodyEnd }: Hit) => JSON.parse(bytes.toString('utf8', bodyStart, bodyEnd))

const hitsOf = (kind: Hit['kind'], bodies: readonly ({ readonly id: string } & Record<string, unknown>)[]): Hit[] => {
  const records = bodies.map((body, place) => ({
    id: `org_a:${body.id}:${place}`,
    text: recordText(place, body, { ordinal: 1 }),
    place,
  }))
  return sliceSearch(searchAnswer('i', records), [{ name: 'i', kind }], org)
}

const store = (states: Readonly<Record<string, SealKey['state']>> = {}) => {
  const asked: string[] = []
  const open = createOpenRecords(async id => {
    asked.push(id)
    const state = states[id] ?? 'here'
    return state === 'here' ? { state, key: sealKey(id) } : { state }
  })
  return { ...open, asked }
}

describe('sealed texts of a page', () => {
  test('are opened, and everything else keeps its bytes', async () => {
    const plain = repBody('rep_1', 'says "sealed:v1:k1:" and {"a":"sealed:v1:"}')
    const name = 'Ada \u0000 "é" 😀'
    const sealed = repBody('rep_2', seal(name, place('rep_2')), seal('a@example.com', place('rep_2', 'email')))
    const hits = hitsOf('reps', [plain, sealed, repBody('rep_3', 'Eve', '')])
    const { hits: opened, state } = await store().hits(org, hits, signal)
    expect(opened.map(bodyOf)).toEqual([plain, repBody('rep_2', name, 'a@example.com'), repBody('rep_3', 'Eve', '')])
    expect(state).toBe(',oo,')
    expect([opened[0], opened[2]]).toEqual([hits[0], hits[2]])
    for (const [index, hit] of opened.entries()) {
      expect([contentHash(hit), numberOf(hit, 'seq'), idOf(hit)]).toEqual(['h', index, `rep_${index + 1}:${index}`])
    }
  })

  test('cost nothing if there are none: the same hits come back, and no key is read', async () => {
    const { hits: open, asked } = store()
    for (const kind of ['reps', 'periods', 'payouts', 'payroll_files'] as const) {
      const hits = hitsOf(kind, [repBody('rep_1', 'a "quote'), repBody('rep_2', 'Eve')])
      expect((await open(org, hits, signal)).hits).toBe(hits)
    }
    expect(asked).toEqual([])
  })

  test('of a void are opened for the record that it reverses', async () => {
    const label = seal('DE12', place('payroll_1', 'destination.label'))
    const payroll = (id: string, reverses_id: string | null, label: string) => ({
      id,
      reverses_id,
      destination: { type: 'bank_account', label },
    })
    const hits = hitsOf('payroll_files', [payroll('payroll_1', null, label), payroll('payroll_2', 'payroll_1', label)])
    const { hits: opened } = await store().hits(org, hits, signal)
    expect(opened.map(bodyOf)).toEqual([payroll('payroll_1', null, 'DE12'), payroll('payroll_2', 'payroll_1', 'DE12')])
  })

  test('are empty and erased once the key is destroyed, and the state changes', async () => {
    const sealed = repBody('rep_1', seal('Ada', place('rep_1')), seal('a@example.com', place('rep_1', 'email')))
    const half = repBody('rep_2', 'Eve', seal('e@example.com', place('rep_2', 'email')))
    const { hits, state } = await store({ k1: 'destroyed' }).hits(org, hitsOf('reps', [sealed, half]), signal)
    expect(hits.map(bodyOf)).toEqual([
      { ...repBody('rep_1', '', null), erased: true },
      { ...repBody('rep_2', 'Eve', null), erased: true },
    ])
    expect(state).toBe('ee,e')
    const label = seal('DE12', place('payroll_1', 'destination.label'))
    const payroll = { id: 'payroll_1', reverses_id: null, destination: { type: 'other', label } }
    const paid = await store({ k1: 'destroyed' }).hits(org, hitsOf('payroll_files', [payroll]), signal)
    expect(paid.hits.map(bodyOf)).toEqual([{ ...payroll, destination: { type: 'other', label: '', erased: true } }])
  })

  test.each([
    ['another organization', seal('Ada', { ...place('rep_1'), org: 'org_b' })],
    ['another record', seal('Ada', place('rep_2'))],
    ['another field', seal('Ada', place('rep_1', 'email'))],
    ['another key', seal('Ada', { ...place('rep_1'), key: sealKey('other') })],
    ['a changed tag', seal('Ada', place('rep_1')).replace(/.{3}$/, 'AAA')],
    ['a text of 1,001', seal('😀'.repeat(1_001), place('rep_1'))],
    ['bytes that are not UTF-8', seal(Buffer.from([0xff]), place('rep_1'))],
    ['a sealed text', seal(seal('Ada', place('rep_1')), place('rep_1'))],
    ['a version that nobody knows', `sealed:v2:k1:${'A'.repeat(40)}`],
  ])('of %s are unreadable, and the other records stay readable', async (_, name) => {
    const sealed = repBody('rep_3', seal('Bob', place('rep_3')))
    const { hits, state } = await store().hits(org, hitsOf('reps', [repBody('rep_1', name), sealed]), signal)
    expect(hits.map(bodyOf)).toEqual([{ ...repBody('rep_1', ''), unreadable: true }, repBody('rep_3', 'Bob')])
    expect(state).toBe('u,o')
  })

  test('of the largest size are opened', async () => {
    const name = '😀'.repeat(1_000)
    const sealed = seal(name, place('rep_1'))
    expect(sealed.length).toBeLessThanOrEqual(8_000)
    const { hits } = await store().hits(org, hitsOf('reps', [repBody('rep_1', sealed)]), signal)
    expect(hits.map(bodyOf)).toEqual([repBody('rep_1', name)])
  })

  test.each([
    ['unknown', 'seal_key_unknown'],
    ['malformed', 'seal_key_malformed'],
    ['unavailable', 'seal_keys_unavailable'],
    ['no_store', 'seal_keys_not_set'],
  ] as const)('are refused while their key is %s: never shown, never erased', async (state, reason) => {
    const hits = hitsOf('reps', [repBody('rep_1', seal('Ada', place('rep_1')))])
    const refused = { code: 'unavailable', reason }
    await expect(store({ k1: state }).hits(org, hits, signal)).rejects.toMatchObject(refused)
    const [slice] = hits
    if (slice) await expect(store({ k1: state }).record(org, 'reps', slice, signal)).rejects.toMatchObject(refused)
  })

  test('are refused when the time of the request is up, although the store never answers', async () => {
    const hits = hitsOf('reps', [repBody('rep_1', seal('Ada', place('rep_1')))])
    const { hits: open } = createOpenRecords(() => new Promise(() => undefined))
    const time = AbortSignal.abort(new DOMException('time_is_up', 'AbortError'))
    await expect(open(org, hits, time)).rejects.toMatchObject({ code: 'unavailable', reason: 'time_is_up' })
  })
})
