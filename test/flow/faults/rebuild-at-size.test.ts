/**
 * A rebuild of 200,000 events beside a projector of the live generation. Both are killed again and again. In the end
 * both generations have the same documents, and `verify` says so. It also finds a single wrong document.
 */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createDataset } from '../../../bench/rig/dataset.ts'
import type { CommissionEvent } from '../../../schemas/events.ts'
import { indexOf, kinds, LIVE_ID, positionId } from '../../../schemas/stored/documents.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../../support/commands.ts'
import { envelope } from '../../support/events.ts'
import { startProcess, startProjector, untilCaughtUp } from '../../support/processes.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { eventually } from '../../support/scope.ts'
import { allStored, call, createPrefix, indexWith, overwrite, storedById } from '../../support/stored.ts'
import { createTopics, place, type Topics, toMessage } from '../../support/topics.ts'

const PARTITIONS = 6
const EVENTS = Number(process.env.REBUILD_EVENTS ?? 200_000)
const EVENTS_PER_REQUEST = 2_000
/** Kills of each of the two. */
const KILLS = 4
const seed = seedOfRun()
console.log(`seed ${seed}`)

/** Publishes the whole data set. Keeps none of it in memory. */
const publishAll = async ({ kafka, name }: Topics, events: Iterable<CommissionEvent>): Promise<number> => {
  const producer = kafka.producer({ allowAutoTopicCreation: false })
  await producer.connect()
  let count = 0
  for (let waiting: CommissionEvent[] = [], iterator = events[Symbol.iterator](), next = iterator.next(); ; ) {
    if (!next.done) waiting.push(next.value)
    if (waiting.length === EVENTS_PER_REQUEST || (next.done && waiting.length > 0)) {
      const messages = waiting.map(({ type, data }) => {
        const record = {
          stream: 'events',
          key: data.org_id,
          headers: envelope(type),
          value: JSON.stringify(data),
        } as const
        return toMessage(place(record, PARTITIONS))
      })
      await producer.send({ topic: name('events'), messages, acks: -1 })
      count += waiting.length
      waiting = []
    }
    if (next.done) break
    next = iterator.next()
  }
  await producer.disconnect()
  return count
}

/** Returns the number of documents of an index, and the sum of the hashes of all of them with their versions. */
const digestOf = async (index: string): Promise<string> => {
  await call('POST', `/${index}/_refresh`)
  let [sum, count] = [0n, 0]
  for (let after: unknown[] | undefined; ; ) {
    const query = { size: 2_000, version: true, sort: ['_doc'], ...(after && { search_after: after }) }
    const { hits } = JSON.parse((await call('POST', `/${index}/_search`, query)).text).hits as Hits
    for (const { _id, _version, _source } of hits) {
      const hash = createHash('sha256')
        .update(`${_id} ${_version} ${JSON.stringify(_source)}`)
        .digest('hex')
      sum = (sum + BigInt(`0x${hash}`)) % 2n ** 256n
      count++
    }
    after = hits.at(-1)?.sort
    if (hits.length < query.size) return `${count} ${sum.toString(16)}`
  }
}
type Hits = { hits: { _id: string; _version: number; _source: object; sort: unknown[] }[] }

const seconds = (since: number): string => `${((performance.now() - since) / 1_000).toFixed(1)} s`

/** Returns another value for a field of a document: also an empty list changes. */
const changed = (value: unknown): unknown => {
  if (!Array.isArray(value)) return 'another'
  return value.length > 0 ? value.slice(1) : ['another']
}

