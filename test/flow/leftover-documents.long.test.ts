/**
 * A projector is killed between writing and publishing, and the topics come back without the records that it wrote.
 * After `adopt` no document of them is left: the documents are those that a rebuild makes.
 */
import { expect, test } from 'vitest'
import { done, newDirectory, PARTITIONS } from '../support/archives.ts'
import { commandSettings, type Ran, runCommand } from '../support/commands.ts'
import { type Plan, reached, startCrashing } from '../support/crashes.ts'
import {
  keyCreated,
  keyRevoked,
  line,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { startOwnServer } from '../support/own-services.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { allStored, call, everythingProjected, indexNamed } from '../support/stored.ts'
import { organizationsIn } from '../support/streams.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

const GHOST = 'payout_ghost'
const large = { net_amount: '999999.00', earned_amount: '999999.00' }

/** The log up to the end of the archive: both organizations have a chain, and one has a payment. */
const archivedRecords = (organizations: readonly string[]): Outgoing[] =>
  organizations.flatMap(org_id => [
    repRecorded({ org_id }),
    periodRecorded({ org_id }),
    payoutCalculated({ org_id, id: 'payout_1' }),
    payoutCalculated({ org_id, id: 'payout_2', supersedes_id: 'payout_1' }),
    payrollRecorded({ org_id, id: 'payroll_1', payout_id: 'payout_2' }),
    payoutCalculated({ org_id, id: 'payout_early', rep_id: 'rep_unknown' }),
  ])

/** Records that no archive has. They make documents of each kind, and touch older ones of each kind. */
const lostRecords = (org_id: string): Outgoing[] => [
  payoutCalculated({ org_id, id: GHOST, supersedes_id: 'payout_2', ...linesOf(large) }),
  repRecorded({ org_id, name: 'Ghost' }),
  repRecorded({ org_id, id: 'rep_ghost' }),
  periodRecorded({ org_id, name: 'Ghost' }),
  payrollVoided({ org_id, id: 'payroll_ghost', reverses_id: 'payroll_1' }),
  payoutCalculated({ org_id, id: 'payout_ghost_of_rep', rep_id: 'rep_ghost', ...linesOf(large) }),
  payoutCalculated({ org_id, id: 'payout_parked', rep_id: 'rep_unknown' }),
]
const linesOf = (data: typeof large) => ({
  ...data,
  line_items: [line({ amount: data.net_amount })],
})

/** Records that come to the offsets of the lost ones, and further ones. */
const laterRecords = (org_id: string): Outgoing[] => [
  repRecorded({ org_id, id: 'rep_2' }),
  payoutCalculated({ org_id, id: 'payout_3', supersedes_id: 'payout_2' }),
  payoutCalculated({ org_id, id: 'payout_4', rep_id: 'rep_2' }),
  payrollVoided({ org_id, id: 'payroll_2', reverses_id: 'payroll_1' }),
  ...Array.from({ length: 10 }, (_, index) => repRecorded({ org_id, id: `rep_later${index}` })),
]

const setUp = async (t: Scope) => {
  const organizations = organizationsIn(createRandom(seed), [0, 1], PARTITIONS)
  const key = keyCreated({ org_id: organizations[0] ?? '', id: 'key_1', text: newKeyText() })
  const records = [...archivedRecords(organizations), key]
  const { topics, prefix, projector } = await startProjection(t, records, { partitions: PARTITIONS })
  await projector.stop()
  const directory = await newDirectory(t)
  await done(['archive', '--to', directory], topics)
  return { topics, prefix, org: organizations[0] ?? '', directory, projected: await everythingProjected(prefix) }
}

/** Publishes records, and kills the projector that has written them, or some of their documents. */
const writeAndKill = async (t: Scope, topics: Topics, prefix: string, records: Outgoing[], point: Plan['point']) => {
  await topics.publish(records)
  const crashing = await startCrashing(t, { topics, prefix }, { point, time: 1, fate: 'killed', seed })
  await reached(crashing)
  await crashing.exited
}

/** The topics are lost, and come back from the archive. */
const bringBack = async (t: Scope, topics: Topics, directory: string, kafka?: string): Promise<Topics> => {
  await topics.admin.deleteTopics({ topics: [topics.events, topics.apiKeys] })
  await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(topics.events))
  const restored = await createTopics(t, { partitions: PARTITIONS, named: topics, ...(kafka && { kafka }) })
  await done(['restore', '--from', directory], restored)
  return restored
}

