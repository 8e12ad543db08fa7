/**
 * A restore with `--redact` that is killed at each step that changes something, and continued by the same command: the
 * log, the list of changes and the receipt are those of a run that nobody killed. Then a second person is redacted.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { describeSource } from '../../core/log/index.ts'
import { askForTopicIds } from '../../core/log/kafka/patch-topic-ids.ts'
import { contentOf, logOf, newDirectory, settingsOf, timestampTypeOf } from '../support/archives.ts'
import { runCommand } from '../support/commands.ts'
import { payrollRecorded, periodRecorded, repRecorded } from '../support/events.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createTopics, place, type Topics, toMessage } from '../support/topics.ts'

askForTopicIds()
const org = 'org_a'
const named = (id: string, name: string) => repRecorded({ org_id: org, id, name, email: `${name}@example.com` })
const paid = (id: string, rep: string, label: string) =>
  payrollRecorded({ org_id: org, id, rep_id: rep, destination: { type: 'other', label } })
/** Restores at once. Each of them waits 2 s before it appends. */
const AT_ONCE = 4

/** A log of two people, with a transaction that was aborted between its records. */
const publishTwo = async (t: Scope): Promise<Topics> => {
  const topics = await createTopics(t, { partitions: 1 })
  await topics.publish([
    periodRecorded({ org_id: org }),
    named('rep_1', 'canary.perdita'),
    named('rep_2', 'canary.other'),
  ])
  const producer = topics.kafka.producer({ transactionalId: topics.events, maxInFlightRequests: 1 })
  await producer.connect()
  t.onTestFinished(() => producer.disconnect())
  const transaction = await producer.transaction()
  await transaction.send({ topic: topics.events, messages: [toMessage(place(named('rep_1', 'canary.aborted'), 1))] })
  await transaction.abort()
  // Kafka writes the end of a transaction after it has answered. Without a wait, the next record can come before it.
  await eventually(async () =>
    expect(await topics.admin.fetchTopicOffsets(topics.events)).toMatchObject([{ high: '5' }]),
  )
  await topics.publish([paid('payroll_1', 'rep_1', 'canary.konto'), named('rep_1', 'canary.married')])
  return topics
}

const archiveOf = async (t: Scope, topics: Topics): Promise<string> => {
  const directory = await newDirectory(t)
  const ran = await runCommand(['archive', '--to', directory], settingsOf(topics))
  expect(ran.code, ran.said).toBe(0)
  return directory
}

/** New topics, a directory for receipts, a list, and the command that restores into them. */
const setUp = async (
  t: Scope,
  from: string,
  { rep = 'rep_1', keys: given }: { readonly rep?: string; readonly keys?: string } = {},
) => {
  const topics = await createTopics(t, { partitions: 1 })
  const folder = `${await newDirectory(t)}-restored`
  const keys = given ?? join(folder, 'keys')
  const changes = join(folder, 'changes.json')
  mkdirSync(keys, { recursive: true })
  mkdirSync(folder, { recursive: true })
  t.onTestFinished(async () => rmSync(dirname(folder), { recursive: true, force: true }))
  const stepsFile = join(folder, 'steps')
  writeFileSync(stepsFile, '')
  const args = ['restore', '--from', from, '--redact', org, rep, '--changes', changes]
  const run = (more: Readonly<Record<string, string>> = {}) =>
    runCommand(args, { ...settingsOf(topics), SEAL_KEYS_DIR: keys, ...more })
  const preload = pathToFileURL(join(import.meta.dirname, '..', 'support', 'kill-preload.ts')).href
  return {
    ...{ topics, keys, changes },
    run,
    /** Kills the command at a step, if one is given. Returns the steps that it has done. */
    runToStep: async (step?: number): Promise<{ code: number | null; steps: string[] }> => {
      const kill = step === undefined ? {} : { KILL_AT_STEP: String(step) }
      const { code } = await run({ NODE_OPTIONS: `--import ${preload}`, STEPS_FILE: stepsFile, ...kill })
      return { code, steps: readFileSync(stepsFile, 'utf8').split('\n').slice(0, -1) }
    },
  }
}
type Restored = Awaited<ReturnType<typeof setUp>>

/**
 * All that a restore leaves. The time of a receipt is that of the first run that came so far. Its topic is the one of
 * this restore.
 */
