import { describe, expect, test } from 'vitest'
import { StopError } from '../../../../core/runtime/failures.ts'
import type { PublishedPosition } from '../../../../core/store/positions/publish.ts'
import { last, lastBatch, publishedAt, setUp } from '../../../projector/assignment.ts'
import { eventRecord } from '../../../projector/records.ts'
import { repsOf } from '../../../projector/running-flow.ts'
import { rep } from '../../../projector/story.ts'

const reading = async (position: PublishedPosition) => {
  const running = setUp()
  running.assignment.onAssigned([0])
  await running.positions.at(0).letGo(position)
  return running
}
const batch = repsOf(0, 4)

describe('after a batch of a later leader', () => {
  const fromLast = { ...batch, from: 3, records: batch.records.slice(3) }

  test('nothing of it is taken until the last record is found again: the leader may lack records', async () => {
    const { assignment, told, flows, failures } = await reading(publishedAt(0))
    assignment.onBatch(0, { ...batch, epoch: 1 })
    told.length = 0
    assignment.onBatch(0, { ...repsOf(4, 2), epoch: 2 })
    expect([flows[0]?.progress.readTo, assignment.isTrusted(0), told]).toEqual([4, false, ['seek 0 to 3']])
    assignment.onBatch(0, { ...fromLast, epoch: 1 })
    expect([assignment.isTrusted(0), told.slice(1)]).toEqual([true, ['seek 0 to 4']])
    assignment.onBatch(0, { ...repsOf(4, 2), epoch: 2 })
    expect([flows[0]?.progress.readTo, told.slice(2), failures]).toEqual([6, [], []])
  })

  test('another record in place of the last one is refused', async () => {
    const { assignment, flows, failures } = await reading(publishedAt(0))
    assignment.onBatch(0, { ...batch, epoch: 1 })
    assignment.onBatch(0, { ...repsOf(4, 2), epoch: 2 })
    assignment.onBatch(0, { from: 3, end: 8, records: [eventRecord(rep({ name: 'Eve' }), 3, 1_003)], epoch: 2 })
    expect(failures).toMatchObject([{ code: 'source_changed', where: { partition: 0, offset: 3 } }])
    expect(flows[0]?.progress.readTo).toBe(4)
  })

  test('the last record of an earlier process counts, and its leader too', async () => {
    const { assignment, told } = await reading(publishedAt(9, last))
    assignment.onBatch(0, { ...lastBatch, epoch: 5 })
    told.length = 0
    assignment.onBatch(0, { from: 9, end: 10, records: [], epoch: 5 })
    expect(told).toEqual([])
    assignment.onBatch(0, { from: 10, end: 11, records: [], epoch: 6 })
    expect(told).toEqual(['seek 0 to 6'])
  })

  test('a partition without a record goes on with it, once it has none from the beginning', async () => {
    const { assignment, flows } = await reading(publishedAt(0))
    assignment.onBatch(0, { from: 0, end: 1, records: [], epoch: 1 })
    assignment.onBatch(0, { from: 1, end: 2, records: [], epoch: 2 })
    assignment.onBatch(0, { from: 0, end: 1, records: [], epoch: 1 })
    assignment.onBatch(0, { from: 1, end: 2, records: [], epoch: 2 })
    expect(flows[0]?.progress.readTo).toBe(2)
  })
})

describe('while documents of records ahead are written already', () => {
  /** Another process has written up to record 6 before the position went back to 3. */
  const readAgain = async () => {
    const running = await reading({ ...publishedAt(3, { offset: 2, sha256: 'before' }), written: last })
    running.assignment.onBatch(0, { ...lastBatch, epoch: 1 })
    running.assignment.onBatch(0, { ...repsOf(3, 1), epoch: 1 })
    running.told.length = 0
    return running
  }
  const another = { ...lastBatch, records: [eventRecord(rep({ name: 'Eve' }), 6, 1_000)], epoch: 2 }

  test('a batch of a later leader is not taken until the last of them is found again', async () => {
    const { assignment, told, flows, failures } = await readAgain()
    assignment.onBatch(0, { ...repsOf(4, 1), epoch: 2 })
    expect([flows[0]?.progress.readTo, told]).toEqual([4, ['seek 0 to 6']])
    assignment.onBatch(0, another)
    expect(failures).toMatchObject([{ code: 'source_changed', message: expect.stringContaining('to remove them') }])
  })

  test('after a new connection the last of them is found again', async () => {
    const { assignment, told, verifications, failures } = await readAgain()
    assignment.onReconnected()
    await verifications.at(0).letGo()
    expect(told).toEqual(['seek 0 to 6'])
    assignment.onBatch(0, { ...lastBatch, epoch: 1 })
    expect([told.slice(1), failures]).toEqual([['seek 0 to 4'], []])
  })

  test('the source is verified by the last of them, and by the last record read once that is later', async () => {
    const { assignment } = await readAgain()
    expect([assignment.lastKnown(0), assignment.lastKnown(1)]).toEqual([last, null])
    assignment.onBatch(0, { ...repsOf(4, 4), epoch: 1 })
    expect(assignment.lastKnown(0)).toMatchObject({ offset: 7 })
  })

  test('nothing is known of a partition before its position', () => {
    const { assignment } = setUp()
    assignment.onAssigned([0])
    expect(assignment.lastKnown(0)).toBeNull()
  })
})

