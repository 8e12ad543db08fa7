/** The note of a comparison, with a live document and positions that the test changes. */
import { expect, test } from 'vitest'
import { generationsIn } from '../../core/store/generations/generations.ts'
import { commonPositions, noteComparison } from '../../tools/generations/compared.ts'
import { sending } from '../support/answering.ts'

const identityOf = (generation: string, rules_version = 1) => {
  return { generation, topic: 't', cluster_id: 'c', partitions: 2, rules_version }
}
const [a, b] = [identityOf('g1'), identityOf('g2')]
const positions = [5, 7]
const copies = ['of g1', 'of g2'] as const

const given = (live: object = {}) => {
  const state = { seqNo: 1, live: { generation: 'g1', kept: ['g1', 'g2'], ...live } as Record<string, unknown> }
  const send = sending(async ({ method, body }) => {
    if (method === 'GET') {
      return { status: 200, body: { _source: { body: state.live }, _seq_no: state.seqNo, _primary_term: 1 } }
    }
    state.seqNo++
    state.live = (body as { body: Record<string, unknown> }).body
    return { status: 200, body: {} }
  })
  const context = {
    send,
    prefix: 'p',
    out: () => undefined,
    say: () => undefined,
    sleep: async () => undefined,
    now: () => 0,
    elapsed: () => 0,
  }
  const now = () => generationsIn({ kind: 'live', body: { generation: 'g1', ...state.live } })
  return { state, context, now }
}

test('the note has the result, the positions, the copies and the versions of the rules, and replaces an older note', async () => {
  const { state, context, now } = given({ verified: { g2: 'g1', g3: 'g1' } })
  expect(await noteComparison('equal', { a, b, copies, positions, before: now() }, context)).toBeUndefined()
  expect(state.live.compared).toEqual({
    'g1 g2': { found: 'equal', positions, rules_versions: [1, 1], copies: ['of g1', 'of g2'], run: 1 },
  })
  expect(state.live.verified).toEqual({ g3: 'g1' })
})

test('a difference replaces an equal result, in either order of the generations', async () => {
  const { state, context, now } = given()
  await noteComparison('equal', { a, b, copies, positions, before: now() }, context)
  await noteComparison(
    'different',
    { a: b, b: a, copies: ['of g2', 'of g1'], positions: [6, 8], before: now() },
    context,
  )
  expect(state.live.compared).toMatchObject({ 'g1 g2': { found: 'different', positions: [6, 8], copies, run: 2 } })
  await noteComparison('equal', { a, b, copies, positions: [7, 9], before: now() }, context)
  expect(state.live.compared).toMatchObject({ 'g1 g2': { found: 'equal', run: 3 } })
})

test('a comparison that began before another one found a difference does not replace that difference', async () => {
  const { state, context, now } = given()
  const before = now()
  await noteComparison('different', { a, b, copies, positions, before }, context)
  const why = await noteComparison('equal', { a, b, copies, positions, before }, context)
  expect(why).toContain('found a difference meanwhile')
  expect(state.live.compared).toMatchObject({ 'g1 g2': { found: 'different', run: 1 } })
})

test('no note is written for a generation that was incomplete at the start or was dropped meanwhile', async () => {
  const building = { kept: ['g1'], building: 'g2' }
  const { state, context, now } = given(building)
  const before = now()
  state.live = { generation: 'g1', kept: ['g1', 'g2'] }
  expect(await noteComparison('equal', { a, b, copies, positions, before }, context)).toContain(
    'projectors did not keep up g2',
  )
  const whole = now()
  state.live = { generation: 'g1', kept: ['g1'] }
  expect(await noteComparison('equal', { a, b, copies, positions, before: whole }, context)).toContain(
    'projectors did not keep up g2',
  )
  expect(await noteComparison('different', { a, b, copies, positions, before: whole }, context)).toContain(
    'g2 is not kept up',
  )
  expect(state.live.compared ?? {}).toEqual({})
})

test('generations are compared at their common positions, and not if one lacks a partition of the other', () => {
  expect(commonPositions(['g1', [5, 7, 0]], ['g2', [9, 3, 0]])).toEqual([5, 3, 0])
  expect(() => commonPositions(['g1', [5, 7]], ['g2', [5, 0]])).toThrow('g2 has nothing of partition 1 yet')
  expect(() => commonPositions(['g1', [0, 0]], ['g2', [5, 0]])).toThrow('g1 has nothing of partition 0 yet')
})