const resultOf = async (t: Scope, { topics, keys, changes }: Restored) => {
  const { topic_id: own } = await describeSource(topics.admin, topics.events)
  return {
    log: (await logOf(t, topics, topics.events, 0)).map(contentOf),
    timestampType: await timestampTypeOf(topics.admin, topics.events),
    list: readFileSync(changes, 'utf8'),
    beside: readdirSync(dirname(changes)).sort(),
    receipts: readdirSync(keys).map(name => {
      const { erased_at: _, topic_id, ...receipt } = JSON.parse(readFileSync(join(keys, name), 'utf8'))
      return { name, receipt, isOfTopic: topic_id !== undefined && topic_id === own }
    }),
  }
}

test('a redacting restore that is killed at any step and continued leaves the same log, list and one receipt', async t => {
  const archive = await archiveOf(t, await publishTwo(t))
  const whole = await setUp(t, archive)
  const { code, steps } = await whole.runToStep()
  expect(code).toBe(0)
  const wanted = await resultOf(t, whole)
  expect(wanted).toMatchObject({ timestampType: 'LogAppendTime', beside: ['changes.json', 'keys', 'steps'] })
  expect(wanted.receipts).toMatchObject([{ isOfTopic: true }])
  // A kill at each of them: between the begun receipt and the list, while each is written, at each append, and before
  // the receipt is ended.
  const { key_id } = JSON.parse(wanted.list)
  const at = (name: string): number => steps.findIndex(step => step.startsWith(name))
  const receipt = `${key_id}.erased.json`
  const list = ['open changes.json', 'rename changes.json']
  const inOrder = [`link ${receipt}`, ...list, 'Produce', 'EndTxn', `rename ${receipt}`]
  expect(inOrder.map(at)).toEqual(inOrder.map(at).toSorted((a, b) => a - b))
  expect(at(inOrder[0] ?? '')).toBeGreaterThan(0)
  expect(steps.filter(step => step === 'Produce sent').length).toBeGreaterThanOrEqual(2)

  const left = steps.keys()
  const killNext = async (): Promise<void> => {
    for (const step of left) {
      const one = await setUp(t, archive)
      const killed = await one.runToStep(step)
      expect(killed, `step ${step}`).toEqual({ code: null, steps: steps.slice(0, step) })
      const ran = await one.run()
      expect(ran.code, `killed at step ${step}, ${steps[step]}: ${ran.said}`).toBe(0)
      expect(await resultOf(t, one), `killed at step ${step}, ${steps[step]}`).toEqual(wanted)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, killNext))
})

test('a second person is redacted from an archive of the redacted log, also after a kill, and both lists stay', async t => {
  const first = await setUp(t, await archiveOf(t, await publishTwo(t)))
  const ran = await first.run()
  expect(ran.code, ran.said).toBe(0)
  const list = readFileSync(first.changes, 'utf8')
  const again = await archiveOf(t, first.topics)
  const second = await setUp(t, again, { rep: 'rep_2', keys: first.keys })
  const { steps } = await second.runToStep(11)
  expect(steps).toHaveLength(11)
  const done = await second.run()
  expect(done.code, done.said).toBe(0)

  const log = await logOf(t, second.topics, second.topics.events, 0)
  const before = await logOf(t, first.topics, first.topics.events, 0)
  const visible = (entries: typeof log) => entries.filter(({ kind }) => kind === 'record')
  expect(
    visible(log)
      .map(({ value }) => String(value))
      .join('\n'),
  ).not.toContain('canary')
  expect(
    visible(before)
      .map(({ value }) => String(value))
      .join('\n'),
  ).toContain('canary.other')
  // The texts of the first person are the same sealed ones as before.
  const differing = visible(log).filter(
    (entry, index) => !entry.value?.equals(visible(before)[index]?.value ?? Buffer.of()),
  )
  expect(differing.map(({ offset }) => offset)).toEqual([2])
  expect(readdirSync(first.keys)).toHaveLength(2)

  // The list of the first person is still needed until the work is done: the second run must not replace it.
  const third = await createTopics(t, { partitions: 1 })
  const args = ['restore', '--from', again, '--redact', org, 'rep_2', '--changes', first.changes]
  const refused = await runCommand(args, { ...settingsOf(third), SEAL_KEYS_DIR: second.keys })
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining('it is another list')])
  expect(readFileSync(first.changes, 'utf8')).toBe(list)
  expect(await logOf(t, third, third.events, 0)).toEqual([])
  expect(existsSync(`${first.changes}.new`)).toBe(false)
})
