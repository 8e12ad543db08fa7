import { describe, expect, test } from 'vitest'
import { abortReason, scheduleTimer } from '../../../../core/runtime/time-limits.ts'
import { createPositionReader } from '../../../../core/store/positions/position.ts'
import { type DocumentName, numberOf } from '../../../../core/store/read/slice-documents.ts'
import { storedNameOf } from '../../../../schemas/stored/live-names.ts'
import { generationText, liveText, positionText, recordText } from '../../../api/answers.ts'
import { controlIndex as control, reasonOfUnavailable as reasonOf } from '../../../support/control-index.ts'
import { addressIn } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const payout = (): DocumentName[] => [{ ...addressIn('i', 'org_a:payout_1'), form: 'record' }]

test('the served positions name the generation that is being built, if a command builds one', async () => {
  const { documents, reader } = control({})
  const building = async () => (await reader.readServedPositions(new AbortController().signal)).building
  expect(await building()).toBeNull()
  documents.live = JSON.stringify({ kind: 'live', body: { generation: 'g1', building: 'g2' } })
  expect(await building()).toBe('g2')
})

test('a live generation that version 1.1.0 must refuse is read by its plain name', async () => {
  const { documents, reader } = control({})
  documents.live = JSON.stringify({ kind: 'live', body: { generation: storedNameOf({ generation: 'g1', layout: 3 }) } })
  const { position } = await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
  expect(position.generation.name).toBe('g1')
  expect((await reader.readServedPositions(new AbortController().signal)).generation.name).toBe('g1')
})

describe('a published time that was taken back', () => {
  const takenBackText = (time: number, taken_back: number) =>
    JSON.stringify({ kind: 'position', body: { position: 10, last: null, at: 0, time, taken_back, serve_from: 0 } })

  test('is not shown again after a restored copy was adopted, which has other indices', async () => {
    const copy = (index: string) => generationText('g1', 1, { indices: { 'p-g1-payouts': index }, topic_id: 'one' })
    const { documents, reader } = control({ 'generation:g1': copy('a'), 'position:g1:0': positionText(10, 9_000) })
    const read = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position
    const before = await read()
    documents['generation:g1'] = copy('b')
    documents['position:g1:0'] = takenBackText(1_000, 1)
    reader.forget(before.generation)
    expect(await read()).toMatchObject({ publishedTo: 10, time: 1_000 })
  })

  test('is not shown again, even if a late read returns it', async () => {
    const { documents, reader } = control({})
    const timeNow = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position.time
    const times: number[] = []
    for (const text of [
      positionText(10, 1_000),
      positionText(10, 900),
      positionText(10, 9_000),
      takenBackText(1_100, 1),
      positionText(10, 9_000),
      takenBackText(1_050, 1),
      takenBackText(1_200, 1),
    ]) {
      documents['position:g1:0'] = text
      times.push(await timeNow())
    }
    expect(times).toEqual([1_000, 1_000, 9_000, 1_100, 1_100, 1_100, 1_200])
  })

  test('does not affect the times of another generation: after a swap they advance and never go back', async () => {
    const { documents, reader } = control({ 'position:g1:0': takenBackText(1_000, 2) })
    const timeNow = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position.time
    expect(await timeNow()).toBe(1_000)
    documents.live = liveText('g2')
    documents['generation:g2'] = generationText('g2')
    const times: number[] = []
    for (const text of [
      positionText(10, 900),
      positionText(10, 1_100),
      positionText(10, 9_000),
      takenBackText(1_200, 1),
      positionText(10, 9_000),
      takenBackText(1_300, 1),
    ]) {
      documents['position:g2:0'] = text
      times.push(await timeNow())
    }
    expect(times).toEqual([1_000, 1_100, 9_000, 1_200, 1_200, 1_300])
  })
})

