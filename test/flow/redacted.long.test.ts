/**
 * A log that is restored without the texts of one person, which were published in the open: the same decisions at the
 * same offsets, other texts in exactly these fields, and a rebuild after which no document has the texts.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { recordHash } from '../../core/ledger/event/decode.ts'
import { encodeHeaders } from '../../core/log/kafka/encoded-headers.ts'
import { readSealKey } from '../../core/reading/sealed/key-directory.ts'
import { logOf, newDirectory } from '../support/archives.ts'
import { structured, withText } from '../support/bad-event.ts'
import { checkpointNow } from '../support/checkpoints.ts'
import { createClient } from '../support/client.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  newKeyText,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  withData,
} from '../support/events.ts'
import {
  expectRefused,
  projectorSettings,
  startApi,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually } from '../support/scope.ts'
import { createKeys, seal } from '../support/seal.ts'
import { createPrefix, everythingProjected } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const org = 'org_a'
const paid = (id: string, label: string, more = {}) =>
  payrollRecorded({ org_id: org, id, destination: { type: 'other', label }, ...more })
const sealedName = seal('Canary Sealed', { org, record: 'rep_1', field: 'name', keyId: 'k1' })
const perdita = (data = {}) => repRecorded({ org_id: org, name: 'Canary Perdita', ...data })

/** Of rep_1 of org_a: each record with its offset, and whether it has a text in the open. */
const events = [
  [false, periodRecorded({ org_id: org })],
  [true, perdita()],
  [true, perdita({ email: 'canary.perdita@example.com' })],
  // A duplicate.
  [true, perdita({ email: 'canary.perdita@example.com' })],
  // Only the name differs; then it repeats an older version.
  [true, perdita({ name: 'Canary Perdita Married' })],
  [true, perdita()],
  [false, perdita({ name: sealedName })],
  [true, perdita()],
  [false, repRecorded({ org_id: org, id: 'rep_2', name: 'Canary Other', email: 'canary.other@example.com' })],
  [false, repRecorded({ org_id: 'org_b', name: 'Canary Namesake' })],
  [false, payoutCalculated({ org_id: org })],
  [true, paid('payroll_1', 'Canary Konto')],
  // A duplicate, and an id that is reused: only the label differs.
  [true, paid('payroll_1', 'Canary Konto')],
  [true, paid('payroll_1', 'Canary Konto Anders')],
  [false, payrollVoided({ org_id: org })],
  [true, paid('payroll_3', 'Canary Konto')],
  [true, paid('payroll_9', 'Canary Konto', { period_id: 'period_9' })],
  [true, perdita({ name: `Canary Perdita ${'x'.repeat(1000)}` })],
  [true, perdita({ name: 'sealed:v1:Canary Perdita' })],
  [true, withData(perdita(), { name: { first: 'Canary Perdita' } })],
  [true, structured(perdita({ name: 'Canary Perdita Structured' }))],
  [true, withText(perdita(), '{"org_id":"org_a","id":"rep_1","name":"Canary Perdita"')],
  [true, { ...perdita(), headers: { ...perdita().headers, ce_type: 'commission.rep.recorded.v9' } }],
  [false, periodRecorded({ org_id: org, id: 'period_2', name: 'Second' })],
] as const
const FORGOTTEN = /Canary (Perdita|Konto)|canary\.perdita/
const KEPT = ['Canary Other', 'canary.other@example.com', 'Canary Namesake', sealedName]

/** The paths at which two values differ. */
const differences = (a: unknown, b: unknown, path = ''): string[] => {
  if (a === b) return []
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return [path]
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  const member = (of: object, name: string): unknown => Object.entries(of).find(([one]) => one === name)?.[1]
  return [...names].flatMap(name => differences(member(a, name), member(b, name), `${path}.${name}`))
}
const parsed = (line: string) => {
  const [id = '', version = '', ...json] = line.split(' ')
  return { id, version, source: JSON.parse(json.join(' ')) }
}
const texts = (stored: Record<string, string[]>): string =>
  JSON.stringify(stored, (_, line) => {
    if (typeof line !== 'string') return line
    const { value } = parsed(line).source.body ?? {}
    return typeof value === 'string' ? `${line} ${Buffer.from(value, 'base64')}` : line
  })

