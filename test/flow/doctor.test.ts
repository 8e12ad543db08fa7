/** `commission doctor` on plain services: before the first start and on a running installation. It leaves nothing. */
import { expect, test } from 'vitest'
import { generationId, type PositionDocument, positionId, writtenId } from '../../schemas/stored/documents.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { newId, repRecorded } from '../support/events.ts'
import { examine } from '../support/examine.ts'
import { startProjection } from '../support/projection.ts'
import { call, createPrefix, indexNamed, indexWith, indicesOf, store, storedById } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

type Document = {
  readonly result: string
  readonly checks: readonly { readonly check: string; readonly outcome: string; readonly detail: string }[]
}
const documentIn = (out: Buffer): Document => JSON.parse(out.toString())

test('before the first start it fails for missing topics only, and leaves nothing', async t => {
  const prefix = createPrefix(t)
  const topics = await createTopics(t)
  const names = { KAFKA_EVENTS_TOPIC: `${topics.events}-missing`, KAFKA_API_KEYS_TOPIC: `${topics.apiKeys}-missing` }
  const settings = { ...commandSettings(topics, prefix), ...names }
  const ran = await examine(['--json'], settings)
  expect(ran, ran.said).toMatchObject({ code: 1 })
  const failed = documentIn(ran.out).checks.filter(({ outcome }) => outcome === 'failed')
  expect(failed.map(({ check }) => check)).toEqual(Object.values(names).map(name => `topic ${name}`))
  expect(failed[0]?.detail).toContain('npx commission topics')
  expect(await indicesOf(prefix)).toEqual([])
})

test('of a running installation it finds no fault, warns of one copy, and says so in lines', async t => {
  const { topics, prefix } = await startProjection(t, [repRecorded({ org_id: newId('org') })])
  const indices = await indicesOf(prefix)
  const ran = await examine([], commandSettings(topics, prefix))
  expect(ran, `${ran.out}${ran.said}`).toMatchObject({ code: 0 })
  const lines = ran.out.toString().split('\n')
  for (const generation of ['g1', 'api-keys']) {
    const found = new RegExp(`^ok {9}projector {2}projection; generation ${generation} is of topic .*, and its indices`)
    expect(lines).toContainEqual(expect.stringMatching(found))
  }
  expect(lines).toContainEqual(expect.stringMatching(/^warning .*replication factor 1: only one copy exists/))
  expect(lines.at(-2)).toMatch(/^0 failed, \d+ warning, \d+ not tried, \d+ ok$/)
  expect(await indicesOf(prefix)).toEqual(indices)
})

test('it finds the restored index with which a projector ends at its start, and a setting that it puts back', async t => {
  const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: newId('org') })])
  await projector.stop()
  const control = indexNamed(prefix, 'control')
  const id = generationId('api-keys')
  const document = (await storedById(control, id)) as { body: { indices: object } }
  const indices = { ...document.body.indices, [indexNamed(prefix, 'api-keys')]: 'another' }
  await store(control, id, { ...document, body: { ...document.body, indices } })
  await call('PUT', `/${indexWith(indexNamed(prefix, 'reps'))}/_settings`, { index: { refresh_interval: null } })
  const ran = await examine(['projector', '--json'], commandSettings(topics, prefix))
  const { checks } = documentIn(ran.out)
  const failed = checks.filter(({ outcome }) => outcome === 'failed')
  expect([ran.code, failed.map(({ detail }) => detail)]).toEqual([
    1,
    [expect.stringMatching(/: index_replaced: .*-api-keys/)],
  ])
  const warned = checks.filter(({ check }) => check === `index ${indexWith(indexNamed(prefix, 'reps'))}`)
  expect(warned).toEqual([
    expect.objectContaining({
      outcome: 'warning',
      detail: expect.stringMatching(/refresh_interval: expected -1, got nothing/),
    }),
  ])
})

test('it reads the last known record of each partition, and says source_changed before a projector starts', async t => {
  const { topics, prefix, projector } = await startProjection(t, [repRecorded({ org_id: newId('org') })])
  await projector.stop()
  const control = indexNamed(prefix, 'control')
  const detailsOfFailed = async (): Promise<readonly string[]> => {
    const ran = await examine(['projector', '--json'], commandSettings(topics, prefix))
    return documentIn(ran.out)
      .checks.filter(({ outcome }) => outcome === 'failed')
      .map(({ detail }) => detail)
  }
  expect(await detailsOfFailed()).toEqual([])
  const partitions = Array.from({ length: topics.partitions }, (_, partition) => partition)
  const stored = await Promise.all(partitions.map(partition => storedById(control, positionId('g1', partition))))
  const at = stored.findIndex(one => (one as PositionDocument).body.last !== null)
  const { body } = stored[at] as PositionDocument
  const last = { offset: 0, sha256: 'f'.repeat(64) }
  await store(control, positionId('g1', at), { kind: 'position', body: { ...body, last } })
  expect(await detailsOfFailed()).toEqual([expect.stringMatching(/: source_changed: .*: the last record read differs/)])
  await store(control, positionId('g1', at), { kind: 'position', body: { ...body, position: 0, last: null } })
  await store(control, writtenId('g1', at), { kind: 'written', body: last })
  expect(await detailsOfFailed()).toEqual([
    expect.stringMatching(/: source_changed: .*: documents are written .* adopt$/),
  ])
})

test('a wrong setting ends it with exit code 2, and names the setting', async () => {
  const ran = await runCommand(['doctor', 'projector'], { KAFKA_BROKERS: 'x' })
  expect(ran).toMatchObject({ code: 2, said: expect.stringContaining('KAFKA_BROKERS: expected host:port') })
})
