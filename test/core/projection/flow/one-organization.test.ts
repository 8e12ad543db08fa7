import { expect, test } from 'vitest'
import { assessOrSkip, project } from '../../../../core/ledger/decide/project.ts'
import { decode, type RawRecord } from '../../../../core/ledger/event/decode.ts'
import { builtInRules } from '../../../../core/ledger/rules/rules.ts'
import { State } from '../../../../core/ledger/rules/state.ts'
import { TOPIC } from '../../../projector/given.ts'
import { eventRecord, record } from '../../../projector/records.ts'
import { rep } from '../../../projector/story.ts'

const source = { stream: 'events', partition: 0, partitions: 1 } as const
const assessed = (raw: RawRecord, org: string | undefined) =>
  assessOrSkip(raw, { org, decode, source, rules: builtInRules })
const isSkipped = (raw: RawRecord, org: string | undefined) => 'skipped' in assessed(raw, org)

test('with one organization only its own records are projected, valid or not', () => {
  const good = eventRecord(rep({ org_id: 'org_1' }))
  const bad = record({ key: 'org_1', value: 'no JSON' })
  for (const raw of [good, bad]) {
    expect([isSkipped(raw, 'org_1'), isSkipped(raw, 'org_2'), isSkipped(raw, undefined)]).toEqual([false, true, false])
  }
  expect(isSkipped(record({ key: null, value: 'no JSON' }), 'org_1')).toBe(true)
})

test('a record whose key and data name two organizations belongs to the one that it is parked under', () => {
  const torn = { ...eventRecord(rep({ org_id: 'org_1' })), key: Buffer.from('org_2') }
  expect([isSkipped(torn, 'org_1'), isSkipped(torn, 'org_2')]).toEqual([false, true])
  const { changes } = project([assessed(torn, 'org_1')], new State(), { topic: TOPIC, partition: 0 })
  expect(changes[0]?.draft).toMatchObject({ code: 'org_mismatch', org_id: 'org_1' })
})

test('a record of another organization changes nothing and is not counted, and its time is not that of others', () => {
  const items = [eventRecord(rep({ org_id: 'org_2' }), 0, 70), record({ offset: 1, timestamp: 60, value: 'no JSON' })]
  const { changes, counts } = project(
    items.map(raw => assessed(raw, 'org_1')),
    new State(),
    { topic: TOPIC, partition: 0 },
  )
  expect(counts).toEqual({ applied: 0, duplicate: 0, parked: 1 })
  expect(changes.map(({ version, draft }) => [version, (draft as { at: number }).at])).toEqual([[1, 60]])
})
