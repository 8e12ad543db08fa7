import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createPublishedTimes } from '../../../../core/store/positions/publish-times.ts'
import { sending } from '../../../support/answering.ts'
import { storedDocument } from '../../projection/flow/stored-document.ts'

const setUp = () => {
  const stored = storedDocument()
  return { ...stored, times: () => createPublishedTimes('control', 'g1', sending(stored.answer)) }
}

test('the times of all partitions are written together, with one write', async () => {
  const { times, writes } = setUp()
  const published = times()
  await Promise.all([0, 1, 2].map(partition => published.advance(partition, { position: 5, time: 100 })))
  expect(writes).toEqual([
    {
      partitions: {
        0: { position: 5, time: 100 },
        1: { position: 5, time: 100 },
        2: { position: 5, time: 100 },
      },
    },
  ])
})

test('a time that is not later is not written', async () => {
  const { times, writes } = setUp()
  const published = times()
  await published.advance(0, { position: 5, time: 100 })
  await published.advance(0, { position: 6, time: 90 })
  expect(writes).toHaveLength(1)
  expect(published.of(0)).toEqual({ position: 5, time: 100 })
})

test('the first write of two processes creates the document once, and keeps the times of both', async () => {
  const { times, body } = setUp()
  const [one, other] = [times(), times()]
  await Promise.all([one.advance(0, { position: 1, time: 10 }), other.advance(1, { position: 2, time: 20 })])
  expect(body()).toEqual({ partitions: { 0: { position: 1, time: 10 }, 1: { position: 2, time: 20 } } })
})

test('a time is stored before it counts as published', async () => {
  const { times } = setUp()
  const published = times()
  const writing = published.advance(0, { position: 1, time: 10 })
  expect(published.of(0)).toBeUndefined()
  await writing
  expect(published.of(0)).toEqual({ position: 1, time: 10 })
})

test('a document that disappears stops the projector: its generation was dropped', async () => {
  const { times, remove } = setUp()
  const published = times()
  await published.advance(0, { position: 1, time: 10 })
  remove()
  await expect(published.advance(0, { position: 1, time: 20 })).rejects.toMatchObject({ code: 'index_missing' })
})

test('a read that began before the first write does not take its answer for a lost document', async () => {
  const { answer } = storedDocument()
  const reading = Promise.withResolvers<void>()
  const slow = sending(async request => {
    const answered = await answer(request)
    if (request.method === 'GET') await reading.promise
    return answered
  })
  const published = createPublishedTimes('control', 'g1', slow)
  const read = published.read()
  await published.advance(0, { position: 1, time: 10 })
  reading.resolve()
  await read
  expect(published.of(0)).toEqual({ position: 1, time: 10 })
})

test('after a lost response our own write is recognized, and not repeated', async () => {
  const { times, writes, next } = setUp()
  next.push('lost')
  await times().advance(0, { position: 1, time: 10 })
  expect(writes).toHaveLength(1)
})

test('processes in any order, with conflicts and lost responses, never move a time back and agree in the end', async () => {
  const step = fc.record({
    process: fc.nat(2),
    partition: fc.nat(3),
    time: fc.nat(50),
    takenBack: fc.nat(1),
    isLost: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
      const { times, writes, next, body } = setUp()
      const processes = [times(), times(), times()]
      const advancing = steps.map(({ process, partition, time, takenBack, isLost }) => {
        if (isLost) next.push('lost')
        const taken = takenBack > 0 ? { taken_back: takenBack } : {}
        return processes[process]?.advance(partition, { position: 1, time, ...taken })
      })
      await Promise.all(advancing)
      const rank = (entry: { time: number; taken_back?: number } | undefined): number =>
        entry === undefined ? -1 : (entry.taken_back ?? 0) * 1_000 + entry.time
      for (const partition of [0, 1, 2, 3]) {
        const ranks = writes.map(({ partitions }) => rank(partitions[partition]))
        expect(ranks).toEqual(ranks.toSorted((a, b) => a - b))
        const wanted = steps.filter(one => one.partition === partition)
        const highest = Math.max(-1, ...wanted.map(({ time, takenBack }) => takenBack * 1_000 + time))
        expect(rank(body()?.partitions[partition])).toBe(highest)
      }
    }),
  )
})
