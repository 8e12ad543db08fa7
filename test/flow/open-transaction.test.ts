/**
 * A transaction that stays open hides all records behind it in its partition, also those of other organizations, whose
 * publishers use no transactions. Projection-Time does not say that they are included.
 */
import { expect, test } from 'vitest'
import { createClient } from '../support/client.ts'
import { keyCreated, newId, newKeyText, repRecorded } from '../support/events.ts'
import { startApi } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually } from '../support/scope.ts'
import { LONG_TRANSACTION, place, toMessage } from '../support/topics.ts'

/** Returns an organization whose events are in this partition. */
const orgIn = (partition: number): string => {
  const org = newId('org')
  return place(repRecorded({ org_id: org }), 2).partition === partition ? org : orgIn(partition)
}

test('Projection-Time stands still behind a transaction of a stranger, until it ends', async t => {
  const [behind, elsewhere, stranger] = [orgIn(0), orgIn(1), orgIn(0)]
  const keys = new Map([behind, elsewhere].map(org => [org, newKeyText()]))
  const records = [...keys].flatMap(([org_id, text]) => [keyCreated({ org_id, text }), repRecorded({ org_id })])
  const { topics, prefix } = await startProjection(t, records, { partitions: 2 })
  const api = await startApi(t, prefix)
  const read = async (org: string) => {
    const { status, headers, text } = await createClient([api], keys.get(org) ?? '').askInTime('/changes')
    expect(status).toBe(200)
    const changes = JSON.parse(text).data as readonly { readonly published_at: string }[]
    return { time: String(headers.get('projection-time')), changes }
  }

  const producer = topics.kafka.producer({
    ...LONG_TRANSACTION,
    transactionalId: `${topics.events}-open`,
    maxInFlightRequests: 1,
  })
  await producer.connect()
  t.onTestFinished(() => producer.disconnect())
  const open = await producer.transaction()
  await open.send({ topic: topics.events, messages: [toMessage(place(repRecorded({ org_id: stranger }), 2))] })
  await topics.publish([repRecorded({ org_id: behind, name: 'Grace' })])
  const acknowledged = Date.now()
  await eventually(async () => expect(Date.parse((await read(elsewhere)).time)).toBeGreaterThan(acknowledged + 2_000))
  const hidden = await read(behind)
  expect(hidden.changes).toHaveLength(1)

  await open.commit()
  await eventually(async () => expect((await read(behind)).changes).toHaveLength(2))
  const [, published_at = ''] = (await read(behind)).changes.map(change => change.published_at)
  expect(hidden.time < published_at).toBe(true)
  await eventually(async () => expect((await read(behind)).time > published_at).toBe(true))
})
