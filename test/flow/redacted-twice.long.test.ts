/**
 * One person is redacted, their texts are published in the open again, and they are redacted again: each record is
 * decided as before, also by a projection of the new log from its first record on.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { recordHash } from '../../core/ledger/event/decode.ts'
import { type PositionDocument, positionId } from '../../schemas/stored/documents.ts'
import { logOf, newDirectory } from '../support/archives.ts'
import { structured, withText } from '../support/bad-event.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import { payrollRecorded, periodRecorded, repRecorded, withData } from '../support/events.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createKeys } from '../support/seal.ts'
import {
  allStored,
  createPrefix,
  elasticsearchOf,
  everythingProjected,
  indexNamed,
  store,
  storedById,
  toParked,
} from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const org = 'org_a'
const named = (name: string) => repRecorded({ org_id: org, name })
const paid = (label: string) => payrollRecorded({ org_id: org, destination: { type: 'other', label } })

/** The id and version of each document: a decision that differs makes other ones. */
const identities = (stored: Record<string, string[]>): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(stored).map(([kind, lines]) => [kind, lines.map(line => line.split(' ').slice(0, 2).join(' '))]),
  )

/** `redact` puts redacted topics in the place of those of an installation, and adopts them. */
const redactorOf = (t: Scope, topics: Topics, prefix: string) => {
  const keys = createKeys(t, [])
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, SEAL_KEYS_DIR: keys.directory }
  const run = async (...args: string[]) => {
    const ran = await runCommand(args, settings)
    expect(ran.code, ran.said).toBe(0)
  }
  const redact = async (): Promise<Topics> => {
    const directory = await newDirectory(t)
    const changes = `${directory}-changes.json`
    t.onTestFinished(async () => rmSync(changes, { force: true }))
    await run('archive', '--to', directory)
    const names = { events: topics.events, apiKeys: topics.apiKeys }
    await topics.admin.deleteTopics({ topics: Object.values(names) })
    await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(names.events))
    const restored = await createTopics(t, { partitions: 1, named: names })
    await run('restore', '--from', directory, '--redact', org, 'rep_1', '--changes', changes)
    await run('projection', 'adopt', '--archive', directory, '--redacted', changes)
    return restored
  }
  return { keys, redact }
}

test('a rep that is redacted twice is decided as before, and has a receipt of each redaction', async t => {
  const { topics, prefix, projector } = await startProjection(
    t,
    [periodRecorded({ org_id: org }), named('Canary'), paid('Canary Konto')],
    { partitions: 1 },
  )
  const redactor = redactorOf(t, topics, prefix)
  const pastPositions = async (): Promise<number> => {
    const control = `${elasticsearchOf(prefix)}/${prefix}-control`
    await fetch(`${control}/_refresh`, { method: 'POST' })
    const answer = await fetch(`${control}/_search?q=kind:past`)
    return ((await answer.json()) as { hits: { hits: object[] } }).hits.hits.length
  }
  await eventually(async () => expect(await pastPositions()).toBeGreaterThan(0))
  await projector.stop()
  const redact = async (): Promise<Topics> => {
    const restored = await redactor.redact()
    // They had hashes of records with the texts.
    await eventually(async () => expect(await pastPositions()).toBe(0))
    return restored
  }
  const restored = await redact()
  const again = await startProjector(t, { topics: restored, prefix: createPrefix(t) })
  await untilCaughtUp(again)
  await again.stop()
  // Another version, an id that is reused, and the first version once more: all of them in the open.
  await restored.publish([named('Canary Anders'), paid('Canary Konto Anders'), named('Canary')])
  const fresh = createPrefix(t)
  const before = await startProjector(t, { topics: restored, prefix: fresh })
  await untilCaughtUp(before)
  await before.stop()
  const decided = identities(await everythingProjected(fresh))
  expect(decided.parked).toHaveLength(1)
  // The installation itself goes on, too: its positions are adopted.
  const going = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(going)
  await eventually(async () => expect(await pastPositions()).toBeGreaterThan(0))
  await going.stop()

  const twice = await redact()
  const values = (await logOf(t, twice, twice.events, 0)).map(({ value }) => String(value)).join('\n')
  expect(values).not.toContain('Canary')
  const last = createPrefix(t)
  const after = await startProjector(t, { topics: twice, prefix: last })
  await untilCaughtUp(after)
  await after.stop()
  expect(identities(await everythingProjected(last))).toEqual(decided)
  const receipts = readdirSync(redactor.keys.directory).map(name =>
    JSON.parse(readFileSync(join(redactor.keys.directory, name), 'utf8')),
  )
  expect(receipts).toHaveLength(2)
  for (const receipt of receipts) {
    expect(receipt).toMatchObject({ rep: 'rep_1', topic: topics.events })
    expect(receipt).not.toHaveProperty('state')
  }
  const onwards = await startProjector(t, { topics: twice, prefix })
  await untilCaughtUp(onwards)
})

