/** The example publishers in four languages choose the partition that the projector expects, and tell the outcome. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import {
  dataOf,
  keyCreated,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  periodRecorded,
  repRecorded,
  step,
  withData,
} from '../support/events.ts'
import { startOwnServer } from '../support/own-services.ts'
import { type Projector, untilCaughtUp } from '../support/processes.ts'
import { goProgram, javaProgram, mavenProgram, npmProgram, pythonProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { programCopy } from '../support/run-copy.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { createKeys, seal } from '../support/seal.ts'
import { allStored, everythingProjected } from '../support/stored.ts'

const ORGANIZATIONS = 2_000
/** Prime: a wrong partitioner would rarely be right. */
const PARTITIONS = 7

const publishers = [
  { folder: 'typescript', programs: [npmProgram] },
  { folder: 'python', programs: [pythonProgram] },
  { folder: 'go', programs: [goProgram] },
  { folder: 'java', programs: [javaProgram, mavenProgram] },
] as const

/** Nothing listens here. */
const NOWHERE = '127.0.0.1:1'
const STACK_TRACE = /Traceback|goroutine|^\s+at |SLF4J/m

const MiB = 1024 * 1024

/** The inputs of a step, of about this many bytes as JSON. */
const inputsOf = (bytes: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: bytes / 1_000 }, (_, index) => [`input ${index}`, 'é'.repeat(490)]))

const lineOf = (record: Outgoing): string => JSON.stringify({ type: record.headers.ce_type, data: dataOf(record) })

/** A program asks once for a receipt, for 60 s at most. */
const ANSWER_WITHIN = 55_000

/**
 * Passes the requests of a program on to a projector, and each again while the records of a receipt are not published
 * or the read of it was not in time: a busy machine is slow. Returns the address.
 */
