/**
 * One person is redacted, their texts are published in the open again, and they are redacted again: each record is
 * decided as before, also by a projection of the new log from its first record on.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { logOf, newDirectory } from '../support/archives.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { payrollRecorded, periodRecorded, repRecorded } from '../support/events.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually } from '../support/scope.ts'
import { createKeys } from '../support/seal.ts'
import { createPrefix, everythingProjected } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const org = 'org_a'
const named = (name: string) => repRecorded({ org_id: org, name })
const paid = (label: string) => payrollRecorded({ org_id: org, destination: { type: 'other', label } })

/** The id and version of each document: a decision that differs makes other ones. */
const identities = (stored: Record<string, string[]>): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(stored).map(([kind, lines]) => [kind, lines.map(line => line.split(' ').slice(0, 2).join(' '))]),
  )

test('a rep that is redacted twice is decided as before, and has a receipt of each redaction', async t => {
  const { topics, prefix, projector } = await startProjection(
    t,
    [periodRecorded({ org_id: org }), named('Canary'), paid('Canary Konto')],
    { partitions: 1 },
  )
  await projector.stop()
  const keys = createKeys(t, [])
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, SEAL_KEYS_DIR: keys.directory }
  const run = async (...args: string[]) => {
    const ran = await runCommand(args, settings)
    expect(ran.code, ran.said).toBe(0)
    return ran
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
  await going.stop()

  const twice = await redact()
  const values = (await logOf(t, twice, twice.events, 0)).map(({ value }) => String(value)).join('\n')
  expect(values).not.toContain('Canary')
  const last = createPrefix(t)
  const after = await startProjector(t, { topics: twice, prefix: last })
  await untilCaughtUp(after)
  await after.stop()
  expect(identities(await everythingProjected(last))).toEqual(decided)
  const receipts = readdirSync(keys.directory).map(name => JSON.parse(readFileSync(join(keys.directory, name), 'utf8')))
  expect(receipts).toHaveLength(2)
  for (const receipt of receipts) {
    expect(receipt).toMatchObject({ rep: 'rep_1', topic: topics.events })
    expect(receipt).not.toHaveProperty('state')
  }
  const onwards = await startProjector(t, { topics: twice, prefix })
  await untilCaughtUp(onwards)
}, 240_000)
