/**
 * Others write to the indices while a projector runs, or change what is written: a pipeline on an index, and updates
 * that change nothing but raise versions. Kafka and Elasticsearch are real.
 */
import { expect, test } from 'vitest'
import { newId, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { expectRefused, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { allIn, call, indexNamed, indicesOf, readPosition } from '../support/stored.ts'

test.concurrent('a final pipeline that somebody sets on an index stops the projector before the position passes a document that went through it', async t => {
  const org = newId('org')
  const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: org })], { partitions: 1 })
  const pipeline = `of-others-${prefix}`
  expect((await call('PUT', `/_ingest/pipeline/${pipeline}`, { processors: [] })).status).toBe(200)
  const settings = `/${prefix}-*/_settings`
  const clean = async () => {
    await call('PUT', settings, { index: { final_pipeline: null } })
    await call('DELETE', `/_ingest/pipeline/${pipeline}`)
  }
  t.onTestFinished(clean)
  expect((await call('PUT', settings, { index: { final_pipeline: pipeline } })).status).toBe(200)
  const before = await readPosition(prefix, 'g1', 0)
  await topics.publish([periodRecorded({ org_id: org })])
  const message = await expectRefused(projector, 'index_unsuitable')
  expect(message).toContain(`an ingest pipeline ran: ${pipeline}; remove index.final_pipeline`)
  expect((await readPosition(prefix, 'g1', 0)).position).toBe(before.position)

  await clean()
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  expect((await readPosition(prefix, 'g1', 0)).position).toBe(before.position + 1)
})

test.concurrent('a default pipeline that somebody sets on an index changes no document', async t => {
  const org = newId('org')
  const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: org })], { partitions: 1 })
  // A pipeline that is missing refuses every document.
  const missing = { index: { default_pipeline: `missing-${prefix}` } }
  expect((await call('PUT', `/${indexNamed(prefix, 'payouts')}/_settings`, missing)).status).toBe(200)
  await topics.publish([periodRecorded({ org_id: org })])
  await untilCaughtUp(projector)
})

test.concurrent('updates of others that raise the versions of documents stop the projector at the first change that would be lost', async t => {
  const org = newId('org')
  const first = [
    repRecorded({ org_id: org }),
    periodRecorded({ org_id: org }),
    payoutCalculated({ org_id: org, id: 'payout_1' }),
  ]
  const { topics, prefix, projector } = await startProjection(t, first, { partitions: 1 })
  // As an update by query without a script does, run two times.
  const generation = (await indicesOf(prefix)).filter(name => name.startsWith(`${prefix}-g1-`))
  for (const index of generation) {
    for (const { id, routing } of await allIn(index)) {
      const path = `/${index}/_update/${encodeURIComponent(id)}${routing === undefined ? '' : `?routing=${routing}`}`
      for (const _ of [1, 2]) expect((await call('POST', path, { doc: {}, detect_noop: false })).status).toBe(200)
    }
  }
  const before = await readPosition(prefix, 'g1', 0)
  await topics.publish([payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' })])
  const message = await expectRefused(projector, 'content_differs')
  expect(message).toContain('a later version that no projector wrote, without our change')
  expect((await readPosition(prefix, 'g1', 0)).position).toBe(before.position)
})
