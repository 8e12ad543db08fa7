import { describe, expect, test } from 'vitest'
import { recordHash } from '../../../../core/ledger/event/decode.ts'
import { BATCH_BYTES } from '../../../../core/ledger/limits.ts'
import { REFRESH_DELAY_MAX_MS, WRITES_IN_FLIGHT_PER_PARTITION } from '../../../../core/projection/limits.ts'
import { eventRecord } from '../../../projector/records.ts'
import { batchOf, both, heavyBatch, lookAt, repsOf, startFlow } from '../../../projector/running-flow.ts'
import { payout, period, rep } from '../../../projector/story.ts'

describe('a batch', () => {
  test('is taken only if it starts where the last one ended', async () => {
    const { take, flow, published } = startFlow({ position: 10 })
    expect(await take(repsOf(9, 1))).toBe('gap')
    expect(await take(repsOf(11, 1))).toBe('gap')
    expect(await take(batchOf(10, [rep()], 14))).toBe('taken')
    expect(await take(repsOf(10, 1))).toBe('gap')
    expect(await take(repsOf(11, 1))).toBe('gap')
    expect(await take(repsOf(14, 2))).toBe('taken')
    expect(flow.progress).toMatchObject({ readTo: 16, writtenTo: 16, publishedTo: 16 })
    expect(published().position).toBe(16)
  })

  test('passes its stages in order: write, refresh, publish, commit', async () => {
    const { take, story, hold, writes, refreshes, advances } = startFlow()
    hold('writes', 'refreshes', 'advances')
    await take(repsOf(0, 2))
    expect(story).toEqual(['write 0-1'])
    await writes.at(0).letGo()
    expect(story.splice(0)).toEqual(['write 0-1', 'refresh reps'])
    await refreshes.at(0).letGo()
    expect(story.splice(0)).toEqual(['publish 2'])
    await advances.at(0).letGo()
    expect(story).toEqual(['commit 2'])
  })

  test('publishes its end, its last record and the time of that record', async () => {
    const { take, published } = startFlow()
    const [first, second] = [eventRecord(rep(), 0, 9_000), eventRecord(rep({ name: 'Ada' }), 1, 4_000)]
    await take({ from: 0, end: 5, records: [first, second] })
    expect(published()).toMatchObject({ position: 5, at: 4_000, last: { offset: 1, sha256: recordHash(second) } })
    await take({ from: 5, end: 7, records: [] })
    expect(published()).toMatchObject({ position: 7, at: 4_000, last: { offset: 1, sha256: recordHash(second) } })
  })

  test('without records keeps the last record of the batch before, also if both are published together', async () => {
    const { take, published, hold, writes } = startFlow()
    hold('writes')
    const [first, second] = [repsOf(0, 1), repsOf(1, 1)]
    for (const batch of [first, second, { from: 2, end: 4, records: [] }]) await take(batch)
    await writes.at(2).letGo()
    await writes.at(1).letGo()
    await writes.at(0).letGo()
    const record = second.records[0] ?? expect.unreachable()
    expect(published()).toMatchObject({ position: 4, last: { offset: 1, sha256: recordHash(record) } })
  })

  test('without records moves the position and refreshes nothing', async () => {
    const { take, story, published } = startFlow()
    await take({ from: 0, end: 3, records: [] })
    expect(story.filter(step => !step.startsWith('write'))).toEqual(['publish 3', 'commit 3'])
    expect(published().last).toBeNull()
  })

  test('that only parks refreshes nothing: no list contains parked records', async () => {
    const { take, story } = startFlow()
    await take(batchOf(0, [payout('payout_1')]))
    expect(story).toEqual(['write 0-0', 'publish 1', 'commit 1'])
  })

  test('refreshes the indices that it wrote to', async () => {
    const { take, story } = startFlow()
    await take(batchOf(0, [rep(), period(), payout('payout_1')]))
    await take(batchOf(3, [rep(), rep({ name: 'Ada' })], 10))
    expect(story.filter(step => step.startsWith('refresh'))).toEqual(['refresh reps,periods,payouts', 'refresh reps'])
  })
})