const adopt = (topics: Topics, prefix: string, directory: string): Promise<Ran> =>
  runCommand(['projection', 'adopt', '--archive', directory], settingsOf(topics, prefix))
const settingsOf = (topics: Topics, prefix: string) => ({ ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })

const expectAsRebuilt = async (topics: Topics, prefix: string): Promise<void> => {
  const rebuilt = await runCommand(['projection', 'rebuild'], settingsOf(topics, prefix))
  expect(rebuilt.code, rebuilt.said).toBe(0)
  const verified = await runCommand(['projection', 'verify', 'g1', 'g2'], settingsOf(topics, prefix))
  expect(verified.code, `${verified.out}${verified.said}`).toBe(0)
}

const cases = [
  { what: 'all records', point: 'before publish', where: 'the same cluster' },
  { what: 'some documents of a batch', point: 'amid write', where: 'another cluster' },
] as const

test.concurrent.for(cases)(
  'adopt removes $what that the archive does not have, on $where',
  async ({ point, where }, t) => {
    const { topics, prefix, org, directory, projected } = await setUp(t)
    // Otherwise adopt waits a minute, as for the keys below.
    await call('PUT', `/${prefix}-*/_settings`, { index: { gc_deletes: '1s' } })
    await writeAndKill(t, topics, prefix, lostRecords(org), point)
    expect(await everythingProjected(prefix)).not.toEqual(projected)
    const kafka = where === 'another cluster' ? (await startOwnServer(t, 'kafka')).address : undefined
    const restored = await bringBack(t, topics, directory, kafka)
    const adopted = await adopt(restored, prefix, directory)
    expect(adopted.code, adopted.said).toBe(0)
    if (point === 'before publish') expect(adopted.said).toContain(`payouts ${org}:${GHOST}`)
    expect(await everythingProjected(prefix)).toEqual(projected)

    await restored.publish(laterRecords(org))
    const next = await startProjector(t, { topics: restored, prefix })
    await untilCaughtUp(next)
    const payouts = (await allStored(indexNamed(prefix, 'payouts'))).map(({ id }) => id)
    expect(payouts).toContain(`${org}:payout_3`)
    expect(payouts.filter(id => id.includes('ghost'))).toEqual([])
    await expectAsRebuilt(restored, prefix)
  },
)

test.concurrent('a key that no log has is removed, and one that no log revokes is named and valid again', async t => {
  const { topics, prefix, org, directory, projected } = await setUp(t)
  const lost = [
    keyCreated({ org_id: org, id: 'key_ghost', text: newKeyText() }),
    keyRevoked({ org_id: org, id: 'key_1' }),
  ]
  await writeAndKill(t, topics, prefix, lost, 'before publish')
  expect(await everythingProjected(prefix)).not.toEqual(projected)
  const restored = await bringBack(t, topics, directory)
  const adopted = await adopt(restored, prefix, directory)
  expect(adopted.code, adopted.said).toBe(0)
  expect(adopted.said).toContain(`key_1 of ${org} is not revoked in the log`)
  expect(await everythingProjected(prefix)).toEqual(projected)
  const next = await startProjector(t, { topics: restored, prefix })
  await restored.publish([
    keyRevoked({ org_id: org, id: 'key_1' }),
    keyCreated({ org_id: org, id: 'key_ghost', text: newKeyText() }),
  ])
  await untilCaughtUp(next)
})
