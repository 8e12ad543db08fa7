/** The promises about the projection, on a random stream. Prints its seed; FLOW_SEED sets it. */
import { beforeAll, expect, test } from 'vitest'
import type { PayoutDocument } from '../../../schemas/stored/documents.ts'
import { appliedPlaces, expectProjectedAsModelled, foldAll, parkedCodes } from '../../support/agreement.ts'
import { type Client, createClient, lists } from '../../support/client.ts'
import { keyCreated, newKeyText } from '../../support/events.ts'
import type { Model } from '../../support/model.ts'
import { type Api, type Projector, startApi, startProjector, untilCaughtUp } from '../../support/processes.ts'
import { startProjection } from '../../support/projection.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { fileScope } from '../../support/scope.ts'
import { allStored, createPrefix, everythingProjected, indexNamed, readPosition } from '../../support/stored.ts'
import { createStream, organizationsIn } from '../../support/streams.ts'
import type { Topics } from '../../support/topics.ts'

const PARTITIONS = 3
const seed = seedOfRun()
const random = createRandom(seed)
const organizations = organizationsIn(random, [0, 0, 2], PARTITIONS)
const keys = new Map(organizations.map(org => [org, newKeyText()]))

const file = fileScope()
let topics: Topics
let prefix: string
let projector: Projector
let api: Api
let model: Model

beforeAll(async () => {
  console.log(`seed ${seed}`)
  ;({ topics, prefix, projector } = await startProjection(
    file,
    [...keys].map(([org, text]) => keyCreated({ org_id: org, id: 'key_client', text })),
    { partitions: PARTITIONS },
  ))
  const stream = createStream(random, organizations, PARTITIONS)
  await untilCaughtUp(projector)
  for (let part = 0; part < 10 || positionsSeen().size < 3; part++) {
    await topics.publish(stream.take(60))
    seen.push(await lookNow())
  }
  await untilCaughtUp(projector)
  api = await startApi(file, prefix)
  model = foldAll(topics).model
})

/** The published positions and the documents at a moment while records were coming in. */
type Look = {
  readonly positions: readonly number[]
  readonly applied: ReadonlySet<string>
  readonly parked: ReadonlySet<string>
}
const seen: Look[] = []
const positionsSeen = () => new Set(seen.map(({ positions }) => String(positions)))

const lookNow = async (): Promise<Look> => {
  const partitions = Array.from({ length: PARTITIONS }, (_, partition) => partition)
  // First the positions, then the documents: searchable without a refresh by the test, or readable by id.
  const positions = await Promise.all(partitions.map(async of => (await readPosition(prefix, 'g1', of)).position))
  const applied = await appliedPlaces(prefix, topics, { refresh: false })
  const parked = new Set((await parkedCodes(prefix)).keys())
  return { positions, applied, parked }
}

const clientOf = (org: string): Client => createClient([api], keys.get(org) ?? '')

test('1. Every record at or below the published position is applied, a duplicate, or parked with its position: nothing is lost.', async () => {
  const { outcomes } = foldAll(topics)
  const events = [...outcomes].filter(([{ stream }]) => stream === 'events')
  for (const { positions, applied, parked } of seen) {
    for (const [{ partition, offset }, { outcome }] of events) {
      if (offset >= (positions[partition] ?? 0)) continue
      const place = { partition, offset, outcome }
      if (outcome === 'applied') expect(applied, JSON.stringify(place)).toContain(`events:${partition}:${offset}`)
      if (outcome === 'parked')
        expect(parked, JSON.stringify(place)).toContain(`${topics.events}:${partition}:${offset}`)
    }
  }
  // The looks cover more than the beginning and the end.
  expect(positionsSeen().size).toBeGreaterThan(2)

  for (const { topic, partition, searchable_to, end } of await projector.status()) {
    expect({ topic, partition, searchable_to }).toEqual({ topic, partition, searchable_to: end })
  }
  await expectProjectedAsModelled(prefix, topics)
  const told = new Set([...outcomes.values()].map(({ outcome }) => outcome))
  expect(told).toEqual(new Set(['applied', 'duplicate', 'parked']))
})

test('2. One document per id; at any position, exactly one current payout per (rep, period) that has one.', async () => {
  const documents = (await allStored(indexNamed(prefix, 'payouts'))).map(({ source }) => source as PayoutDocument)
  const ids = documents.map(({ org_id, body }) => `${org_id} ${(body as { id: string }).id}`)
  expect(new Set(ids).size).toBe(ids.length)

  const pairs = Map.groupBy(documents, ({ org_id, rep_id, period_id }) => `${org_id} ${rep_id} ${period_id}`)
  expect([...pairs.values()].some(payouts => payouts.length > 2)).toBe(true)
  for (const payouts of pairs.values()) {
    const first = Math.min(...payouts.map(({ seq }) => seq))
    const last = Math.max(...payouts.map(({ seq }) => seq))
    for (let position = first + 1; position <= last + 1; position++) {
      const current = payouts.filter(({ seq, until_seq }) => seq < position && until_seq >= position)
      expect(current).toHaveLength(1)
    }
  }
})