describe('a refresh waits for half of the time until all records are written', () => {
  const at = (clock: { time: number }) => () => clock.time
  const starting = () => {
    const clock = { time: 0 }
    const started = startFlow({ elapsed: at(clock) })
    started.hold('writes', 'refreshes')
    const write = async (milliseconds: number) => {
      clock.time += milliseconds
      await started.writes.at(0).letGo()
    }
    return { ...started, clock, write }
  }

  test('by the rate of the last records', async () => {
    const { take, write, refreshes, flow } = starting()
    lookAt(flow, 60, both(1))
    await take(repsOf(0, 20))
    await write(1_000)
    // 40 are left, at 20 in a second.
    expect(refreshes.at(0).argument.delay).toBe(1_000)
    await take(repsOf(20, 20))
    await write(500)
    await refreshes.at(0).letGo()
    // 20 are left, at 40 in 1.5 s since the flow began.
    expect(refreshes.at(0).argument.delay).toBe(375)
  })

  test('the time at rest does not count', async () => {
    const { take, write, refreshes, flow, clock } = starting()
    await take(repsOf(0, 1))
    await write(10)
    await refreshes.at(0).letGo()
    clock.time += 3_600_000
    lookAt(flow, 5, both(1))
    await take(repsOf(1, 1))
    await write(10)
    expect(refreshes.at(0).argument.delay).toBe(15)
  })

  test('for some seconds at most, and not at all when nothing is left', async () => {
    const { take, write, refreshes, flow } = starting()
    lookAt(flow, 1_000_000, both(1))
    await take(repsOf(0, 20))
    await write(1_000)
    expect(refreshes.at(0).argument.delay).toBe(REFRESH_DELAY_MAX_MS)
    await refreshes.at(0).letGo()
    const other = starting()
    lookAt(other.flow, 20, both(1))
    await other.take(repsOf(0, 20))
    await other.write(1_000)
    expect(other.refreshes.at(0).argument.delay).toBe(0)
  })

  test('and a batch that is written meanwhile asks for its own, shorter delay', async () => {
    const { take, write, refreshes, flow } = starting()
    lookAt(flow, 40, both(1))
    await take(repsOf(0, 20))
    await write(1_000)
    await take(repsOf(20, 20))
    await write(1_000)
    expect(refreshes.calls.map(({ argument }) => argument.delay)).toEqual([500, 0])
  })

  test('and a batch that no list contains asks for its shorter delay, too', async () => {
    const { take, write, delays, story, flow } = starting()
    lookAt(flow, 40, both(1))
    await take(repsOf(0, 20))
    await write(1_000)
    await take(batchOf(20, [payout('payout_1')], 40))
    await write(1_000)
    expect(delays).toEqual([500, 0])
    expect(story.filter(step => step.startsWith('refresh'))).toEqual(['refresh reps after 500'])
  })

  test('and a batch that is written after the later ones counts what these wrote', async () => {
    const { take, write, writes, delays, flow } = starting()
    lookAt(flow, 60, both(1))
    await take(repsOf(0, 20))
    await take(repsOf(20, 40))
    await writes.at(1).letGo()
    await write(1_000)
    expect(delays).toEqual([0, 0])
  })

  test('and by the rate since the refresh before the last one', async () => {
    const { take, write, refreshes, delays, flow } = starting()
    lookAt(flow, 100, both(1))
    await take(repsOf(0, 20))
    await take(repsOf(20, 20))
    await take(repsOf(40, 20))
    await write(100)
    await refreshes.at(0).letGo()
    await write(1_000)
    await refreshes.at(0).letGo()
    await write(1_000)
    // 80 are left at 20 in 0.1 s; 60 at 40 in 1.1 s; 40 at 40 in 2 s, without the first refresh.
    expect(delays).toEqual([200, 825, 1_000])
  })
})

