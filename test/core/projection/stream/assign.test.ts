import { describe, expect, test } from 'vitest'
import { Watchdog } from '../../../../core/projection/progress/watchdog.ts'
import { StopError } from '../../../../core/runtime/failures.ts'
import { last, lastBatch, publishedAt, record, setUp } from '../../../projector/assignment.ts'
import { eventRecord } from '../../../projector/records.ts'
import { batchOf, repsOf } from '../../../projector/running-flow.ts'
import { rep } from '../../../projector/story.ts'

describe('a partition without any record', () => {
  test('starts at its position and flows from there', async () => {
    const { assignment, told, positions, flows } = setUp()
    assignment.onAssigned([3])
    expect(assignment.isReading).toBe(false)
    await positions.at(0).letGo(publishedAt(0))
    expect(told).toEqual(['seek 3 to 0', 'resume 3'])
    expect(assignment.isReading).toBe(true)
    assignment.onBatch(3, repsOf(0, 2))
    expect(flows[0]?.progress.readTo).toBe(2)
    expect(assignment.flows()).toEqual([[3, flows[0]]])
  })

  test('is read again from the beginning if it had only aborted and control records so far', async () => {
    const { assignment, told, positions, failures } = setUp()
    assignment.onAssigned([0])
    await positions.at(0).letGo(publishedAt(4))
    expect(told).toEqual(['seek 0 to 0', 'resume 0'])
    assignment.onBatch(0, { from: 0, end: 4, records: [] })
    expect([told.slice(2), assignment.isReading, failures]).toEqual([['seek 0 to 4'], true, []])
  })

  test('is refused if it has a record now before its position', async () => {
    const { assignment, positions, failures } = setUp()
    assignment.onAssigned([0])
    await positions.at(0).letGo(publishedAt(4))
    assignment.onBatch(0, repsOf(0, 1))
    expect(failures).toMatchObject([{ code: 'source_changed', where: { partition: 0, offset: 0 } }])
  })
})

test('each partition learns how many of the topic share the memory of the process', async () => {
  const { assignment, positions, sharing } = setUp()
  for (const partitions of [[0, 1, 2], [4]]) {
    assignment.onAssigned(partitions)
    for (const _ of partitions) await positions.at(0).letGo(publishedAt(0))
  }
  expect(sharing).toEqual([3, 3, 3, 1])
})

describe('before its position is known', () => {
  test('a batch of the partition is dropped, and the partition does not flow', async () => {
    const { assignment, told, positions, flows } = setUp()
    assignment.onAssigned([0])
    assignment.onBatch(0, repsOf(0, 5))
    expect([told, assignment.flows()]).toEqual([[], []])
    await positions.at(0).letGo(publishedAt(0))
    expect(flows[0]?.progress.readTo).toBe(0)
  })

  test('a batch of a partition that is not assigned is dropped', () => {
    const { assignment, told, failures } = setUp()
    assignment.onBatch(0, repsOf(0, 5))
    expect([told, failures]).toEqual([[], []])
  })
})

test('a partition whose check takes longer than the watchdog waits is not stuck while the check advances', async () => {
  const { assignment, positions, verified } = setUp()
  assignment.onAssigned([0])
  await positions.at(0).letGo(publishedAt(100))
  const watchdog = new Watchdog(60_000)
  const pass = (time: number) => {
    for (const partition of verified.splice(0)) watchdog.onProgress(partition, 1)
    return watchdog.check(time, assignment.standing())
  }
  const long = Array.from({ length: 99 }, (_, from) => {
    assignment.onBatch(0, { from, end: from + 1, records: [] })
    return pass(from * 2_000)
  })
  expect(long).toEqual(Array(99).fill(undefined))
  // A batch from another offset than sought is no advance.
  const still = Array.from({ length: 40 }, (_, index) => {
    assignment.onBatch(0, { from: 3, end: 4, records: [] })
    return pass(200_000 + index * 2_000)
  })
  expect(still.at(-1)).toMatchObject({ partition: 0, phase: 'verifying' })
  expect(assignment.isReading).toBe(false)
})