// Both mostly wait until projectors have had time to stop.
test.concurrent('a redacted log is decided as before, and differs in exactly the fields of the person', async t => {
  const fresh = createPrefix(t)
  const keys = createKeys(t, ['k1'])
  const directory = await newDirectory(t)
  const text = newKeyText()
  const records = [keyCreated({ org_id: org, text }), ...events.map(([, event]) => event)]
  const { topics, prefix, projector } = await startProjection(t, records, { partitions: 1 })
  await projector.stop()
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, SEAL_KEYS_DIR: keys.directory }
  const run = async (...args: string[]) => {
    const ran = await runCommand(args, settings)
    expect(ran.code, ran.said).toBe(0)
    expect(ran.said).not.toMatch(/canary/i)
    return ran
  }
  await run('archive', '--to', directory)
  const copy = ['projection', 'export', '--org', org, '--out', await newDirectory(t), '--add']
  await run(...copy)
  const log = await logOf(t, topics, topics.events, 0)
  const before = await everythingProjected(prefix)
  expect(texts(before)).toMatch(FORGOTTEN)
  const checkpoint = await checkpointNow(t, prefix, text)

  // The topics are made anew, with their names.
  const named = { events: topics.events, apiKeys: topics.apiKeys }
  await topics.admin.deleteTopics({ topics: Object.values(named) })
  await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(named.events))
  const restored = await createTopics(t, { partitions: 1, named })
  const changes = `${directory}-changes.json`
  t.onTestFinished(async () => rmSync(changes, { force: true }))
  const redact = ['restore', '--from', directory, '--redact', org, 'rep_1', '--changes', changes]
  const unset = await runCommand(redact, commandSettings(topics, prefix))
  expect([unset.code, unset.said]).toEqual([1, expect.stringContaining('SEAL_KEYS_DIR is not set')])
  await run(...redact)
  // The same command finds that all is done; the archive itself is another log now.
  const listed = readFileSync(changes, 'utf8')
  await run(...redact)
  expect(readFileSync(changes, 'utf8')).toBe(listed)
  const plain = await runCommand(['restore', '--from', directory], settings)
  expect([plain.code, plain.said]).toEqual([
    1,
    expect.stringMatching(/differs from the archive at offset 1: delete and create the topics first/),
  ])
  const none = await runCommand([...redact.slice(0, 5), 'rep_9', ...redact.slice(6)], settings)
  expect([none.code, none.said]).toEqual([1, expect.stringContaining('rep_9 of org_a has no text in the open')])

  // The log: offsets, times, keys and headers as before; the list names each difference, and no content.
  const redacted = await logOf(t, restored, restored.events, 0)
  const differing = log.flatMap((entry, index) => {
    const now = redacted[index]
    if (now === undefined) throw new Error('the log is shorter')
    // Of a record that cannot be decoded, the headers go, too.
    const isUndecodable = String(now.value) === 'redacted'
    const headers = isUndecodable ? encodeHeaders([]) : entry.headers
    expect({ ...now, value: null }).toEqual({ ...entry, headers, value: null })
    const hashes = { before: recordHash(entry), after: recordHash(now) }
    return hashes.before === hashes.after ? [] : [{ stream: 'events', partition: 0, offset: entry.offset, ...hashes }]
  })
  expect(redacted.length).toBe(log.length)
  const list = JSON.parse(listed)
  expect(list.changes.map(({ fields: _, ...change }: { fields: string[] }) => change)).toEqual(differing)
  expect(differing.map(({ offset }) => offset)).toEqual(events.flatMap(([isOpen], offset) => (isOpen ? [offset] : [])))
  expect(list).toMatchObject({ organization: org, rep: 'rep_1', topics: { events: topics.events } })
  expect(listed).not.toMatch(/canary/i)
  const values = redacted.map(({ value }) => String(value)).join('\n')
  expect(values).not.toMatch(FORGOTTEN)
  for (const kept of KEPT) expect(values).toContain(kept)
  expect(existsSync(join(keys.directory, `${list.key_id}.erased.json`))).toBe(true)
  expect(readdirSync(keys.directory).length).toBe(2)

  // A new projection of it: every decision is the same, and so is every document, except in these fields.
  const again = await startProjector(t, { topics: restored, prefix: fresh })
  await untilCaughtUp(again)
  await again.stop()
  const after = await everythingProjected(fresh)
  expect(Object.keys(after)).toEqual(Object.keys(before))
  const paths = Object.entries(before).flatMap(([kind, lines]) => {
    const now = after[kind] ?? []
    expect([kind, now.length]).toEqual([kind, lines.length])
    return lines.flatMap((line, index) => {
      const [was, is] = [parsed(line), parsed(now[index] ?? '')]
      expect([is.id, is.version]).toEqual([was.id, was.version])
      return differences(was.source, is.source).map(path => `${kind} ${path}`)
    })
  })
  // Sizes and hashes follow from the texts.
  expect(new Set(paths.map(path => path.replace(/\.\d+\./, '.n.').replace(/(headers)\..*/, '$1')))).toEqual(
    new Set([
      ...['reps .body.name', 'reps .body.email', 'reps .hash', 'reps .body_bytes', 'reps .body.versions.n.hash'],
      ...['payroll_files .body.destination.label', 'payroll_files .hash', 'payroll_files .body_bytes'],
      ...['parked .body.value', 'parked .body_bytes', 'parked .body.headers'],
    ]),
  )
  expect(texts(after)).not.toMatch(FORGOTTEN)
  // A copy from before is still proved.
  expect(await checkpointNow(t, fresh, text)).toEqual(checkpoint)

  // The installation goes on with the redacted log. After a rebuild no document has the texts.
  await run('projection', 'adopt', '--archive', directory, '--redacted', changes)
  const going = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(going)
  await run('projection', 'rebuild')
  const verified = await runCommand(['projection', 'verify', 'g1', 'g2'], settings)
  expect(verified.code, verified.said).toBe(1)
  expect(verified.said).toContain('only the first 10 differing records are shown')
  await run(...copy)
  await run('projection', 'swap', 'g2', '--force', 'rep_1 is redacted')
  const grown = await runCommand(copy, settings)
  expect([grown.code, grown.said]).toEqual([1, expect.stringContaining('forgotten since: rep_1. Make a copy anew: ')])
  expect(grown.said).not.toMatch(/canary/i)
  await going.stop()
  await run('projection', 'drop', 'g1')
  await restored.publish([repRecorded({ org_id: org, id: 'rep_4', name: 'Dan' })])
  const last = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(last)
  const api = await startApi(t, prefix, { settings: { SEAL_KEYS_DIR: keys.directory } })
  const client = createClient([api], text)
  const answers = await Promise.all(
    ['/reps', '/changes', '/payroll_files', '/reps/rep_1'].map(path => client.askInTime(path)),
  )
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(answers.map(({ text }) => text).join()).not.toMatch(FORGOTTEN)
  expect(JSON.parse(answers[3]?.text ?? '').data).toMatchObject({ id: 'rep_1', name: '', erased: true })
  expect(answers[0]?.text).toContain('Canary Other')
})