describe('the time of a partition that stands still', () => {
  const timesText = (partitions: object) => JSON.stringify({ kind: 'times', body: { partitions } })
  /** A reader whose timers the test runs. */
  const setUp = (times: object) => {
    const timers: (() => void)[] = []
    const { documents, asked, multiGet } = control({ 'times:g1': timesText(times) })
    const reader = createPositionReader('p', multiGet, (_, run) => {
      timers.push(run)
      return () => undefined
    })
    const timeNow = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position.time
    return { documents, asked, timers, timeNow, reader }
  }

  test('comes from the document of all times, which one request in a while reads with its position', async () => {
    const { documents, asked, timers, timeNow } = setUp({ 0: { position: 10, time: 2_000 } })
    expect(await timeNow()).toBe(2_000)
    expect(asked.at(-1)).toEqual(['position:g1:0', 'times:g1', 'live'])
    documents['times:g1'] = timesText({ 0: { position: 10, time: 3_000 } })
    expect(await timeNow()).toBe(2_000)
    expect(asked.at(-1)).toEqual(['position:g1:0', 'live'])
    for (const run of timers.splice(0)) run()
    expect(await timeNow()).toBe(3_000)
  })

  test('does not count before its position is reached', async () => {
    const { documents, timeNow } = setUp({ 0: { position: 11, time: 2_000 } })
    expect(await timeNow()).toBe(1_000)
    documents['position:g1:0'] = positionText(11, 1_500)
    expect(await timeNow()).toBe(2_000)
  })

  test('is not shown if it is of another partition', async () => {
    const { timeNow } = setUp({ 1: { position: 10, time: 2_000 } })
    expect(await timeNow()).toBe(1_000)
  })

  test('counts for the oldest time of all partitions', async () => {
    const { reader, timers } = setUp({ 0: { position: 10, time: 2_000 } })
    const { generation } = (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position
    for (const run of timers.splice(0)) run()
    expect(await reader.oldestTime(generation, scopeOf('org_a'))).toBe(2_000)
  })

  test.each(['{"kind":"times"}', timesText({ 0: { position: 'x', time: 1 } }), timesText({ 0: { position: 1 } })])(
    'is refused if the document is malformed: %s',
    async text => {
      const { documents, timeNow } = setUp({})
      documents['times:g1'] = text
      expect(await reasonOf(timeNow())).toBe('no_times')
    },
  )
})

describe('the position of a request', () => {
  test('is unknown while a restored copy is read again from the first record', async () => {
    const body = { position: 9, last: null, at: 0, time: 1_000, serve_from: 10 }
    const { documents, reader } = control({ 'position:g1:0': JSON.stringify({ kind: 'position', body }) })
    expect(await reasonOf(reader.readAt(scopeOf('org_a'), () => [], 'may-be-older'))).toBe('not_read_again_yet')
    documents['position:g1:0'] = JSON.stringify({ kind: 'position', body: { ...body, position: 10 } })
    expect((await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position.publishedTo).toBe(10)
  })

  test('is unknown while documents that no log has are removed: others are missing for a moment', async () => {
    const body = { position: 9, last: null, at: 0, time: 1_000, serve_from: 0 }
    const stored = (fields: object) => JSON.stringify({ kind: 'position', body: { ...body, ...fields } })
    const { documents, reader } = control({ 'position:g1:0': stored({ removing: true }) })
    expect(await reasonOf(reader.readAt(scopeOf('org_a'), () => [], 'may-be-older'))).toBe('not_read_again_yet')
    documents['position:g1:0'] = stored({})
    expect((await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position.publishedTo).toBe(9)
  })

  test('is read by one multi-get once the generation is known', async () => {
    const { asked, reader } = control({})
    await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    asked.length = 0
    const { position } = await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    expect(position).toMatchObject({ publishedTo: 10, time: 1_000 })
    expect(asked).toEqual([['position:g1:0', 'live']])
  })

  test('is that of the live generation, from the first request after the swap', async () => {
    const { documents, reader } = control({})
    await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    documents.live = liveText('g2')
    documents['generation:g2'] = generationText('g2')
    documents['position:g2:0'] = positionText(12, 2_000)
    const { position } = await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    expect(position).toMatchObject({ generation: { name: 'g2' }, publishedTo: 12 })
  })

  test('waits until a generation that was just made live has reached the one before', async () => {
    const { documents, asked, reader } = control({})
    await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    documents.live = liveText('g2')
    documents['generation:g2'] = generationText('g2')
    documents['position:g2:0'] = positionText(9, 900)
    const reading = reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    await expect.poll(() => asked.filter(ids => ids.includes('position:g2:0')).length).toBeGreaterThan(2)
    documents['position:g2:0'] = positionText(10, 900)
    expect((await reading).position).toMatchObject({ generation: { name: 'g2' }, publishedTo: 10, time: 1_000 })
  })

  test('is unavailable if a generation that was made live stays behind the one before', async () => {
    const { documents, reader } = control({})
    await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    documents.live = liveText('g2')
    documents['generation:g2'] = generationText('g2')
    documents['position:g2:0'] = positionText(9, 900)
    expect(await reasonOf(reader.readAt(scopeOf('org_a'), () => [], 'may-be-older'))).toBe('position_went_back')
  })

  test.each(['time_is_up', 'client_gone'] as const)(
    'is unavailable with %s if the request ends while it waits for the new live generation',
    async reason => {
      const { documents, asked, reader } = control({})
      await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
      documents.live = liveText('g2')
      documents['generation:g2'] = generationText('g2')
      documents['position:g2:0'] = positionText(9, 900)
      const ending = new AbortController()
      const reading = reasonOf(reader.readAt(scopeOf('org_a', ending.signal), () => [], 'may-be-older'))
      await expect.poll(() => asked.length).toBeGreaterThan(3)
      ending.abort(abortReason(reason))
      expect(await reading).toBe(reason)
    },
  )

  test('waits until the new live generation has reached everything that any process may have shown of the one before', async () => {
    const live = (floor: readonly number[] | null) =>
      JSON.stringify({ kind: 'live', body: { generation: 'g2', floor } })
    const { documents, asked, reader } = control({
      live: live(null),
      'generation:g2': generationText('g2'),
      'position:g2:0': positionText(9, 900),
    })
    const reading = reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    const polls = () => asked.filter(ids => ids.includes('position:g2:0')).length
    await expect.poll(polls).toBeGreaterThan(2)
    documents.live = live([10])
    const before = polls()
    await expect.poll(polls).toBeGreaterThan(before + 2)
    documents['position:g2:0'] = positionText(10, 900)
    expect((await reading).position).toMatchObject({ generation: { name: 'g2' }, publishedTo: 10 })
    documents.live = live([11])
    expect(await reasonOf(reader.readAt(scopeOf('org_a'), () => [], 'may-be-older'))).toBe('position_went_back')
  })

  test('reads a document again if the position is that of another generation', async () => {
    const { documents, asked, reader } = control({})
    await reader.readAt(scopeOf('org_a'), payout, 'at-position')
    documents.live = liveText('g2')
    documents['generation:g2'] = generationText('g2')
    documents['position:g2:0'] = positionText(10, 1_000)
    asked.length = 0
    await reader.readAt(scopeOf('org_a'), payout, 'at-position')
    expect(asked.at(-1)).toEqual(['org_a:payout_1'])
  })

  test.each(['live', 'generation:g1', 'position:g1:0'])('is unavailable if %s is missing', async id => {
    const { documents, reader } = control({})
    delete documents[id]
    expect(await reasonOf(reader.readAt(scopeOf('org_a'), () => [], 'may-be-older'))).toMatch(/^no_/)
  })

  test('is unavailable if a later request would get an earlier position', async () => {
    const { documents, reader } = control({})
    await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    documents['position:g1:0'] = positionText(9, 3_000)
    expect(await reasonOf(reader.readAt(scopeOf('org_a'), () => [], 'may-be-older'))).toBe('position_went_back')
    documents['position:g1:0'] = positionText(10, 3_000)
    expect(await reasonOf(reader.readAt(scopeOf('org_a'), () => [], 'may-be-older'))).toBeUndefined()
  })

  test('does not seem to go back if an earlier request is answered later', async () => {
    const { documents, multiGet } = control({})
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let gated = -1
    const reader = createPositionReader(
      'p',
      async names => {
        const answer = await multiGet(names)
        if (gated >= 0) await gates[gated++]?.promise
        return answer
      },
      scheduleTimer,
    )
    await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    gated = 0
    const earlier = reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    await new Promise(setImmediate)
    documents['position:g1:0'] = positionText(11, 1_500)
    const later = reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    await new Promise(setImmediate)

    gates[1]?.resolve()
    expect((await later).position.publishedTo).toBe(11)
    gates[0]?.resolve()
    expect((await earlier).position.publishedTo).toBe(10)
  })

  test('has a time that never goes back', async () => {
    const { documents, reader } = control({})
    await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    documents['position:g1:0'] = positionText(11, 400)
    const { position } = await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')
    expect(position).toMatchObject({ publishedTo: 11, time: 1_000 })
  })
})

describe('a document read with the position', () => {
  test('is read again if the position has moved: the first read may be older than the position', async () => {
    const { documents, asked, reader } = control({ 'org_a:payout_1': recordText(3, {}) })
    await reader.readAt(scopeOf('org_a'), payout, 'at-position')
    asked.length = 0
    await reader.readAt(scopeOf('org_a'), payout, 'at-position')
    expect(asked).toEqual([['position:g1:0', 'live', 'org_a:payout_1']])

    asked.length = 0
    documents['position:g1:0'] = positionText(11, 1_000)
    const { documents: found } = await reader.readAt(scopeOf('org_a'), payout, 'at-position')
    expect(asked).toEqual([['position:g1:0', 'live', 'org_a:payout_1'], ['org_a:payout_1']])
    expect(found[0] && numberOf(found[0], 'seq')).toBe(3)
  })

  test('is not read again if the client can only know it from an earlier answer', async () => {
    const { documents, asked, reader } = control({ 'org_a:payout_1': recordText(3, {}) })
    await reader.readAt(scopeOf('org_a'), payout, 'may-be-older')
    asked.length = 0
    documents['position:g1:0'] = positionText(11, 1_000)
    await reader.readAt(scopeOf('org_a'), payout, 'may-be-older')
    expect(asked).toEqual([['position:g1:0', 'live', 'org_a:payout_1']])
  })
})