describe('while a batch is written', () => {
  test('the next batches are decided on its decisions, and written in parallel', async () => {
    const { take, hold, writes, story, documents } = startFlow()
    hold('writes')
    await take(batchOf(0, [rep(), period(), payout('payout_1')]))
    await take(batchOf(3, [payout('payout_2', 'payout_1')]))
    await take(batchOf(4, [payout('payout_3', 'payout_2')]))
    expect(story).toEqual(['write 0-2', 'write 3-3', 'write 4-4'])
    for (const place of [2, 0, 0]) await writes.at(place).letGo()
    expect(documents.get('payouts/org_1:payout_2')).toMatchObject({
      seq: 3,
      until_seq: 4,
      superseded_by_id: 'payout_3',
    })
    expect(documents.all().some(([key]) => key.startsWith('parked/'))).toBe(false)
  })

  test('only a few are written at once; the next one waits for a place and then continues', async () => {
    const { take, hold, writes, story } = startFlow()
    hold('writes')
    for (let from = 0; from < WRITES_IN_FLIGHT_PER_PARTITION + 2; from++) await take(repsOf(from, 1))
    expect(writes.calls).toHaveLength(WRITES_IN_FLIGHT_PER_PARTITION)
    await writes.at(0).letGo()
    expect(writes.calls).toHaveLength(WRITES_IN_FLIGHT_PER_PARTITION)
    expect(story.filter(step => step.startsWith('write')).at(-1)).toBe(
      `write ${WRITES_IN_FLIGHT_PER_PARTITION}-${WRITES_IN_FLIGHT_PER_PARTITION}`,
    )
  })

  test('batches that arrive meanwhile are decided together, up to the limit of a batch', async () => {
    const { take, hold, release, reads, story } = startFlow({ position: 10 })
    hold('reads')
    await take(repsOf(10, 1))
    for (let from = 11; from < 14; from++) await take(repsOf(from, 1))
    await take(heavyBatch(14, BATCH_BYTES - 100))
    await take(heavyBatch(15, 400))
    await take(heavyBatch(16, BATCH_BYTES + 1))
    await take(repsOf(17, 1))
    release('reads')
    await reads.at(0).letGo()
    expect(story.filter(step => step.startsWith('write'))).toEqual([
      'write 10-10',
      'write 11-13',
      'write 14-14',
      'write 15-15',
      'write 16-16',
      'write 17-17',
    ])
  })

  test('positions are published in order, although writes end out of order', async () => {
    const { take, hold, writes, story, flow } = startFlow()
    hold('writes')
    for (let from = 0; from < 3; from++) await take(repsOf(from, 1))
    story.length = 0
    await writes.at(2).letGo()
    await writes.at(1).letGo()
    expect(story).toEqual(['refresh reps', 'refresh reps'])
    expect(flow.progress).toMatchObject({ readTo: 3, writtenTo: 0, publishedTo: 0 })
    await writes.at(0).letGo()
    expect(story.slice(2)).toEqual(['refresh reps', 'publish 3', 'commit 3'])
    expect(flow.progress).toMatchObject({ readTo: 3, writtenTo: 3, publishedTo: 3 })
  })

  test('each batch waits for a refresh that it asks for after its write, and for no refresh of an earlier one', async () => {
    const { take, hold, writes, refreshes, story, flow } = startFlow()
    hold('writes', 'refreshes')
    await take(repsOf(0, 1))
    await take(repsOf(1, 1))
    await writes.at(0).letGo()
    await writes.at(0).letGo()
    expect(story.splice(0).slice(2)).toEqual(['refresh reps', 'refresh reps'])
    expect(flow.progress).toMatchObject({ writtenTo: 2, publishedTo: 0 })
    await refreshes.at(0).letGo()
    expect(story.splice(0)).toEqual(['publish 1', 'commit 1'])
    await refreshes.at(0).letGo()
    expect(story).toEqual(['publish 2', 'commit 2'])
  })

  test('positions are published in order, although refreshes end out of order', async () => {
    const { take, hold, refreshes, story, flow } = startFlow()
    hold('refreshes')
    for (let from = 0; from < 3; from++) await take(repsOf(from, 1))
    story.length = 0
    await refreshes.at(1).letGo()
    expect(story).toEqual([])
    await refreshes.at(0).letGo()
    expect(story).toEqual(['publish 2', 'commit 2'])
    expect(flow.progress).toMatchObject({ writtenTo: 3, publishedTo: 2 })
    await refreshes.at(0).letGo()
    expect(story.slice(2)).toEqual(['publish 3', 'commit 3'])
  })

  test('the next batch is made searchable while a position is published, and is published after it', async () => {
    const { take, hold, refreshes, advances, story, published } = startFlow()
    hold('refreshes', 'advances')
    await take(repsOf(0, 1))
    await take(repsOf(1, 1))
    await refreshes.at(0).letGo()
    await refreshes.at(0).letGo()
    expect(story.filter(step => step.startsWith('publish'))).toEqual(['publish 1', 'publish 2'])
    expect(advances.calls.map(({ argument }) => argument.position)).toEqual([1])
    await advances.at(0).letGo()
    expect(published().position).toBe(1)
    await advances.at(0).letGo()
    expect(published().position).toBe(2)
  })

  test('a position published right after another names its own last record, or that of the one before', async () => {
    const { take, hold, advances } = startFlow()
    hold('advances')
    await take(repsOf(0, 1))
    await take(batchOf(1, [], 5))
    await advances.at(0).letGo()
    expect(advances.at(0).argument).toMatchObject({ position: 5, last: { offset: 0 } })
  })
})

