/** The copy of the TypeScript client, while an organization is recalculated. */
import { expect, inject, test } from 'vitest'
import { type Client, type Copy, createClient, readCopy } from '../../client/src/index.ts'
import { keyCreated, newKeyText } from '../support/events.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { createPrefix } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics } from '../support/topics.ts'

const PARTITIONS = 3
const ROUNDS = 12
const RECORDS_OF_A_ROUND = 80

test('copies follow every change and add up to the totals, whenever they were begun', async t => {
  const seed = seedOfRun()
  console.log(`seed ${seed}`)
  const random = createRandom(seed)
  const [org = ''] = organizationsIn(random, [1], PARTITIONS)
  const key = newKeyText()
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const prefix = createPrefix(t, inject('elasticsearchUrl'))
  const projector = await startProjector(t, { topics, prefix })
  await topics.publish([keyCreated({ org_id: org, id: 'key_client', text: key })])
  await untilCaughtUp(projector)
  const api = await startApi(t, prefix)
  const client: Client = createClient({ baseUrl: api.url, key })

  const stream = createStream(random, [org], PARTITIONS)
  const copies: Copy[] = [await readCopy(client)]
  expect(copies[0]?.lastChangeId()).toBeNull()
  for (let round = 0; round < ROUNDS; round++) {
    // Half of the records come while the copies read.
    const publishing = topics.publish(stream.take(RECORDS_OF_A_ROUND / 2))
    for (const copy of copies) {
      await copy.update()
      await copy.prove()
    }
    if (round % 4 === 2) copies.push(await readCopy(client))
    await publishing
    await topics.publish(stream.take(RECORDS_OF_A_ROUND / 2))
  }

  await untilCaughtUp(projector)
  const [payouts, payrollRecords, reps, periods] = await Promise.all([
    Array.fromAsync(client.payouts()),
    Array.fromAsync(client.payrollRecords()),
    Array.fromAsync(client.reps()),
    Array.fromAsync(client.periods()),
  ])
  expect(payouts.length).toBeGreaterThan(3)
  for (const copy of copies) {
    await copy.update()
    await copy.prove()
    const lists: readonly Named[][] = [payouts, payrollRecords, reps, periods]
    const maps: readonly ReadonlyMap<string, Named>[] = [copy.payouts, copy.payrollRecords, copy.reps, copy.periods]
    expect(maps.map(map => sorted(map.values()))).toEqual(lists.map(sorted))
  }
})

type Named = { readonly id: string }
const sorted = (items: Iterable<Named>): Named[] => [...items].toSorted((a, b) => (a.id < b.id ? -1 : 1))