describe('after a new connection', () => {
  test('nothing is taken until the source is verified and the last record is found again', async () => {
    const { assignment, told, flows, verifications, failures } = await reading(publishedAt(0))
    assignment.onBatch(0, batch)
    assignment.onReconnected()
    assignment.onBatch(0, repsOf(4, 2))
    expect([flows[0]?.progress.readTo, assignment.isReading]).toEqual([4, false])
    // Batches taken before are still written, published and drained.
    expect([assignment.flows().length, assignment.isTrusted(0)]).toEqual([1, false])

    told.length = 0
    await verifications.at(0).letGo()
    expect(told).toEqual(['seek 0 to 3'])
    assignment.onBatch(0, repsOf(4, 2))
    expect(flows[0]?.progress.readTo).toBe(4)
    assignment.onBatch(0, { ...batch, from: 3, records: batch.records.slice(3) })
    expect(told.slice(1)).toEqual(['seek 0 to 3', 'seek 0 to 4'])
    assignment.onBatch(0, repsOf(4, 2))
    expect([flows.length, flows[0]?.progress.readTo, failures]).toEqual([1, 6, []])
  })

  test('another record in place of the last one is refused, even if the old connection read everything before it', async () => {
    const { assignment, flows, verifications, failures } = await reading(publishedAt(0))
    assignment.onBatch(0, batch)
    assignment.onReconnected()
    await verifications.at(0).letGo()
    assignment.onBatch(0, { from: 3, end: 8, records: [eventRecord(rep({ name: 'Eve' }), 3, 1_003)] })
    expect(failures).toMatchObject([{ code: 'source_changed', where: { partition: 0, offset: 3 } }])
    expect(flows[0]?.progress.readTo).toBe(4)
  })

  test('a partition without a record continues once the source is verified', async () => {
    const { assignment, told, flows, verifications } = await reading(publishedAt(0))
    assignment.onReconnected()
    assignment.onBatch(0, batch)
    expect(flows[0]?.progress.readTo).toBe(0)
    await verifications.at(0).letGo()
    expect(told.slice(2)).toEqual(['seek 0 to 0'])
    assignment.onBatch(0, batch)
    expect(flows[0]?.progress.readTo).toBe(4)
  })

  test('the last record of an earlier process is verified if this process has read none', async () => {
    const { assignment, told, verifications } = await reading(publishedAt(9, last))
    assignment.onBatch(0, lastBatch)
    assignment.onReconnected()
    told.length = 0
    await verifications.at(0).letGo()
    expect(told).toEqual(['seek 0 to 6'])
  })

  test('its time counts again once the last record was found over the new connection', async () => {
    const { assignment, verifications } = await reading(publishedAt(9, last))
    expect(assignment.isTrusted(0)).toBe(false)
    assignment.onBatch(0, lastBatch)
    expect(assignment.isTrusted(0)).toBe(true)
    assignment.onReconnected()
    await verifications.at(0).letGo()
    expect([assignment.isReading, assignment.isTrusted(0)]).toEqual([false, false])
    assignment.onBatch(0, lastBatch)
    expect([assignment.isReading, assignment.isTrusted(0)]).toEqual([true, true])
  })

  test('another source is refused', async () => {
    const { assignment, verifications, failures } = await reading(publishedAt(0))
    assignment.onReconnected()
    const error = new StopError('source_changed', 'another cluster')
    await verifications.at(0).fail(error)
    expect(failures).toEqual([error])
  })

  test('a verification that had begun is repeated over the new connection', async () => {
    const { assignment, told, verifications } = await reading(publishedAt(9, last))
    assignment.onReconnected()
    assignment.onBatch(0, lastBatch)
    expect(assignment.isReading).toBe(false)
    await verifications.at(0).letGo()
    expect(told.slice(2)).toEqual(['seek 0 to 6'])
    assignment.onBatch(0, lastBatch)
    expect(assignment.isReading).toBe(true)
  })

  test('the source is verified again if the connection changed before the position was known or during a verification', async () => {
    const { assignment, told, positions, verifications } = setUp()
    assignment.onAssigned([0])
    assignment.onReconnected()
    await positions.at(0).letGo(publishedAt(0))
    expect([verifications.calls.length, told]).toEqual([1, []])
    assignment.onReconnected()
    await verifications.at(0).letGo()
    expect([verifications.calls.length, told]).toEqual([1, []])
    await verifications.at(0).letGo()
    expect([verifications.calls.length, told]).toEqual([0, ['seek 0 to 0', 'resume 0']])
    expect(assignment.isReading).toBe(true)
  })

  test('a partition without a known position waits for it, and no partition is verified twice at once', async () => {
    const { assignment, positions, verifications } = setUp()
    assignment.onAssigned([0, 1])
    assignment.onReconnected()
    await positions.at(0).letGo(publishedAt(9, last))
    assignment.onReconnected()
    assignment.onReconnected()
    expect(verifications.count).toBe(1)
  })
})
