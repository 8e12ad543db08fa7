/**
 * `commission grow`, as an operator runs it, while publishers publish and clients walk and follow. Afterwards every
 * client has what it would have had without it.
 */
import { expect, test } from 'vitest'
import { partitionOf } from '../../schemas/partition.ts'
import { newPartitionOf } from '../../tools/grow/new-partition.ts'
import { contentOf, logOf } from '../support/archives.ts'
import { withText } from '../support/bad-event.ts'
import { checkpointNow } from '../support/checkpoints.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { keyCreated, newKeyText, type Outgoing, repRecorded } from '../support/events.ts'
import { createModel } from '../support/model.ts'
import { startApi, startProcess, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually } from '../support/scope.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics, place, type Topics, toMessage } from '../support/topics.ts'
import { expectServed, expectWalkedAsModelled, startWalkers, untilWarm } from '../support/walkers.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

type Answer = { readonly status: number; readonly text: string; readonly etag: string | null; readonly time: string }

/** A client of one organization. */
const clientOf = (url: string, key: string) => {
  const ask = async (path: string): Promise<Answer> => {
    const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } })
    const [etag, time] = [answer.headers.get('etag'), answer.headers.get('projection-time') ?? '']
    return { status: answer.status, text: await answer.text(), etag, time }
  }
  /** One after the other. On a busy machine totals take long: a client asks again after a 503. */
  const askAll = async (paths: readonly string[]): Promise<Answer[]> => {
    const answers: Answer[] = []
    for (const path of paths) {
      let answer = await ask(path)
      for (let again = 0; answer.status === 503 && again < 20; again++) answer = await ask(path)
      answers.push(answer)
    }
    return answers
  }
  return { ask, askAll }
}
type Changes = { readonly data: readonly { id: string; published_at: string }[]; readonly next_cursor: string }

/** Follows the changes of an organization from the first one, and waits for each next one. */
const startFollower = (ask: (path: string) => Promise<Answer>) => {
  const ids: string[] = []
  const times: string[] = []
  let following = true
  const done = (async () => {
    for (let cursor = ''; following; ) {
      const path = `/changes?wait=2${cursor === '' ? '' : `&starting_after=${cursor}`}`
      const answer = await ask(path).catch(() => undefined)
      if (answer?.status !== 200) continue
      const { text, time } = answer
      times.push(time)
      const { data, next_cursor } = JSON.parse(text) as Changes
      ids.push(...data.map(({ id }) => id))
      cursor = next_cursor
    }
  })()
  return {
    ids,
    times,
    stop: async () => {
      following = false
      await done
    },
  }
}

/** The records of each partition that stay in their order, by the partition that they have in the new topic. */
const expectCopied = async (t: Parameters<typeof logOf>[0], from: Topics, to: Topics): Promise<void> => {
  const growth = { before: from.partitions, after: to.partitions }
  const wanted = Array.from({ length: to.partitions }, (): string[][] => [])
  const content = (entry: Parameters<typeof contentOf>[0]) => contentOf({ ...entry, offset: 0 })
  for (let was = 0; was < from.partitions; was++) {
    const records = (await logOf(t, from, from.events, was)).filter(({ kind }) => kind === 'record')
    for (const [is, all] of wanted.entries()) {
      all.push(records.filter(record => newPartitionOf(record, was, growth) === is).map(content))
    }
  }
  for (const [is, all] of wanted.entries()) {
    const here = (await logOf(t, to, to.events, is)).filter(({ kind }) => kind === 'record').map(content)
    expect(here.toSorted()).toEqual(all.flat().toSorted())
    for (const one of all) {
      const set = new Set(one)
      expect(here.filter(record => set.has(record))).toEqual(one)
    }
  }
}

test.each([
  [6, 9],
  [1, 6],
])(
  'from %i to %i partitions: walkers, followers, and all answers as of a moment are as before',
  async (before, after) => {
    const t = { onTestFinished: (release: () => Promise<void>) => releases.push(release) }
    const releases: (() => Promise<void>)[] = []
    try {
      await grows(t, before, after)
    } finally {
      for (const release of releases.toReversed()) await release()
    }
  },
)