describe('a partition with a last record', () => {
  const assigned = async () => {
    const running = setUp()
    running.assignment.onAssigned([0])
    await running.positions.at(0).letGo(publishedAt(9, last))
    return running
  }

  test('is read again at its last record; if that is the same, it continues at its position', async () => {
    const { assignment, told, flows, failures } = await assigned()
    expect(told).toEqual(['seek 0 to 6', 'resume 0'])
    expect([assignment.isReading, assignment.flows()]).toEqual([false, []])
    assignment.onBatch(0, lastBatch)
    expect(told.slice(2)).toEqual(['seek 0 to 9'])
    expect([assignment.isReading, failures]).toEqual([true, []])
    expect(flows[0]?.progress.readTo).toBe(9)
    assignment.onBatch(0, batchOf(9, [rep()]))
    expect(flows[0]?.progress.readTo).toBe(10)
  })

  test('is read again at the last record whose documents are written, if that is after the position', async () => {
    const written = async (sha256: string) => {
      const running = setUp()
      running.assignment.onAssigned([0])
      const before = { offset: 2, sha256: 'before' }
      await running.positions.at(0).letGo({ ...publishedAt(3, before), written: { offset: 6, sha256 } })
      running.assignment.onBatch(0, lastBatch)
      return running
    }
    const same = await written(last.sha256)
    expect(same.told).toEqual(['seek 0 to 6', 'resume 0', 'seek 0 to 3'])
    expect([same.assignment.isReading, same.failures]).toEqual([true, []])
    const another = await written('another')
    expect(another.assignment.isReading).toBe(false)
    expect(another.failures).toMatchObject([
      { code: 'source_changed', message: expect.stringContaining('to remove them: npx commission projection adopt') },
    ])
  })

  test('seeks again if a batch arrives that was fetched before the seek', async () => {
    const { assignment, told, failures } = await assigned()
    for (const from of [0, 9, 12]) assignment.onBatch(0, repsOf(from, 3))
    expect(told.slice(2)).toEqual(['seek 0 to 6', 'seek 0 to 6', 'seek 0 to 6'])
    assignment.onBatch(0, lastBatch)
    expect([assignment.isReading, failures]).toEqual([true, []])
  })

  test('is read on to its position, which aborted and control records may be before', async () => {
    const { assignment, told, failures } = await assigned()
    assignment.onBatch(0, { from: 6, end: 7, records: [record], epoch: 1 })
    assignment.onBatch(0, { from: 7, end: 8, records: [], epoch: 1 })
    expect([told.slice(2), assignment.isReading]).toEqual([[], false])
    assignment.onBatch(0, { from: 8, end: 10, records: [eventRecord(rep(), 9, 1_000)], epoch: 1 })
    expect([told.slice(2), assignment.isReading, failures]).toEqual([['seek 0 to 9'], true, []])
  })

  test.for([
    ['with', [lastBatch.records[0], ...repsOf(7, 3).records]],
    ['after', [lastBatch.records[0]]],
  ] as const)('is refused if another record comes %s the last one before the position', async ([_, records]) => {
    const { assignment, flows, failures } = await assigned()
    assignment.onBatch(0, { from: 6, end: 6 + records.length, records: records.filter(one => one !== undefined) })
    if (records.length === 1) assignment.onBatch(0, repsOf(7, 2))
    expect(failures).toMatchObject([{ code: 'source_changed', where: { partition: 0, offset: 7 } }])
    expect([flows[0]?.progress.readTo, assignment.flows()]).toEqual([9, []])
  })

  test('is read again from its last record if a later leader has what comes after it', async () => {
    const { assignment, told, failures } = await assigned()
    assignment.onBatch(0, { from: 6, end: 7, records: [record], epoch: 1 })
    assignment.onBatch(0, { from: 7, end: 9, records: [], epoch: 2 })
    expect([told.slice(2), assignment.isReading]).toEqual([['seek 0 to 6'], false])
    assignment.onBatch(0, { from: 6, end: 7, records: [record], epoch: 1 })
    assignment.onBatch(0, { from: 7, end: 9, records: [], epoch: 2 })
    expect([assignment.isReading, failures]).toEqual([true, []])
  })

  test.each([
    ['other data', { ...lastBatch, records: [eventRecord(rep({ name: 'Eve' }), 6, 1_000)] }],
    ['another time', { ...lastBatch, records: [eventRecord(rep(), 6, 1_001)] }],
    ['the same record at another offset', { ...lastBatch, records: [eventRecord(rep(), 7, 1_000)] }],
    ['no record', { ...lastBatch, records: [] }],
  ])('is refused if %s is in place of the last record, before anything flows', async (_, batch) => {
    const { assignment, told, flows, failures } = await assigned()
    assignment.onBatch(0, batch)
    expect(failures).toMatchObject([{ code: 'source_changed', where: { partition: 0, offset: 6 } }])
    expect(failures[0]).toBeInstanceOf(StopError)
    expect([told.slice(2), flows[0]?.progress.readTo, assignment.flows()]).toEqual([[], 9, []])
  })
})

test('a batch after a gap or a repeated batch is not taken: the consumer seeks to the end of the last batch', async () => {
  const { assignment, told, positions, flows } = setUp()
  assignment.onAssigned([0])
  await positions.at(0).letGo(publishedAt(0))
  assignment.onBatch(0, repsOf(0, 4))
  for (const from of [0, 3, 5, 100]) assignment.onBatch(0, repsOf(from, 2))
  expect(told.slice(2)).toEqual(Array(4).fill('seek 0 to 4'))
  expect(flows[0]?.progress.readTo).toBe(4)
})

