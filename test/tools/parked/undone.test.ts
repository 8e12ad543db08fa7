/** Pairs of parked records, of which a run publishes one and not yet the other. */
import { expect, test } from 'vitest'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { readParked } from '../../../tools/parked/find.ts'
import { createUndoneRecords } from '../../../tools/parked/undone.ts'
import { sending } from '../../support/answering.ts'
import { keyCreated, keyRevoked, type Outgoing } from '../../support/events.ts'
import { answerParked, parkedDocuments } from '../../support/parked-store.ts'

const topic = 'keys'
const stream = {
  stream: 'api-keys',
  identity: { generation: 'api-keys', topic, cluster_id: 'c', partitions: 1, rules_version: 2 },
  layout: layoutOf('p', { generation: 'api-keys', topic }),
} as const
const live = { events: { ...stream, stream: 'events' }, 'api-keys': stream } as const

test('a pair is open from the first record until the second is published, in whichever order they come', async () => {
  const org_id = 'org_1'
  const documents = parkedDocuments(
    [keyCreated({ org_id }), keyRevoked({ org_id })].map(({ key, value, headers }: Outgoing, offset) => {
      return { topic, offset, at: offset, key: String(key), value: String(value), headers }
    }),
  )
  const send = sending(async request => answerParked(request, documents) ?? { status: 404, body: {} })
  const positions = [0, 1].map(offset => ({ topic, partition: 0, offset }))
  const [key, revocation] = await readParked(send, live, positions)
  if (key === undefined || revocation === undefined) throw new Error('both are parked')

  const openAfter = async (...notes: readonly (readonly [typeof key, boolean])[]): Promise<number> => {
    const undone = createUndoneRecords(stream, () => true, { send, live, signal: new AbortController().signal })
    expect(await undone.find([key, revocation])).toEqual(new Set())
    for (const note of notes) undone.note(...note)
    return undone.open()
  }
  expect(await openAfter([key, true])).toBe(1)
  expect(await openAfter([key, false])).toBe(0)
  expect(await openAfter([key, true], [revocation, true])).toBe(0)
  expect(await openAfter([key, true], [revocation, false])).toBe(1)
  expect(await openAfter([revocation, true], [key, true])).toBe(0)
  expect(await openAfter([revocation, false], [key, true])).toBe(1)
})