test('copies in both topics are reported, and gone after a redaction; what nobody can read is refused until it is named', async t => {
  const inKeys = { ...named('Canary in Keys'), stream: 'api-keys' } as const
  const text = '{"org_id":"org_a","id":"rep_1","name":"Canary in UTF-16"'
  const { topics, prefix, projector } = await startProjection(
    t,
    [
      periodRecorded({ org_id: org }),
      named('Canary'),
      structured(named(''), { data: undefined, data_base64: Buffer.from(text).toString('base64') }),
      withText(named(''), Buffer.from(text, 'utf16le')),
      { ...withData(named('Canary Mismatch'), { org_id: 'org_b' }), key: org },
      { ...named('Canary Header'), headers: { ...named('').headers, 'x-name': 'Canary' } },
      inKeys,
      withText(inKeys, Buffer.from([1, 2, 3, 0xff])),
    ],
    { partitions: 1 },
  )
  await projector.stop()
  const keys = createKeys(t, [])
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, SEAL_KEYS_DIR: keys.directory }
  const unread = `${topics.apiKeys}:0:1`
  const reported = async () => {
    const ran = await runCommand(['subjects', 'report', org, 'rep_1', '--json'], settings)
    const [{ generations = [] } = {}] = jsonLines(ran) as { generations?: Record<string, unknown>[] }[]
    return generations.map(({ generation, parked, unclear }) => ({ generation, parked, unclear }))
  }
  expect(await reported()).toEqual([
    { generation: 'api-keys', parked: 1, unclear: [unread] },
    { generation: 'g1', parked: 3, unclear: [] },
  ])
  const directory = await newDirectory(t)
  const changes = `${directory}-changes.json`
  t.onTestFinished(async () => rmSync(changes, { force: true }))
  expect((await runCommand(['archive', '--to', directory], settings)).code).toBe(0)
  const names = { events: topics.events, apiKeys: topics.apiKeys }
  await topics.admin.deleteTopics({ topics: Object.values(names) })
  await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(names.events))
  const restored = await createTopics(t, { partitions: 1, named: names })
  const redact = ['restore', '--from', directory, '--redact', org, 'rep_1', '--changes', changes]
  const refused = await runCommand(redact, settings)
  expect([refused.code, refused.said]).toEqual([
    1,
    expect.stringContaining(`may concern rep_1: ${unread}. Look at them`),
  ])
  expect(await logOf(t, restored, restored.apiKeys, 0)).toEqual([])
  expect(readdirSync(keys.directory)).toEqual([])
  const done = await runCommand([...redact, '--also', unread], settings)
  expect(done.code, done.said).toBe(0)
  const adopted = await runCommand(['projection', 'adopt', '--archive', directory, '--redacted', changes], settings)
  expect(adopted.code, adopted.said).toBe(0)
  const all = [...(await logOf(t, restored, restored.events, 0)), ...(await logOf(t, restored, restored.apiKeys, 0))]
  const bytes = Buffer.concat(
    all.flatMap(({ key, value, headers }) => [key ?? Buffer.of(), value ?? Buffer.of(), headers.bytes]),
  )
  for (const hidden of ['Canary', Buffer.from('Canary', 'utf16le'), Buffer.from(text).toString('base64').slice(-20)]) {
    expect(bytes.includes(hidden)).toBe(false)
  }
  const going = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(going)
  const stored = (await allStored(indexNamed(prefix, 'api-keys-parked'))).map(({ source }) => toParked(source))
  expect(stored).toHaveLength(2)
  expect(stored.map(({ value }) => String(value)).join()).not.toContain('Canary')
})

test('documents of a redacted record that were written and not published yet are decided anew', async t => {
  const { topics, prefix, projector } = await startProjection(t, [periodRecorded({ org_id: org }), named('Canary')], {
    partitions: 1,
  })
  await projector.stop()
  const [first] = await logOf(t, topics, topics.events, 0)
  if (first === undefined) throw new Error('no record')
  // As after a kill between writing and publishing the second record.
  const control = indexNamed(prefix, 'control')
  const document = (await storedById(control, positionId('g1', 0))) as PositionDocument
  const body = { ...document.body, position: 1, last: { offset: 0, sha256: recordHash(first) } }
  await store(control, positionId('g1', 0), { ...document, body })
  const restored = await redactorOf(t, topics, prefix).redact()
  const going = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(going)
  expect(JSON.stringify(await everythingProjected(prefix))).not.toContain('Canary')
})