describe('a hole in the log', () => {
  const reading = async () => {
    const running = setUp()
    running.assignment.onAssigned([0])
    await running.positions.at(0).letGo(publishedAt(0))
    running.assignment.onBatch(0, repsOf(0, 4))
    return running
  }

  test('stops the projector: nothing of the batch is taken', async () => {
    const { assignment, failures, flows } = await reading()
    assignment.onBatch(0, { ...repsOf(4, 3), missing: 5 })
    expect(failures).toMatchObject([{ code: 'records_deleted', where: { partition: 0, offset: 5 } }])
    expect(flows[0]?.progress.readTo).toBe(4)
  })

  test('does not matter in a batch from another offset than requested', async () => {
    const { assignment, failures, told } = await reading()
    assignment.onBatch(0, { ...repsOf(9, 3), missing: 9 })
    expect([failures, told.at(-1)]).toEqual([[], 'seek 0 to 4'])
  })

  test('in place of the last record also stops the projector', async () => {
    const { assignment, positions, failures } = setUp()
    assignment.onAssigned([0])
    await positions.at(0).letGo(publishedAt(9, last))
    assignment.onBatch(0, { ...repsOf(6, 3), missing: 6 })
    expect(failures).toMatchObject([{ code: 'records_deleted', where: { partition: 0, offset: 6 } }])
  })
})

describe('a new assignment', () => {
  test('ends the previous one and starts again, even for the same partitions', async () => {
    const { assignment, positions, flows, told } = setUp()
    assignment.onAssigned([0, 1])
    const [before, unpositioned] = [positions.at(0), positions.at(1)]
    await before.letGo(publishedAt(0))
    assignment.onAssigned([0])
    expect([before.argument.signal.aborted, unpositioned.argument.signal.aborted]).toEqual([true, true])
    expect(flows[0]?.take(repsOf(0, 1))).toBe('gap')
    assignment.onBatch(1, repsOf(0, 1))

    told.length = 0
    await positions.at(-1).letGo(publishedAt(0))
    expect(told).toEqual(['seek 0 to 0', 'resume 0'])
    expect(assignment.flows()).toEqual([[0, flows[1]]])
  })

  test('is not disturbed by a late position of the previous one, or by its late failure', async () => {
    const { assignment, positions, flows, told, failures } = setUp()
    assignment.onAssigned([0, 1])
    const [late, failing] = [positions.at(0), positions.at(1)]
    assignment.onAssigned([0])
    await late.letGo(publishedAt(0))
    await failing.fail(new Error('aborted'))
    expect([told, flows, failures]).toEqual([[], [], []])
  })

  test('without partitions counts as read completely', () => {
    const { assignment } = setUp()
    expect(assignment.isReading).toBe(false)
    assignment.onAssigned([])
    expect([assignment.isReading, assignment.flows()]).toEqual([true, []])
  })
})

test('outside the group nothing flows and nothing is read', async () => {
  const { assignment, positions, flows } = setUp()
  assignment.onAssigned([0])
  const { signal } = positions.at(0).argument
  await positions.at(0).letGo(publishedAt(0))
  assignment.close()
  assignment.onBatch(0, repsOf(0, 1))
  expect([assignment.isReading, assignment.flows(), flows[0]?.progress.readTo, signal.aborted]).toEqual([
    false,
    [],
    0,
    true,
  ])
})

test('a position that cannot be read is reported', async () => {
  const { assignment, positions, failures } = setUp()
  assignment.onAssigned([0])
  const error = new StopError('source_changed', 'another cluster')
  await positions.at(0).fail(error)
  expect(failures).toEqual([error])
})

test('the standing is known before a partition is read, during a rebalance, and outside the group', async () => {
  const { assignment, positions } = setUp()
  expect(assignment.standing()).toEqual({ inGroup: false, partitions: [] })
  assignment.onAssigned([3])
  const unknown = { readTo: -1, writtenTo: -1, publishedTo: -1, end: -1 }
  const positioning = { inGroup: true, partitions: [{ partition: 3, phase: 'positioning', ...unknown }] }
  expect(assignment.standing()).toEqual(positioning)
  await positions.at(0).letGo(publishedAt(7, last))
  const known = { partition: 3, phase: 'verifying', readTo: 7, writtenTo: 7, publishedTo: 7, end: 7 }
  expect(assignment.standing()).toEqual({ inGroup: true, partitions: [known] })

  assignment.onRebalancing()
  expect(assignment.standing()).toEqual({ inGroup: false, partitions: [known] })
  assignment.onAssigned([3])
  expect(assignment.standing()).toEqual(positioning)
  assignment.close()
  expect(assignment.standing()).toEqual({ inGroup: false, partitions: [] })
})
