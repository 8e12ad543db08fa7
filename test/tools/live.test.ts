/** Waits for the projector, with positions and an Elasticsearch that the test changes. Only waiting moves the clock. */
import { expect, test } from 'vitest'
import { Unanswered } from '../../core/runtime/keep-trying.ts'
import { layoutOfKeys } from '../../schemas/stored/layout.ts'
import { waitUntilPublished } from '../../tools/live.ts'
import { sending } from '../support/answering.ts'

const stream = {
  stream: 'api-keys',
  identity: { generation: 'api-keys', topic: 'k', cluster_id: 'c', partitions: 1, rules_version: 1 },
  layout: layoutOfKeys('p'),
} as const
const advice = 'The key works when the projector has caught up'

/** @param read the position of the only partition at a time in milliseconds */
const waitFor5 = async (read: (time: number) => number) => {
  let time = 0
  const send = sending(async () => {
    const _source = { kind: 'position', body: { position: read(time) } }
    return { status: 200, body: { docs: [{ _id: 'position:api-keys:0', found: true, _version: 1, _source }] } }
  })
  const sleep = async (milliseconds: number) => {
    time += milliseconds
  }
  await waitUntilPublished(stream, new Map([[0, 5]]), 60, { send, prefix: 'p', sleep, elapsed: () => time, advice })
  return time
}

test('a wait goes on while Elasticsearch is unavailable', async () => {
  const time = await waitFor5(at => {
    if (at < 10_000) throw new Unanswered('elasticsearch', 503)
    return at < 20_000 ? 4 : 5
  })
  expect(time).toBe(20_000)
})

test('a wait that ends while Elasticsearch is unavailable says so, with the advice', async () => {
  const waited = waitFor5(at => {
    if (at > 30_000) throw new Unanswered('elasticsearch', 503)
    return 4
  })
  await expect(waited).rejects.toThrow(
    `it is not known how far the projector is on k after 60 s: Elasticsearch answers 503. ${advice}`,
  )
})

test('a wait for a projector that does not move ends with the advice', async () => {
  const waited = waitFor5(() => 4)
  await expect(waited).rejects.toThrow(`1 records behind on k after 60 s: is it running? ${advice}`)
})

test('any other error ends a wait at once', async () => {
  let reads = 0
  const waited = waitFor5(() => {
    reads++
    throw new Error('a defect')
  })
  await expect(waited).rejects.toThrow('a defect')
  expect(reads).toBe(1)
})
