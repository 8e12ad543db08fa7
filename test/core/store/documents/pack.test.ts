import { expect, test } from 'vitest'
import { draftOf, serialize } from '../../../../core/ledger/decide/project.ts'
import { type DocumentChange, documentChangeOf, refOf } from '../../../../core/ledger/rules/state.ts'
import { pack } from '../../../../core/store/documents/documents.ts'
import { layoutOf } from '../../../../schemas/stored/layout.ts'
import { layoutIn } from '../../../support/layout.ts'

const change = (id: string, version: number, body: object): DocumentChange =>
  documentChangeOf(refOf('statements', id), version, { org_id: 'org_1', seq: version, body } as DocumentChange['draft'])

/** The two lines of each document in the bulk request. */
const linesOf = (...changes: DocumentChange[]): string[][] =>
  linesIn(
    layoutIn(place => `test-${place}`),
    ...changes,
  )
const linesIn = (layout: Parameters<typeof pack>[1], ...changes: DocumentChange[]): string[][] =>
  pack(changes.map(serialize), layout).map(({ all, from, to }) => {
    const lines = all.toString('utf8', from, to).split('\n')
    expect(lines.pop()).toBe('')
    return lines
  })

test('a document ends with the length of its body in bytes, and its body', () => {
  const body = { text: 'Ä€😀"\n\u2028', '': [], nested: { body: 1, body_bytes: 2 } }
  const text = JSON.stringify(body)
  expect(linesOf(change('org_1:a', 7, body))).toEqual([
    [
      '{"index":{"_index":"test-statements","_id":"org_1:a","version":7,"version_type":"external"}}',
      `{"org_id":"org_1","seq":7,"body_bytes":${Buffer.byteLength(text)},"body":${text}}`,
    ],
  ])
})

test('a document keeps a key named __proto__ like any other', () => {
  const [lines] = linesOf(change('a', 1, JSON.parse('{"__proto__":"x","constructor":"y"}')))
  expect(lines?.[1]).toContain('"body":{"__proto__":"x","constructor":"y"}}')
})

test('a document that is not ASCII does not shift the others', () => {
  const texts = ['x', 'Ä€😀', 'y', '€', 'z'].flatMap(name => linesOf(change(name, 1, { name })).flat())
  expect(linesOf(...['x', 'Ä€😀', 'y', '€', 'z'].map(name => change(name, 1, { name }))).flat()).toEqual(texts)
})

test('documents go to the index of their place, in the order of the changes', () => {
  const parked: DocumentChange = documentChangeOf(refOf('parked', 't:0:1'), 1, change('t:0:1', 1, {}).draft)
  const actions = linesOf(change('b', 2, {}), parked, change('a', 3, {})).map(
    ([action = '']) => JSON.parse(action).index,
  )
  expect(actions.map(({ _index, _id, version }) => [_index, _id, version])).toEqual([
    ['test-statements', 'b', 2],
    ['test-parked', 't:0:1', 1],
    ['test-statements', 'a', 3],
  ])
})

test('a record of a routed generation begins with its kind, and its draft comes back without it', () => {
  const layout = layoutOf('p', { generation: 'g1', topic: 't', layout: 2 })
  const draft = { org_id: 'org_1', seq: 7, body: { text: 'Ä€' } } as unknown as DocumentChange['draft']
  const [lines = []] = linesIn(layout, documentChangeOf(refOf('payouts', 'org_1:payout_1'), 7, draft))
  expect(lines).toEqual([
    '{"index":{"_index":"p-g1-payouts","_id":"org_1:payout_1","routing":"org_1","version":7,"version_type":"external"}}',
    '{"kind":"payouts","org_id":"org_1","seq":7,"body_bytes":16,"body":{"text":"Ä€"}}',
  ])
  expect(draftOf(JSON.parse(lines[1] ?? ''))).toEqual(draft)
})