const grows = async (t: { onTestFinished: (release: () => Promise<void>) => void }, before: number, after: number) => {
  const random = createRandom(seed)
  const organizations = organizationsIn(random, before === 1 ? [0, 0, 0, 0] : [0, 1, 3, 5], before)
  const keys = new Map(organizations.map(org => [org, newKeyText()]))
  const model = createModel(before)
  const stream = createStream(random, organizations, before, { reps: 3, periods: 3 })
  const { topics, prefix, projector } = await startProjection(t, [], { partitions: before })
  let taken = 0
  /** The model has the partitions of before. In the new topic, each record goes to the partition of its key. */
  const publish = async (to: Topics, records: readonly Outgoing[]): Promise<void> => {
    const isNew = to !== topics
    const wanted = isNew ? records.map(({ partition: _, ...record }) => record) : records
    for (const record of await to.publish(wanted)) {
      const own = record.stream === 'api-keys' ? 0 : partitionOf(record.key ?? '', before)
      model.take(record.stream, isNew ? own : record.partition, { ...record, offset: taken++ })
    }
  }
  /** Some records of a stream are for a partition that a smaller topic does not have. */
  const next = (count: number): Outgoing[] => stream.take(count).filter(({ partition = 0 }) => partition < before)
  const [org = ''] = organizations
  const elsewhere = repRecorded({ org_id: org, id: 'rep_elsewhere' })
  await publish(
    topics,
    [...keys].map(([org_id, text]) => keyCreated({ org_id, id: 'key_walks', text })),
  )
  await publish(topics, next(300))
  await publish(topics, [withText(repRecorded({ org_id: org, id: 'rep_bad' }), Buffer.from('no JSON'))])
  await publish(topics, [{ ...repRecorded({ org_id: org, id: 'rep_keyless' }), key: null }])
  if (before > 1) {
    for (let partition = 0; partition < before; partition++) {
      if (partition !== partitionOf(org, before)) await publish(topics, [{ ...elsewhere, partition }])
    }
  }
  await untilCaughtUp(projector)
  const api = await startApi(t, prefix)
  const { ask, askAll } = clientOf(api.url, keys.get(org) ?? '')
  await untilWarm([api], keys.get(org) ?? '')
  const walkers = startWalkers({ apis: () => [api], keys, random: createRandom(seed + 1), walkers: 3, every: 20 })
  const follower = startFollower(ask)
  let publishing = true
  const published = (async () => {
    while (publishing) await publish(topics, next(5))
  })()
  t.onTestFinished(async () => {
    publishing = false
    await Promise.allSettled([published, follower.stop(), walkers.stop()])
  })

  const events = `${topics.events}.grown`
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
  const grow = (...args: string[]): Promise<Ran> => runCommand(['grow', '--to', events, ...args], settings)
  expect((await grow()).said).toContain('is not there: say how many --partitions it gets')
  if (before > 1) {
    const refused = await grow('--partitions', String(before))
    expect(refused.said).toContain(`--partitions: expected more than ${before}`)
  }
  let saidBefore = ''
  /** Kills the command as soon as it has said this. On a busy machine it may have done its work before. */
  const killAt = async (said: RegExp, ...args: string[]): Promise<void> => {
    const killed = startProcess(t, 'tools/main.ts', settings, { parameters: ['grow', '--to', events, ...args] })
    await eventually(() => expect(said.test(killed.log()) || killed.exit() !== undefined, killed.log()).toBe(true))
    const { code } = await killed.kill()
    expect([null, 0], killed.log()).toContain(code)
    saidBefore += killed.log()
  }
  for (const said of [/created with/, /comparing what/, /copying/, /records copied/, /(?:making|continuing with) g2/]) {
    await killAt(said, '--partitions', String(after), '--max-rate', '3000')
  }
  const first = await grow('--partitions', String(after))
  expect(saidBefore + first.said).toContain(`start projectors with KAFKA_EVENTS_TOPIC=${events}`)
  expect(first.code, first.said).toBe(0)
  expect((await grow()).said).toContain('g2 is made from')

  const grown = await createTopics(t, { partitions: after, named: { events, apiKeys: topics.apiKeys } })
  const nextProjector = await startProjector(t, { topics: grown, prefix })
  for (const said of [/comparing g1/, /Now stop all publishers/]) await killAt(said, '--swap')
  const swapping = startProcess(t, 'tools/main.ts', settings, { parameters: ['grow', '--to', events, '--swap'] })
  await eventually(() => expect(swapping.log()).toContain('Now stop all publishers'))
  const [, behind = ''] = organizations
  const producer = topics.kafka.producer({
    transactionalId: `${topics.events}-open`,
    maxInFlightRequests: 1,
    // By default Kafka ends an open transaction after a minute. Until this test ends it, a busy machine takes longer.
    transactionTimeout: 600_000,
  })
  await producer.connect()
  t.onTestFinished(() => producer.disconnect())
  const open = await producer.transaction()
  const receipt = () => nextProjector.ask(`/receipts/${events}/0/0`)
  expect(await receipt()).toMatchObject({ status: 404, text: expect.stringContaining(`expected ${topics.events} (`) })
  publishing = false
  await published
  await untilCaughtUp(projector)
  // A publisher that hangs in a transaction. Another one, which uses no transactions, publishes behind it.
  await open.send({ topic: topics.events, messages: [toMessage(place(repRecorded({ org_id: behind }), before))] })
  await publish(topics, [repRecorded({ org_id: behind, id: 'rep_behind' })])
  await projector.stop()
  await eventually(() => expect(swapping.log()).toContain('open transactions in partition'))
  await open.abort()

  const [changes] = await askAll(['/changes?limit=200'])
  const { data } = JSON.parse(changes?.text ?? '') as Changes
  const moments = [data[0], data[40], data.at(-1)].flatMap(change => change ?? [])
  const instants = [data[20], data[60]].flatMap(change => (change ? [change.published_at] : []))
  const asOf = [...moments.map(({ id }) => id), ...instants].flatMap(moment =>
    ['reps', 'periods', 'payouts', 'payroll_files', 'totals', 'changes'].map(list => `/${list}?as_of=${moment}`),
  )
  const cursors = moments.map(({ id }) => `/changes?starting_after=${id}&limit=7`)
  const payout = model.view(org).everyPayout[0]?.id
  const now = ['/payouts', '/reps', '/totals', `/payouts/${payout}/history`, `/statements/${payout}`]
  const paths = [...asOf, ...cursors, ...now]
  const untimed = (answers: readonly Answer[]) => answers.map(({ time: _, ...answer }, at) => [paths[at], answer])
  const answersBefore = await askAll(paths)
  expect(answersBefore.filter(({ status }) => status !== 200)).toEqual([])
  const checkpoint = await checkpointNow(t, prefix, keys.get(org) ?? '')

  expect(await swapping.exited, swapping.log()).toMatchObject({ code: 0 })
  expect(untimed(await askAll(paths))).toEqual(untimed(answersBefore))
  expect(await checkpointNow(t, prefix, keys.get(org) ?? '')).toEqual(checkpoint)
  await expectCopied(t, topics, grown)
  expect(await receipt()).toMatchObject({ status: 200 })
  expect((await grow()).said).toContain('Nobody has published to')

  for (let round = 0; round < 5; round++) await publish(grown, next(20))
  await untilCaughtUp(nextProjector)
  await eventually(() => expect(follower.ids).toHaveLength(model.changes(org).length))
  await follower.stop()
  expect(follower.ids).toEqual(model.changes(org).map(({ id }) => id))
  expect(follower.times).toEqual(follower.times.toSorted())
  const walked = await walkers.stop()
  expectWalkedAsModelled(walked, model)
  await expectServed(walked, api)

  await topics.publish([repRecorded({ org_id: org, id: 'rep_late' })])
  const late = await grow('--json')
  expect(late.said).toContain(`1 record was published to ${topics.events} after the swap`)
  expect([late.code, jsonLines(late)]).toEqual([1, [expect.objectContaining({ source: expect.any(String) })]])

  const present = { ...settings, KAFKA_EVENTS_TOPIC: events }
  const rollback = await runCommand(['projection', 'rollback'], present)
  expect(rollback.said).toContain('g1 and g2 are of different sources: topic is')
  expect(await runCommand(['projection', 'drop', 'g1'], present)).toMatchObject({ code: 0 })
  const wrong = startProcess(t, 'projector/main.ts', { ...settings, PROJECTOR_ADMIN_PORT: '0' })
  expect(await wrong.exited).toMatchObject({ code: 1 })
  expect(wrong.log()).toContain(`topic: expected ${events}, got ${topics.events}`)
}
