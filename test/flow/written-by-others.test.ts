/**
 * Others write to the indices while a projector runs, or change what is written: a pipeline on an index, and updates
 * that change nothing but raise versions. Kafka and Elasticsearch are real.
 */
import { expect, test } from 'vitest'
import { newId, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { expectRefused, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually } from '../support/scope.ts'
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
  // The second, if the projector looked at the settings before it wrote.
  expect(message).toMatch(
    new RegExp(`an ingest pipeline ran: ${pipeline};|final_pipeline: expected none, got ${pipeline}`),
  )
  expect((await readPosition(prefix, 'g1', 0)).position).toBe(before.position)

  await clean()
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  expect((await readPosition(prefix, 'g1', 0)).position).toBe(before.position + 1)
})

test.concurrent('a default pipeline that somebody sets on an index runs on no document, and stops the projector', async t => {
  const org = newId('org')
  const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: org })], { partitions: 1 })
  // A pipeline that is missing refuses every document: the projector would stop with `write_refused`.
  const missing = { index: { default_pipeline: `missing-${prefix}` } }
  expect((await call('PUT', `/${indexNamed(prefix, 'payouts')}/_settings`, missing)).status).toBe(200)
  await topics.publish([periodRecorded({ org_id: org })])
  expect(await expectRefused(projector, 'index_unsuitable')).toContain(`expected none, got missing-${prefix}`)
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

test.concurrent('a translog that somebody sets to async while a projector runs is set back: acknowledged documents could be lost', async t => {
  const { prefix, projector } = await startProjection(t, [repRecorded({ org_id: newId('org') })], { partitions: 1 })
  const settings = `/${prefix}-*/_settings`
  expect((await call('PUT', settings, { index: { 'translog.durability': 'async' } })).status).toBe(200)
  await eventually(async () => expect((await call('GET', settings)).text).not.toContain('translog'))
  const indices = (await indicesOf(prefix)).toSorted()
  const told = () => projector.lines().filter(({ msg }) => msg === 'a setting of an index was put back')
  // Both streams of the projector may tell of the index of positions.
  const toldOf = () => new Set(told().map(({ index }) => index))
  await eventually(() => expect([...toldOf()].toSorted()).toEqual(indices))
  expect(told()).toContainEqual(expect.objectContaining({ setting: 'translog.durability', got: 'async', level: 40 }))
})

test.concurrent('a field that somebody adds to an index while a projector runs, which searches read in place of ours, stops it', async t => {
  const { prefix, projector } = await startProjection(t, [repRecorded({ org_id: newId('org') })], { partitions: 1 })
  const index = indexNamed(prefix, 'payouts')
  const added = await call('PUT', `/${index}/_mapping`, { runtime: { until_seq: { type: 'keyword' } } })
  expect(added.status, added.text).toBe(200)
  const message = await expectRefused(projector, 'index_unsuitable')
  expect(message).toContain(`${index}: mapping runtime: expected nothing, got {"until_seq":{"type":"keyword"}}`)
})

test.concurrent.for(['default_pipeline', 'final_pipeline'])(
  'a missing pipeline that somebody names in the index of positions stops the projector, which names it: %s',
  async (setting, t) => {
    const org = newId('org')
    const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: org })], { partitions: 1 })
    const missing = `missing-${prefix}`
    const settings = { index: { [setting]: missing } }
    expect((await call('PUT', `/${indexNamed(prefix, 'control')}/_settings`, settings)).status).toBe(200)
    await topics.publish([periodRecorded({ org_id: org })])
    // The second, if the projector looked at the settings before it wrote.
    expect(await expectRefused(projector, 'index_unsuitable')).toMatch(
      new RegExp(`the ingest pipeline ${missing} does not exist;|${setting}: expected none, got ${missing}`),
    )
  },
)

test.concurrent('a pipeline that somebody sets on the index of positions stops the projector', async t => {
  const { prefix, projector } = await startProjection(t, [repRecorded({ org_id: newId('org') })], { partitions: 1 })
  const pipeline = `of-positions-${prefix}`
  expect((await call('PUT', `/_ingest/pipeline/${pipeline}`, { processors: [] })).status).toBe(200)
  const settings = `/${indexNamed(prefix, 'control')}/_settings`
  t.onTestFinished(async () => {
    await call('PUT', settings, { index: { default_pipeline: null } })
    await call('DELETE', `/_ingest/pipeline/${pipeline}`)
  })
  expect((await call('PUT', settings, { index: { default_pipeline: pipeline } })).status).toBe(200)
  const message = await expectRefused(projector, 'index_unsuitable')
  expect(message).toContain(`index.default_pipeline: expected none, got ${pipeline}`)
})