describe('after it is closed', () => {
  test('a flow takes no batch', async () => {
    const { take, flow, story } = startFlow()
    flow.close()
    expect(await take(repsOf(0, 1))).toBe('gap')
    expect(story).toEqual([])
  })

  test.each(['reads', 'writes', 'refreshes'] as const)(
    'while its %s are in flight, a flow publishes and commits nothing',
    async step => {
      for (const how of ['letGo', 'fail'] as const) {
        const running = startFlow({ position: 1 })
        running.hold(step)
        await running.take(repsOf(1, 1))
        await running.take(repsOf(2, 1))
        running.flow.close()
        for (const call of [...running[step].calls])
          await (how === 'letGo' ? call.letGo() : call.fail(new Error('aborted')))
        await running.flow.waitUntilIdle()
        expect(running.story.filter(done => /publish|commit|time/.test(done))).toEqual([])
        expect(running.failures).toEqual([])
        expect(running.pressure).toEqual([])
      }
    },
  )

  test('a flow does not commit a position in flight, and publishes no time', async () => {
    const { flow, take, hold, advances, story } = startFlow()
    hold('advances')
    await take(repsOf(0, 1))
    flow.close()
    lookAt(flow, 0, both(5))
    await advances.at(0).letGo()
    expect(story).toEqual(['write 0-0', 'refresh reps', 'publish 1'])
  })

  test('a flow ends, even if the maximum number of writes was in flight and failed', async () => {
    const { flow, take, hold, writes, failures } = startFlow()
    hold('writes')
    for (let from = 0; from < WRITES_IN_FLIGHT_PER_PARTITION + 2; from++) await take(repsOf(from, 1))
    flow.close()
    for (const call of [...writes.calls]) await call.fail(new Error('aborted'))
    await flow.waitUntilIdle()
    expect(writes.count).toBe(WRITES_IN_FLIGHT_PER_PARTITION)
    expect(failures).toEqual([])
  })
})

describe('a partition that is read from its first record on', () => {
  test('reads no documents: everything stored was decided here', async () => {
    const { take, hold, reads, story } = startFlow({ position: 0 })
    hold('reads')
    await take(repsOf(0, 3))
    expect(reads.count).toBe(0)
    expect(story).toContain('publish 3')
  })
})

describe('a stage that fails', () => {
  test.each(['reads', 'writes', 'refreshes', 'advances'] as const)(
    'in %s is reported once, and the flow stops',
    async step => {
      const { take, hold, failures, flow, story, ...held } = startFlow({ position: 1 })
      hold(step)
      await take(repsOf(1, 1))
      await take(repsOf(2, 1))
      const error = new Error('refused')
      await held[step].at(0).fail(error)
      for (const call of [...held[step].calls]) await call.fail(new Error('refused too'))
      await flow.waitUntilIdle()
      expect(failures).toEqual([error])
      expect(story.filter(done => done.startsWith('commit'))).toEqual([])
      expect(await take(repsOf(3, 1))).toBe('gap')
    },
  )

  test('ends a flow that waits for a place to write', async () => {
    const { flow, take, hold, writes, failures } = startFlow()
    hold('writes')
    for (let from = 0; from < WRITES_IN_FLIGHT_PER_PARTITION + 1; from++) await take(repsOf(from, 1))
    const error = new Error('refused')
    await writes.at(1).fail(error)
    await writes.at(0).letGo()
    await flow.waitUntilIdle()
    expect(failures).toEqual([error])
    expect(writes.count).toBe(WRITES_IN_FLIGHT_PER_PARTITION)
  })
})