test('a rebuild of 200,000 events is byte-equal to the live generation, after kills of both', {
  timeout: 1_500_000,
}, async t => {
  const random = createRandom(seed)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const prefix = createPrefix(t)
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
  const projection = (...args: string[]): Promise<Ran> => runCommand(['projection', ...args], settings)
  const done = async (generation: string): Promise<number> => {
    const found = await Promise.all(
      Array.from({ length: PARTITIONS }, (_, partition) =>
        storedById(`${prefix}-control`, positionId(generation, partition)),
      ),
    )
    return found.reduce(
      (sum, one) => sum + ((one as { body: { position: number } } | undefined)?.body.position ?? 0),
      0,
    )
  }

  const dataset = createDataset({ payouts: EVENTS - 2_600, organizations: 20, recalculated: 0.3, lines: 1, steps: 1 })
  let began = performance.now()
  const recorded = await publishAll(topics, dataset.peopleAndPeriods())
  const published = recorded + (await publishAll(topics, dataset.payouts()))
  console.log(`${published} events published in ${seconds(began)}`)
  expect(published).toBeGreaterThan(EVENTS * 0.98)

  began = performance.now()
  const startRebuild = () => startProcess(t, 'tools/main.ts', settings, { parameters: ['projection', 'rebuild'] })
  let projector = await startProjector(t, { topics, prefix })
  await eventually(async () => expect(await storedById(`${prefix}-control`, LIVE_ID)).toBeDefined())
  let rebuilding = startRebuild()
  // Each by its own progress: otherwise one could be done before its kill.
  const kill = async (generation: 'g1' | 'g2', at: number): Promise<void> => {
    await eventually(async () => expect(await done(generation)).toBeGreaterThanOrEqual(at), {
      within: 600_000,
      every: 20,
    })
    if (generation === 'g1') {
      await projector.kill()
      projector = await startProjector(t, { topics, prefix })
    } else {
      expect(rebuilding.exit(), rebuilding.log()).toBeUndefined()
      await rebuilding.kill()
      rebuilding = startRebuild()
    }
    const killed = generation === 'g1' ? 'the projector' : 'the rebuild'
    console.log(`${killed} was killed once ${generation} had ${at}, ${seconds(began)}`)
  }
  await Promise.all(
    (['g1', 'g2'] as const).map(async generation => {
      const progress = Array.from({ length: KILLS }, () => Math.floor(published * (0.02 + 0.9 * random.next())))
      for (const at of progress.sort((a, b) => a - b)) await kill(generation, at)
    }),
  )
  expect((await rebuilding.exited).code, rebuilding.log()).toBe(0)
  await untilCaughtUp(projector, { within: 600_000 })
  console.log(`both caught up ${seconds(began)} after the start`)
  expect(await done('g1')).toBe(published)
  expect(await done('g2')).toBe(published)

  for (const kind of kinds) {
    const [ours = '', theirs] = await Promise.all(
      ['g1', 'g2'].map(of => digestOf(indexWith(indexOf(prefix, of, kind)))),
    )
    console.log(`${kind}: ${ours.slice(0, 30)}`)
    expect([kind, theirs]).toEqual([kind, ours])
  }
  began = performance.now()
  const equal = await projection('verify', 'g1', 'g2', '--json')
  expect(equal, equal.said).toMatchObject({ code: 0 })
  console.log(`verified in ${seconds(began)}: ${equal.said.trim().split('\n').at(-1)}`)

  // One random document of a random kind.
  const kind = random.pick(['payouts', 'statements', 'payroll_files', 'reps', 'chains'] as const)
  const index = indexOf(prefix, 'g2', kind === 'payroll_files' ? 'payouts' : kind)
  const { id, version, source } = random.pick(await allStored(index))
  const body = source.body as Record<string, unknown>
  const [field = '', value] = random.pick(Object.entries(body))
  const wrong = { ...source, body: { ...body, [field]: changed(value) } }
  const put = (document: Record<string, unknown>) => overwrite(index, { id, version, source: document })
  console.log(`planted: ${id}, ${field}`)
  await put(wrong)
  const found = await projection('verify', 'g1', 'g2', '--json')
  expect(found).toMatchObject({ code: 1, said: expect.stringContaining('1 of 20 organizations differ') })
  expect(jsonLines(found).filter(line => line.kind !== undefined)).toEqual([expect.objectContaining({ id })])
  await put(source)
  expect(await projection('verify', 'g1', 'g2')).toMatchObject({ code: 0 })
})
