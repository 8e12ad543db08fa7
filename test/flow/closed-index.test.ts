/** Indices that somebody closes or blocks while a projector runs, as before a restore. */
import { expect, test } from 'vitest'
import { createClient } from '../support/client.ts'
import { keyCreated, newId, newKeyText, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { expectNotReady } from '../support/installation.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually } from '../support/scope.ts'
import { call, indexNamed, indexWith } from '../support/stored.ts'

test.concurrent.for(['control', 'payouts'] as const)(
  'projectors wait for a closed index, name it, and lose nothing: %s',
  async (kind, t) => {
    const [org, key] = [newId('org'), newKeyText()]
    const records = [
      ...[keyCreated({ org_id: org, text: key }), repRecorded({ org_id: org }), periodRecorded({ org_id: org })],
      payoutCalculated({ org_id: org, id: 'payout_1' }),
    ]
    const { topics, prefix, projector } = await startProjection(t, records, { partitions: 1 })
    const index = indexWith(indexNamed(prefix, kind))
    await call('POST', `/${index}/_close`)
    await topics.publish([payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' })])
    const named = new RegExp(`index_closed_exception, index ${index}$`)
    await expectNotReady(projector, named)
    const second = await startProjector(t, { topics, prefix, groupId: `${prefix}-second` })
    await expectNotReady(second, named)

    await call('POST', `/${index}/_open`)
    await untilCaughtUp(projector)
    await untilCaughtUp(second)
    const client = createClient([await startApi(t, prefix)], key)
    expect((await client.all('payouts')).map(({ id }) => id)).toEqual(['payout_2'])
  },
)

test.concurrent('while nobody may look at an index, projectors name it, and records go on', async t => {
  const [org, text] = [newId('org'), newKeyText()]
  const { topics, prefix, projector } = await startProjection(t, [keyCreated({ org_id: org, text })], { partitions: 1 })
  const index = indexWith(indexNamed(prefix, 'payouts'))
  const setBlock = async (isBlocked: true | null) => {
    const { status } = await call('PUT', `/${index}/_settings`, { 'index.blocks.metadata': isBlocked })
    expect(status).toBe(200)
  }
  await setBlock(true)
  await expectNotReady(projector, new RegExp(`cluster_block_exception, index ${index}$`), /^elasticsearch watch$/)
  await topics.publish([repRecorded({ org_id: org })])
  await untilCaughtUp(projector)
  await setBlock(null)
  await eventually(async () => expect((await projector.ask('/readyz')).status, projector.log()).toBe(200))
})

test.concurrent('while an index that answers are read from has blocks.read, /readyz of the API says so', async t => {
  const [org, key] = [newId('org'), newKeyText()]
  const records = [keyCreated({ org_id: org, text: key }), repRecorded({ org_id: org })]
  const { prefix } = await startProjection(t, records, { partitions: 1 })
  const api = await startApi(t, prefix)
  const setBlock = (isBlocked: true | null) =>
    call('PUT', `/${indexWith(indexNamed(prefix, 'reps'))}/_settings`, { 'index.blocks.read': isBlocked })
  expect((await setBlock(true)).status).toBe(200)
  const readiness = async () => (await fetch(`${api.adminUrl}/readyz`)).text()
  await eventually(async () => expect(await readiness()).toContain('reads_blocked'))
  expect((await setBlock(null)).status).toBe(200)
  const ask = () => fetch(`${api.url}/reps`, { headers: { authorization: `Bearer ${key}` } })
  await eventually(async () => expect((await ask()).status).toBe(200))
})

test.concurrent('while the index of keys is closed, the API says so: it accepts no key', async t => {
  const [org, key] = [newId('org'), newKeyText()]
  const records = [keyCreated({ org_id: org, text: key }), repRecorded({ org_id: org })]
  const { prefix } = await startProjection(t, records, { partitions: 1 })
  const api = await startApi(t, prefix)
  const index = `${prefix}-api-keys`
  await call('POST', `/${index}/_close`)
  await eventually(async () => expect(await (await fetch(`${api.adminUrl}/readyz`)).text()).toContain('index_closed'))
  const ask = () => fetch(`${api.url}/reps`, { headers: { authorization: `Bearer ${key}` } })
  expect((await ask()).status).toBe(503)
  await call('POST', `/${index}/_open`)
  await eventually(async () => expect((await ask()).status).toBe(200))
})
