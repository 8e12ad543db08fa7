import { describe, expect, test } from 'vitest'
import { StopError } from '../../../projector/failures.ts'
import type { PublishedPosition } from '../../../projector/flow/publish.ts'
import { VERIFYING_TRUSTED_MS } from '../../../projector/limits.ts'
import { last, lastBatch, publishedAt, setUp } from '../assignment.ts'
import { eventRecord } from '../records.ts'
import { repsOf } from '../running-flow.ts'
import { rep } from '../story.ts'

describe('after a new connection', () => {
  const reading = async (position: PublishedPosition) => {
    const running = setUp()
    running.assignment.onAssigned([0])
    await running.positions.at(0).letGo(position)
    return running
  }
  const batch = repsOf(0, 4)

  test('nothing is taken until the source is identified and the last record is verified again', async () => {
    const { assignment, told, flows, identifications, failures } = await reading(publishedAt(0))
    assignment.onBatch(0, batch)
    assignment.onReconnected()
    assignment.onBatch(0, repsOf(4, 2))
    expect([flows[0]?.progress.readTo, assignment.isReading]).toEqual([4, false])
    // Batches taken before are still written, published and drained.
    expect([assignment.flows().length, assignment.isTrusted(0)]).toEqual([1, false])

    told.length = 0
    await identifications.at(0).letGo()
    expect(told).toEqual(['seek 0 to 3'])
    assignment.onBatch(0, repsOf(4, 2))
    expect(flows[0]?.progress.readTo).toBe(4)
    assignment.onBatch(0, { ...batch, from: 3, records: batch.records.slice(3) })
    expect(told.slice(1)).toEqual(['seek 0 to 3', 'seek 0 to 4'])
    assignment.onBatch(0, repsOf(4, 2))
    expect([flows.length, flows[0]?.progress.readTo, failures]).toEqual([1, 6, []])
  })

  test('another record in place of the last one is refused, even if the old connection read everything before it', async () => {
    const { assignment, flows, identifications, failures } = await reading(publishedAt(0))
    assignment.onBatch(0, batch)
    assignment.onReconnected()
    await identifications.at(0).letGo()
    assignment.onBatch(0, { from: 3, end: 8, records: [eventRecord(rep({ name: 'Eve' }), 3, 1_003)] })
    expect(failures).toMatchObject([{ code: 'source_changed', where: { partition: 0, offset: 3 } }])
    expect(flows[0]?.progress.readTo).toBe(4)
  })

  test('a partition without a record continues once the source is identified', async () => {
    const { assignment, told, flows, identifications } = await reading(publishedAt(0))
    assignment.onReconnected()
    assignment.onBatch(0, batch)
    expect(flows[0]?.progress.readTo).toBe(0)
    await identifications.at(0).letGo()
    expect(told.slice(2)).toEqual(['seek 0 to 0'])
    assignment.onBatch(0, batch)
    expect(flows[0]?.progress.readTo).toBe(4)
  })

  test('the last record of an earlier process is verified if this process has read none', async () => {
    const { assignment, told, identifications } = await reading(publishedAt(9, last))
    assignment.onBatch(0, lastBatch)
    assignment.onReconnected()
    told.length = 0
    await identifications.at(0).letGo()
    expect(told).toEqual(['seek 0 to 6'])
  })

  test('a regular verification works the same way, but the partition stays trusted meanwhile', async () => {
    const { assignment, told, identifications } = await reading(publishedAt(9, last))
    expect(assignment.isTrusted(0)).toBe(false)
    assignment.onBatch(0, lastBatch)
    assignment.verifyAgain()
    told.length = 0
    await identifications.at(0).letGo()
    expect([told, assignment.isReading, assignment.isTrusted(0)]).toEqual([['seek 0 to 6'], false, true])
    assignment.onReconnected()
    expect(assignment.isTrusted(0)).toBe(false)
    await identifications.at(0).letGo()
    assignment.onBatch(0, lastBatch)
    expect([assignment.isReading, assignment.isTrusted(0)]).toEqual([true, true])
  })

  test('a partition loses its trust if the verification takes too long: the last record may be gone', async () => {
    const { assignment, identifications, clock } = await reading(publishedAt(9, last))
    assignment.onBatch(0, lastBatch)
    clock.time += 60_000
    expect(assignment.isTrusted(0)).toBe(true)
    assignment.verifyAgain()
    await identifications.at(0).letGo()
    clock.time += VERIFYING_TRUSTED_MS - 1
    expect(assignment.isTrusted(0)).toBe(true)
    clock.time += 1
    expect(assignment.isTrusted(0)).toBe(false)
    assignment.verifyAgain()
    expect(assignment.isTrusted(0)).toBe(false)
    await identifications.at(0).letGo()
    assignment.onBatch(0, lastBatch)
    expect(assignment.isTrusted(0)).toBe(true)
  })

  test('another source is refused', async () => {
    const { assignment, identifications, failures } = await reading(publishedAt(0))
    assignment.onReconnected()
    const error = new StopError('source_changed', 'another cluster')
    await identifications.at(0).fail(error)
    expect(failures).toEqual([error])
  })

  test('a verification that had begun is repeated over the new connection', async () => {
    const { assignment, told, identifications } = await reading(publishedAt(9, last))
    assignment.onReconnected()
    assignment.onBatch(0, lastBatch)
    expect(assignment.isReading).toBe(false)
    await identifications.at(0).letGo()
    expect(told.slice(2)).toEqual(['seek 0 to 6'])
    assignment.onBatch(0, lastBatch)
    expect(assignment.isReading).toBe(true)
  })

  test('the source is identified again if the connection changed before the position was known or during identification', async () => {
    const { assignment, told, positions, identifications } = setUp()
    assignment.onAssigned([0])
    assignment.onReconnected()
    await positions.at(0).letGo(publishedAt(0))
    expect([identifications.calls.length, told]).toEqual([1, []])
    assignment.onReconnected()
    await identifications.at(0).letGo()
    expect([identifications.calls.length, told]).toEqual([1, []])
    await identifications.at(0).letGo()
    expect([identifications.calls.length, told]).toEqual([0, ['seek 0 to 0', 'resume 0']])
    expect(assignment.isReading).toBe(true)
  })

  test('a partition without a known position waits for it, and no partition is identified twice at once', async () => {
    const { assignment, positions, identifications } = setUp()
    assignment.onAssigned([0, 1])
    assignment.onReconnected()
    await positions.at(0).letGo(publishedAt(9, last))
    assignment.onReconnected()
    assignment.onReconnected()
    expect(identifications.count).toBe(1)
  })
})
