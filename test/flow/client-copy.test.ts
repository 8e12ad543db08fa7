/** The copy of the TypeScript client, while an organization is recalculated. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import {
  type Client,
  type Copy,
  CopyDiffersError,
  type CopyState,
  continueCopy,
  createClient,
  readCopy,
} from '../../client/src/index.ts'
import { createSigningKey, textOfSigningKey, textOfVerifierKey } from '../../core/runtime/index.ts'
import { keyCreated, newKeyText } from '../support/events.ts'
import { startApi, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { createStream, organizationsIn } from '../support/streams.ts'

const PARTITIONS = 3
const ROUNDS = 12
const RECORDS_OF_A_ROUND = 80

test('copies follow every change and add up to the totals, whenever they were begun', async t => {
  const seed = seedOfRun()
  console.log(`seed ${seed}`)
  const random = createRandom(seed)
  const [org = ''] = organizationsIn(random, [1], PARTITIONS)
  const key = newKeyText()
  const records = [keyCreated({ org_id: org, id: 'key_client', text: key })]
  const { topics, prefix, projector } = await startProjection(t, records, {
    partitions: PARTITIONS,
    elasticsearch: inject('elasticsearchUrl'),
  })
  const signer = createSigningKey('api.example.com/checkpoints')
  const publicKey = textOfVerifierKey(signer.verifier)
  const folder = await mkdtemp(join(tmpdir(), 'commission-checkpoint-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const API_CHECKPOINT_KEY_FILE = join(folder, 'checkpoint.key')
  await writeFile(API_CHECKPOINT_KEY_FILE, `${textOfSigningKey(signer)}\n`)
  const api = await startApi(t, prefix, { settings: { API_CHECKPOINT_KEY_FILE } })
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
      if (round % 3 === 1) await copy.prove(publicKey)
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
  const all = await Array.fromAsync(client.changes())
  const since = all[all.length >> 1]?.published_at ?? ''
  const later = all.filter(({ published_at }) => published_at > since)
  expect(later.length).toBeGreaterThan(3)
  expect(await Array.fromAsync(client.changesSince(since))).toEqual(later)
  const some = payouts.slice(1, 4).toReversed()
  expect(await Array.fromAsync(client.payouts({ ids: some.map(({ id }) => id) }))).toEqual(some)

  for (const copy of copies) {
    await copy.update()
    await copy.prove()
    const lists: readonly Named[][] = [payouts, payrollRecords, reps, periods]
    const maps: readonly ReadonlyMap<string, Named>[] = [copy.payouts, copy.payrollRecords, copy.reps, copy.periods]
    expect(maps.map(map => sorted(map.values()))).toEqual(lists.map(sorted))
  }

  // Another process has signed nothing yet. Its checkpoint has all changes, and continues those of the first one.
  const other = await startApi(t, prefix, { settings: { API_CHECKPOINT_KEY_FILE } })
  const anew = createClient({ baseUrl: other.url, key })
  for (const copy of [...copies, await readCopy(anew)]) {
    const { checkpoint, areTotalsCompared } = await continueCopy(anew, stored(copy.state())).prove(publicKey)
    expect([checkpoint.organization, checkpoint.sequence, areTotalsCompared]).toEqual([org, all.length, true])
  }
  const [first] = copies
  const before = stored(first?.state())
  const again = await (await readCopy(anew, before)).prove(publicKey)
  expect([again.continues, again.checkpoint.sequence]).toEqual([before.proved, all.length])
  const payout = payouts.find(({ line_items }) => line_items.length > 0)
  const state = stored(first?.state())
  const forged = state.payouts.map(one => (one.id === payout?.id ? { ...one, earned_amount: '1' } : one))
  const altered = continueCopy(anew, { ...state, payouts: forged })
  await expect(altered.prove(publicKey)).rejects.toBeInstanceOf(CopyDiffersError)
})

const stored = (state: CopyState | undefined): CopyState => JSON.parse(JSON.stringify(state))
type Named = { readonly id: string }
const sorted = (items: Iterable<Named>): Named[] => [...items].toSorted((a, b) => (a.id < b.id ? -1 : 1))