test.concurrent('a projection that has read a redacted record last adopts the log with the list, and only the log that it names', async t => {
  const topics = await createTopics(t, { partitions: 1 })
  const prefix = createPrefix(t)
  const keys = createKeys(t, [])
  const directory = await newDirectory(t)
  const changes = `${directory}-changes.json`
  t.onTestFinished(async () => rmSync(changes, { force: true }))
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix, SEAL_KEYS_DIR: keys.directory }
  const adopt = ['projection', 'adopt', '--archive', directory, '--redacted', changes, '--json']
  const run = async (...args: string[]) => {
    const ran = await runCommand(args, settings)
    expect(ran.code, ran.said).toBe(0)
    return ran
  }
  const refused = async (why: RegExp) => {
    const ran = await runCommand(adopt, settings)
    expect([ran.code, ran.said]).toEqual([1, expect.stringMatching(why)])
  }
  const projector = await startProjector(t, { topics, prefix })
  await topics.publish([periodRecorded({ org_id: org }), perdita(), perdita({ status: 'departed' })])
  await untilCaughtUp(projector)
  await projector.stop()
  await run('archive', '--to', directory)
  const projected = await everythingProjected(prefix)

  const named = { events: topics.events, apiKeys: topics.apiKeys }
  const restore = async (...redact: string[]) => {
    await topics.admin.deleteTopics({ topics: Object.values(named) })
    await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(named.events))
    const restored = await createTopics(t, { partitions: 1, named })
    const { said } = await run('restore', '--from', directory, ...redact)
    return { ...restored, said }
  }
  const redact = ['--redact', org, 'rep_1', '--changes', changes]
  await restore(...redact)
  const [receipt = ''] = readdirSync(keys.directory)
  const receiptText = () => readFileSync(join(keys.directory, receipt), 'utf8')
  expect(JSON.parse(receiptText())).toMatchObject({ organization: org, rep: 'rep_1' })
  expect(JSON.parse(receiptText())).not.toHaveProperty('state')
  expect(JSON.parse(receiptText())).toHaveProperty('topic_id')
  // The log as it was is not the one that the list names.
  const plain = await restore()
  expect(plain.said).toContain('warning: rep_1 of org_a was redacted at ')
  expect(plain.said).toContain('; no text was redacted')
  await refused(/partition 0 of \S+ differs from the archive at offset 1/)
  const restored = await restore(...redact)
  // The projector would refuse these topics, so the list must be named.
  const forgotten = await runCommand(adopt.toSpliced(4, 2), settings)
  expect([forgotten.code, forgotten.said]).toEqual([1, expect.stringContaining('Add --redacted FILE')])
  await expectRefused(
    startProcess(t, 'projector/main.ts', projectorSettings({ topics: restored, prefix })),
    'source_changed',
  )

  const list = readFileSync(changes, 'utf8')
  writeFileSync(changes, list.replace(/"after": "./, '"after": "_'))
  await refused(/is not the list of this archive/)
  writeFileSync(changes, list.replace('"rep_1"', '"rep_2"'))
  await refused(/rep_2 of org_a has no text in the open.* the list of this archive\?/)
  writeFileSync(changes, list)
  const adopted = await run(...adopt)
  expect(jsonLines(adopted)).toMatchObject([{ adopted: ['api-keys', 'g1'] }])
  // An interrupted run can be repeated.
  await run(...adopt)
  const next = await startProjector(t, { topics: restored, prefix })
  await untilCaughtUp(next)
  expect(await everythingProjected(prefix)).toEqual(projected)
  await restored.publish([repRecorded({ org_id: org, id: 'rep_4', name: 'Dan' })])
  await untilCaughtUp(next)
  await next.stop()

  // A redaction that was stopped: without --redact, nothing is appended.
  rmSync(join(keys.directory, receipt))
  await topics.admin.deleteTopics({ topics: Object.values(named) })
  await eventually(async () => expect(await topics.admin.listTopics()).not.toContain(named.events))
  await createTopics(t, { partitions: 1, named })
  const preload = `--import ${pathToFileURL(join(import.meta.dirname, '../support/kill-preload.ts')).href}`
  const afterReceipt = { STEPS_FILE: `${directory}-steps`, KILL_AFTER: '^link .*erased\\.json$' }
  t.onTestFinished(async () => rmSync(`${directory}-steps`, { force: true }))
  const killing = { ...settings, ...afterReceipt, NODE_OPTIONS: preload }
  const killed = await runCommand(['restore', '--from', directory, ...redact], killing)
  expect(killed.code, killed.said).toBe(null)
  expect(JSON.parse(receiptText())).toMatchObject({ state: 'begun', rep: 'rep_1' })
  const ends = () => topics.admin.fetchTopicOffsets(named.events)
  const before = await ends()
  const withoutRedact = await runCommand(['restore', '--from', directory], settings)
  expect([withoutRedact.code, withoutRedact.said]).toEqual([
    1,
    expect.stringContaining('Repeat it with --redact org_a'),
  ])
  expect(await ends()).toEqual(before)
  expect(await readSealKey(keys.directory, receipt.replace('.erased.json', ''))).toEqual({ state: 'destroyed' })
  const type = kafkajs.ConfigResourceTypes.TOPIC
  const kept = { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' }
  const all = Object.entries({ ...kept, 'message.timestamp.type': 'CreateTime' })
  const configEntries = all.map(([name, value]) => ({ name, value }))
  await topics.admin.alterConfigs({ validateOnly: false, resources: [{ type, name: named.apiKeys, configEntries }] })
  const resumed = await run('restore', '--from', directory, ...redact)
  // Restore sets it back itself.
  expect(resumed.said).not.toContain('LogAppendTime')
  expect(JSON.parse(receiptText())).not.toHaveProperty('state')

  // The archive ends before the projection.
  await restore(...redact)
  const short = await runCommand(adopt.toSpliced(4, 2), settings)
  const what = /g1 has read partition 0 of \S+ to offset 4, the archive ends at 3\. Nothing is changed/
  expect([short.code, short.said]).toEqual([1, expect.stringMatching(what)])
})
