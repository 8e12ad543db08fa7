/**
 * The topics are lost. They are restored from an archive on another broker, which the projection adopts. Every answer
 * is what it was before, byte for byte.
 */
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { generationId } from '../../schemas/stored/documents.ts'
import { done, newDirectory, PARTITIONS, publishMixed } from '../support/archives.ts'
import { createClient, lists } from '../support/client.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { keyCreated, newKeyText, repRecorded } from '../support/events.ts'
import { startOwnServer } from '../support/own-services.ts'
import {
  type Api,
  expectRefused,
  projectorSettings,
  startApi,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { everythingProjected, indexNamed, storedById } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

type Answers = Map<string, string>

/** Reads every page of every list and of the feed, every record, and lists as of several moments. */
const readEverything = async (api: Api, key: string): Promise<Answers> => {
  const answers: Answers = new Map()
  const { askInTime: ask } = createClient([api], key)
  const read = async (path: string) => {
    const { status, headers, text } = await ask(path)
    answers.set(path, `${status} ${headers.get('etag')} ${text}`)
    return JSON.parse(text) as { data: { id: string; published_at: string }[]; has_more: boolean; next_cursor: string }
  }
  const walk = async (path: string): Promise<{ id: string; published_at: string }[]> => {
    const all = []
    for (let after = ''; ; ) {
      const { data, has_more, next_cursor } = await read(`${path}${after}`)
      all.push(...data)
      if (!has_more) return all
      after = `&starting_after=${next_cursor}`
    }
  }
  for (const list of lists) for (const { id } of await walk(`/${list}?limit=4`)) await read(`/${list}/${id}`)
  const changes = await walk('/changes?limit=9')
  const [first, middle, last] = [changes[0], changes[Math.floor(changes.length / 2)], changes.at(-1)]
  for (const { id } of changes.filter(change => change.id.startsWith('payout'))) await read(`/statements/${id}`)
  for (const list of lists) {
    await walk(`/${list}?limit=50&as_of=${first?.published_at}`)
    for (const change of [first, middle, last]) await walk(`/${list}?limit=50&as_of=${change?.id}`)
  }
  return answers
}

const expectSameAnswers = async (api: Api, key: string, answers: Answers): Promise<void> => {
  const { askInTime: ask } = createClient([api], key)
  for (const [path, before] of answers) {
    const { status, headers, text } = await ask(path)
    expect(`${status} ${headers.get('etag')} ${text}`, path).toBe(before)
    const [, etag = ''] = before.split(' ')
    if (status === 200) expect((await ask(path, { 'if-none-match': etag })).status, path).toBe(304)
  }
}

const setUp = async (t: Scope) => {
  const random = createRandom(seed)
  const { topics, prefix, projector } = await startProjection(t, [], { partitions: PARTITIONS })
  const [org = ''] = await publishMixed(t, topics, random, 14)
  const key = newKeyText()
  await topics.publish([keyCreated({ org_id: org, id: 'key_client', text: key })])
  const directory = await newDirectory(t)
  await done(['archive', '--to', directory], topics)
  const earlier = join(dirname(directory), 'earlier')
  await cp(directory, earlier, { recursive: true })
  await topics.publish(Array.from({ length: 9 }, (_, index) => repRecorded({ org_id: org, id: `rep_last${index}` })))
  await untilCaughtUp(projector)
  return { topics, prefix, projector, org, key, directory, earlier }
}

// Both mostly wait until projectors have had time to stop.
test.concurrent('a projection continues on restored topics of another broker, with every answer as it was', async t => {
  const broker = await startOwnServer(t, 'kafka')
  const { topics, prefix, projector, org, key, directory, earlier } = await setUp(t)
  const api = await startApi(t, prefix)
  const answers = await readEverything(api, key)
  // Their number depends on the seed: 96 were the fewest seen.
  expect(answers.size).toBeGreaterThan(50)
  await projector.stop()
  await done(['archive', '--to', directory], topics)
  const projected = await everythingProjected(prefix)

  // The log is lost.
  await topics.admin.deleteTopics({ topics: [topics.events, topics.apiKeys] })
  const kafka = broker.address
  const restored = await createTopics(t, { partitions: PARTITIONS, kafka, named: topics })
  const adopt = (archive: string, on = restored): Promise<Ran> =>
    runCommand(['projection', 'adopt', '--json', '--archive', archive], commandSettings(on, prefix))
  const expectNotAdopted = async (archive: string, why: RegExp): Promise<void> => {
    const refused = await adopt(archive)
    expect(refused.said).toMatch(why)
    expect(refused.code).toBe(1)
  }
  await expectRefused(
    startProcess(t, 'projector/main.ts', projectorSettings({ topics: restored, prefix })),
    'source_changed',
  )
  await done(['restore', '--from', earlier], restored)
  await Promise.all([
    expectNotAdopted(earlier, /g1 has read partition \d of \S+ to offset \d+, the archive ends at \d+/),
    expectNotAdopted(directory, /partition \d of \S+ ends at offset \d+, the archive at \d+/),
    refuseDamaged(directory, expectNotAdopted),
  ])
  await done(['restore', '--from', directory], restored)

  const plain = await runCommand(['projection', 'adopt'], commandSettings(restored, prefix))
  expect([plain.code, plain.said]).toEqual([1, expect.stringContaining('adopt --archive DIR')])
  const adopted = await adopt(directory)
  expect(adopted.code, adopted.said).toBe(0)
  expect(jsonLines(adopted)).toMatchObject([{ adopted: ['api-keys', 'g1'] }])
  expect(jsonLines(await adopt(directory))).toMatchObject([{ adopted: [] }])
  const other = await startApi(t, prefix)
  for (const one of [api, other]) await expectSameAnswers(one, key, answers)

  const next = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(next)
  for (const one of [api, other]) await expectSameAnswers(one, key, answers)
  expect(await everythingProjected(prefix)).toEqual(projected)
  await restored.publish([repRecorded({ org_id: org, id: 'rep_new' })])
  await untilCaughtUp(next)
  for (const one of [api, other])
    await eventually(async () => expect((await createClient([one], key).ask('/reps/rep_new')).status).toBe(200))

  // Every document, made anew from the restored topics.
  const settings = { ...commandSettings(restored, prefix), KAFKA_GROUP_ID: prefix }
  expect(await runCommand(['projection', 'rebuild'], settings)).toMatchObject({ code: 0 })
  const verified = await runCommand(['projection', 'verify', 'g1', 'g2'], settings)
  expect(verified.code, verified.said).toBe(0)
})

/** A byte is flipped in one segment, or a segment is lost: both copies are refused, and the segment is named. */
const refuseDamaged = async (
  directory: string,
  expectNotAdopted: (archive: string, why: RegExp) => Promise<void>,
): Promise<void> => {
  const segments = (await readdir(directory, { recursive: true })).filter(name => name.endsWith('.zst')).sort()
  const [name = ''] = segments
  const damaged = async (how: string, damage: (file: string) => Promise<void>): Promise<string> => {
    const copy = join(dirname(directory), how)
    await cp(directory, copy, { recursive: true })
    await damage(join(copy, name))
    return copy
  }
  const flipped = await damaged('flipped', async file => {
    const bytes = await readFile(file)
    bytes.writeUInt8(bytes.readUInt8(30) ^ 4, 30)
    await writeFile(file, bytes)
  })
  await expectNotAdopted(flipped, new RegExp(`${name}: its bytes were changed`))
  const lost = await damaged('lost', file => rm(file))
  await expectNotAdopted(lost, /the segment that begins with offset 0 is lost/)
}

test.concurrent('a mirrored cluster with other records, or more of them, is refused, and then adopted as an equal one', async t => {
  const broker = await startOwnServer(t, 'kafka')
  const { topics, prefix, projector } = await startProjection(t, [], { partitions: PARTITIONS })
  const directory = await newDirectory(t)
  const reps = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => repRecorded({ org_id: 'org_1', id: `rep_${from + index}` }))
  const key = newKeyText()
  await topics.publish([keyCreated({ org_id: 'org_1', text: key }), ...reps(0, 30)])
  await untilCaughtUp(projector)
  await projector.stop()
  await done(['archive', '--to', directory], topics)

  const kafka = broker.address
  const mirror = await createTopics(t, { partitions: PARTITIONS, kafka, named: topics })
  const adopt = (to: Topics = mirror) =>
    runCommand(['projection', 'adopt', '--archive', directory], commandSettings(to, prefix))
  await done(['restore', '--from', directory], mirror)
  await mirror.publish(reps(30, 1))
  const longer = await adopt()
  expect(longer.said).toMatch(/partition \d of \S+ has a record at offset \d+: the archive ends there/)
  expect(longer.code).toBe(1)
  await expectRefused(
    startProcess(t, 'projector/main.ts', projectorSettings({ topics: mirror, prefix })),
    'source_changed',
  )

  // The same records at the same offsets, at another time.
  await mirror.admin.deleteTopics({ topics: [mirror.events, mirror.apiKeys] })
  await eventually(async () => expect(await mirror.admin.listTopics()).not.toContain(mirror.events))
  const later = await createTopics(t, { partitions: PARTITIONS, kafka, named: topics })
  await later.publish([keyCreated({ org_id: 'org_1', text: key }), ...reps(0, 30)])
  const refused = await adopt(later)
  expect(refused.said).toMatch(/partition \d of \S+ differs from the archive at offset 0/)
  expect(refused.code).toBe(1)

  // Nothing was changed.
  const { clusterId } = await topics.admin.describeCluster()
  const identity = await storedById(indexNamed(prefix, 'control'), generationId('g1'))
  expect(identity).toMatchObject({ body: { cluster_id: clusterId } })

  await later.admin.deleteTopics({ topics: [later.events, later.apiKeys] })
  await eventually(async () => expect(await later.admin.listTopics()).not.toContain(later.events))
  const equal = await createTopics(t, { partitions: PARTITIONS, kafka, named: topics })
  await done(['restore', '--from', directory], equal)
  // The old cluster still runs: a projector that continues there must not publish.
  const adopted = await adopt(equal)
  expect(adopted.code, adopted.said).toBe(0)
  await expectRefused(startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix })), 'source_changed')
  const next = await startProjector(t, { topics: equal, prefix })
  await equal.publish(reps(40, 3))
  await untilCaughtUp(next)
})