const startPatientAdmin = async (t: Scope, { ask }: Projector): Promise<string> => {
  const server = createServer(({ url }, response) => {
    const final = async () => {
      const answer = await ask(url as Parameters<typeof ask>[0])
      expect(answer.status, answer.text).not.toBe(503)
      expect(answer.text).not.toMatch(/"not_yet":[1-9]/)
      return answer
    }
    eventually(final, { within: ANSWER_WITHIN }).then(
      ({ status, text }) => response.writeHead(status).end(text),
      error => response.writeHead(504).end(String(error)),
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const setUp = async (t: Scope) => {
  const records = [keyCreated({ org_id: 'org_0', id: 'key_1', text: newKeyText() })]
  const { topics, prefix, projector } = await startProjection(t, records, { partitions: PARTITIONS })
  const ADMIN = await startPatientAdmin(t, projector)
  const environment = { KAFKA_BROKERS: topics.brokers, TOPIC: topics.events, ADMIN }
  /** The number of records in each partition of the topic of events. */
  const ends = async () =>
    (await topics.admin.fetchTopicOffsets(topics.events))
      .map(({ partition, high }) => [partition, Number(high)] as const)
      .sort(([one], [other]) => one - other)
  return { topics, prefix, projector, environment, ends }
}

const scope = fileScope()
type Run = Awaited<ReturnType<typeof programCopy>>
/** One copy for all tests: a second run has its packages, and what it built. */
const runnerOf = (folder: string): Run => {
  let copy: Promise<Run> | undefined
  return async (environment, input) => {
    copy ??= programCopy(scope, `../docs/examples/publish/${folder}`)
    return (await copy)(environment, input)
  }
}
const runnable = publishers.map(publisher => ({ ...publisher, run: runnerOf(publisher.folder) }))

/** Starts at the first call. */
const once = <Started>(start: () => Promise<Started>): (() => Promise<Started>) => {
  let started: Promise<Started> | undefined
  return () => (started ??= start())
}
const brokerThatCreatesTopics = once(() =>
  startOwnServer(scope, 'kafka', { settings: { 'auto.create.topics.enable': 'true' } }),
)
/** For all tests in which nothing is sent. */
const unusedInstallation = once(() => setUp(scope))

for (const { folder, programs, run } of runnable) {
  describe.skipIf(programs.includes(undefined))(`the publisher in ${folder}`, () => {
    test(`publishes events of ${ORGANIZATIONS} organizations and prints the receipts of all; none is parked`, async t => {
      const { prefix, projector, environment, ends } = await setUp(t)
      const events = Array.from({ length: ORGANIZATIONS }, (_, n) =>
        lineOf(repRecorded({ org_id: `org_${(n * 2_654_435_761).toString(36)}`, id: 'rep_1', name: 'Zoë 😀' })),
      )
      const { code, lines, stderr } = await run(environment, `\n${events.join('\n')}\n  \n\n`)
      expect(code, stderr).toBe(0)
      expect(stderr).not.toMatch(STACK_TRACE)
      expect(stderr).not.toContain('TimeoutNegativeWarning')
      const receipts = lines.map(line => JSON.parse(line)).sort((one, other) => one.partition - other.partition)
      expect(receipts).toEqual(
        (await ends()).map(([partition, count]) =>
          expect.objectContaining({ partition, from: 0, to: count - 1, published: count, parked: 0, not_yet: 0 }),
        ),
      )
      await untilCaughtUp(projector)
      const countIn = async (kind: string) => (await allStored(`${prefix}-g1-${kind}`)).length
      expect([await countIn('parked'), await countIn('reps')]).toEqual([0, 2 * ORGANIZATIONS])
    })

    test('exits with 1 and prints the parked record if only the last event of several is bad', async t => {
      const { environment, topics } = await setUp(t)
      const { TOPIC, ...others } = environment
      const org_id = 'org_1'
      const good = payoutRecorded({ org_id })
      const bad = withData(payoutRecorded({ org_id, id: 'payout_2' }), { net_amount: '100.01' })
      const events = [repRecorded({ org_id }), periodRecorded({ org_id }), good, bad]
      const ended = await run({ ...others, KAFKA_EVENTS_TOPIC: TOPIC }, events.map(lineOf).join('\n'))
      expect(ended.code, ended.stderr).toBe(1)
      expect(ended.lines.map(line => JSON.parse(line))).toMatchObject([
        {
          ...{ topic: topics.events, from: 0, to: 3, published: 3, parked: 1, not_yet: 0 },
          parked_records: [{ offset: 3, code: 'lines_do_not_sum' }],
        },
      ])
      expect(ended.stderr).toMatch(/^partition \d: 3 published, 1 parked, 0 not yet published$/m)
    })

    test('seals the personal texts of a line with a seal key, to the same bytes as every other publisher', async t => {
      const { environment, prefix, projector } = await setUp(t)
      const { directory } = createKeys(t, ['k1'])
      const org = 'org_1'
      const name = 'Zoë 😀 "é"'
      const rep = repRecorded({ org_id: org, name, email: 'zoe@example.com' })
      const paid = payrollRecorded({ org_id: org, destination: { type: 'other', label: 'Safe 7' } })
      const lines = [rep, paid].map(record => JSON.stringify({ ...JSON.parse(lineOf(record)), seal: 'k1' }))
      const events = [lines[0], lineOf(periodRecorded({ org_id: org })), lines[1]]
      const ended = await run({ ...environment, SEAL_KEYS_DIR: directory }, events.join('\n'))
      expect(ended.code, ended.stderr).toBe(0)
      await untilCaughtUp(projector)
      const stored = JSON.stringify(await everythingProjected(prefix))
      const locations = [
        ['rep_1', 'name', name],
        ['rep_1', 'email', 'zoe@example.com'],
        ['payroll_1', 'destination.label', 'Safe 7'],
      ] as const
      for (const [record, field, text] of locations) {
        expect(stored).toContain(seal(text, { org, record, field, keyId: 'k1' }))
        expect(stored).not.toContain(text)
      }
      const unsealed = await run({ ...environment, SEAL_KEYS_DIR: directory }, events[0]?.replace('"k1"', '"k2"') ?? '')
      expect([unsealed.code, unsealed.lines]).toEqual([1, []])
      expect(unsealed.stderr).toMatch(/^line 1 cannot be sealed with k2: .*nothing was sent/m)
      expect(unsealed.stderr).not.toMatch(STACK_TRACE)
    })

    test('publishes a value of nearly 8 MiB, and more large values than one request to Kafka may have', async t => {
      const { environment } = await setUp(t)
      const org_id = 'org_1'
      const ids = Array.from({ length: 25 }, (_, index) => `payout_${index}`)
      const payouts = ids.map((id, index) => {
        const inputs = inputsOf(index === 0 ? 8 * MiB - 50_000 : MiB / 2)
        const supersedes_id = ids[index - 1] ?? null
        return payoutCalculated({ org_id, id, supersedes_id, calculation_trace: [step({ inputs })] })
      })
      const records = [repRecorded({ org_id }), periodRecorded({ org_id }), ...payouts]
      const { code, lines, stderr } = await run(environment, records.map(lineOf).join('\n'))
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringMatching(STACK_TRACE) })
      expect(lines.map(line => JSON.parse(line))).toMatchObject([{ from: 0, to: 26, applied: 27, not_yet: 0 }])
    })

    test('sends nothing if a line is not UTF-8, or has a key twice or half of a pair of surrogates: another text, or one of two amounts, would be sent', async t => {
      const { environment, ends } = await unusedInstallation()
      const event = lineOf(repRecorded({ org_id: 'org_1', name: 'Zoé secret' }))
      const twice = event.replace('"name":', '"name":"secret","name":')
      const half = event.replace('Zoé', 'Zoé \\ud83d')
      const sealed = half.replace('{', '{"seal":"k1",')
      const { directory: SEAL_KEYS_DIR } = createKeys(t, ['k1'])
      for (const second of [Buffer.from(event, 'latin1'), ...[twice, half, sealed].map(line => Buffer.from(line))]) {
        const input = Buffer.concat([Buffer.from(`${event}\n`), second])
        const { code, lines, stderr } = await run({ ...environment, SEAL_KEYS_DIR }, input)
        const why = second.includes('"seal"') ? /^line 2 (is not|cannot be sealed) /m : /^line 2 is not /m
        expect({ code, lines, stderr }).toEqual({ code: 1, lines: [], stderr: expect.stringMatching(why) })
        expect(stderr).not.toMatch(STACK_TRACE)
        expect(stderr).not.toContain('secret')
      }
      expect((await ends()).map(([, count]) => count)).toEqual(Array(PARTITIONS).fill(0))
    })

    test('sends nothing if the input is empty or a line is no event', async () => {
      const { environment, ends } = await unusedInstallation()
      // U+2028 ends no line, and a string of JSON may have it.
      const event = lineOf(repRecorded({ org_id: 'org_1', name: 'A\u2028B' }))
      const inputs = {
        '': /no events on standard input/,
        '\n \n': /no events on standard input/,
        [`${event}\n\n{"type": secret\n`]: /^line 3 is not /m,
        [`${event}\n{"type":"secret","data":{}}\n`]: /^line 2 is not /m,
      }
      for (const [input, reason] of Object.entries(inputs)) {
        const { code, lines, stderr } = await run(environment, input)
        expect({ code, lines, stderr }).toEqual({ code: 1, lines: [], stderr: expect.stringMatching(reason) })
        expect(stderr).not.toMatch(STACK_TRACE)
        expect(stderr).not.toContain('secret')
      }
      expect((await ends()).map(([, count]) => count)).toEqual(Array(PARTITIONS).fill(0))
    })

    test('says that the events were sent if the receipt cannot be read', async t => {
      const { environment, ends } = await setUp(t)
      const event = lineOf(repRecorded({ org_id: 'org_1' }))
      for (const ADMIN of [`http://${NOWHERE}`, `${environment.ADMIN}/elsewhere`, 'nonsense']) {
        const { code, lines, stderr } = await run({ ...environment, ADMIN }, event)
        expect({ code, lines }, stderr).toEqual({ code: 1, lines: [] })
        expect(stderr).toMatch(/^all events were sent, but the receipt could not be read: /m)
        expect(stderr).not.toMatch(STACK_TRACE)
      }
      expect((await ends()).reduce((sum, [, count]) => sum + count, 0)).toBe(3)
    })

    test('creates no topic if its name is mistyped, where the broker would create it', async () => {
      const kafka = await brokerThatCreatesTopics()
      const event = lineOf(repRecorded({ org_id: 'org_1' }))
      const { code, lines, stderr } = await run({ KAFKA_BROKERS: kafka.address, TOPIC: 'comission.events' }, event)
      const admin = new kafkajs.Kafka({ brokers: [kafka.address], logLevel: kafkajs.logLevel.NOTHING }).admin()
      await admin.connect()
      const topics = await admin.listTopics().finally(() => admin.disconnect())
      expect({ code, lines, topics }, stderr).toEqual({ code: 1, lines: [], topics: [] })
      expect(stderr).toMatch(/^not all events were sent to /m)
      expect(stderr).not.toMatch(STACK_TRACE)
    })
  })
}

// At the same time: each waits for its time limit.
describe.concurrent('if Kafka cannot be reached', () => {
  for (const { folder, programs, run } of runnable) {
    test.skipIf(programs.includes(undefined))(`the publisher in ${folder} ends with 1`, async () => {
      const event = lineOf(repRecorded({ org_id: 'org_1' }))
      const { code, lines, stderr } = await run({ KAFKA_BROKERS: NOWHERE }, event)
      expect({ code, lines }, stderr).toEqual({ code: 1, lines: [] })
      expect(stderr).toMatch(/^not all events were sent to 127\.0\.0\.1:1: ./m)
      expect(stderr).not.toMatch(STACK_TRACE)
    })
  }
})