test('every list, payout and statement over HTTP is what was published', async () => {
  for (const org of organizations) {
    const view = model.view(org)
    for (const list of lists) expect(await clientOf(org).all(list, 50)).toEqual(view[list])
    for (const payout of view.everyPayout) expect(await clientOf(org).read(`/payouts/${payout.id}`)).toEqual(payout)
    for (const statement of view.statements) {
      expect(await clientOf(org).read(`/statements/${statement.id}`)).toEqual(statement)
    }
  }
})

test('7. Rebuilding from the log gives byte-equal documents in the same order.', async t => {
  const again = createPrefix(t)
  const rebuilding = await startProjector(t, { topics, prefix: again, groupId: `${again}-rebuild` })
  await untilCaughtUp(rebuilding)
  expect(await everythingProjected(again)).toEqual(await everythingProjected(prefix))
  expect(await rebuilding.stop()).toEqual({ code: 0, signal: null })

  const rebuilt = await startApi(t, again)
  for (const org of organizations) {
    const client = createClient([rebuilt], keys.get(org) ?? '')
    for (const list of lists) {
      const [one, other] = await Promise.all([
        clientOf(org).askInTime(`/${list}?limit=200`),
        client.askInTime(`/${list}?limit=200`),
      ])
      expect(other.text).toBe(one.text)
      expect(other.headers.get('etag')).toBe(one.headers.get('etag'))
    }
  }
})

test('10. Money comes out with the characters it went in with.', async () => {
  const amountsIn = new Set<string>()
  const { outcomes } = foldAll(topics)
  for (const [{ key, value }, { outcome }] of outcomes) {
    // The stream also has records of other organizations. The test has no keys for them.
    if (outcome !== 'applied' || !organizations.includes(String(key))) continue
    for (const [, amount] of String(value).matchAll(/"(?:[a-z]+_)?amount": ?"([^"]*)"/g)) amountsIn.add(amount ?? '')
  }
  const amountsOut = new Set<string>()
  for (const org of organizations) {
    const client = clientOf(org)
    const statements = model.view(org).everyPayout.map(({ id }) => `/statements/${id}`)
    // One request after the other: a key may have few concurrent requests.
    for (const path of ['/payouts?limit=200', '/payroll_files?limit=200', ...statements]) {
      const { status, text } = await client.askInTime(path)
      expect(status, text).toBe(200)
      for (const [, amount] of text.matchAll(/"(?:[a-z]+_)?amount":"([^"]*)"/g)) amountsOut.add(amount ?? '')
      // Never a number.
      expect(text).not.toMatch(/"(?:[a-z]+_)?amount":[^"]/)
    }
  }
  expect(amountsOut).toEqual(amountsIn)
  expect(amountsIn.size).toBeGreaterThan(50)
})

test('8. Two projectors over the same partition, one of them late, frozen or restarted, can only agree.', async t => {
  // Two projectors in one group and one in another: each partition has two owners at once.
  const second = await startProjector(t, { topics, prefix })
  const third = await startProjector(t, { topics, prefix, groupId: `${prefix}-third` })
  await untilCaughtUp(third)
  const positions = watchPositions()
  const stream = createStream(createRandom(seed + 1), organizations, PARTITIONS)
  for (let round = 0; round < 6; round++) {
    await topics.publish(stream.take(40))
    // In the middle of its work, so that it continues after the work of the others.
    third.freeze()
    await topics.publish(stream.take(20))
    await untilCaughtUp(projector)
    third.thaw()
  }
  await second.kill()
  await topics.publish(stream.take(60))
  const restarted = await startProjector(t, { topics, prefix })
  await topics.publish(stream.take(60))
  await untilCaughtUp(restarted)

  for (const watched of Object.values(await positions.stop())) {
    expect(watched).toEqual(watched.toSorted((a, b) => a - b))
  }
  await expectProjectedAsModelled(prefix, topics)
  for (const one of [projector, third, restarted]) {
    expect(one.exit(), one.log()).toBeUndefined()
    expect(await one.stop(), one.log()).toEqual({ code: 0, signal: null })
  }
  const alone = createPrefix(t)
  await untilCaughtUp(await startProjector(t, { topics, prefix: alone }))
  expect(await everythingProjected(prefix)).toEqual(await everythingProjected(alone))
})

/** Reads the published position and time of each partition repeatedly, until it is stopped. */
const watchPositions = () => {
  const watched: Record<string, number[]> = {}
  let watching = true
  const watch = async (): Promise<void> => {
    while (watching) {
      for (let partition = 0; partition < PARTITIONS; partition++) {
        const { position, time } = await readPosition(prefix, 'g1', partition)
        for (const [name, value] of Object.entries({ position, time })) {
          const values = watched[`${name} ${partition}`] ?? []
          watched[`${name} ${partition}`] = values
          values.push(value)
        }
      }
    }
  }
  const done = watch()
  return {
    stop: async () => {
      watching = false
      await done
      return watched
    },
  }
}
