/** Indices are deleted and made anew: a generation has the name of an earlier one. */
import { describe, expect, test } from 'vitest'
import { scheduleTimer } from '../../../../core/runtime/time-limits.ts'
import { createPositionReader } from '../../../../core/store/positions/position.ts'
import { generationText, liveText, positionText } from '../../../api/answers.ts'
import { controlIndex as control, reasonOfUnavailable as reasonOf } from '../../../support/control-index.ts'
import { scopeOf } from '../../../support/read-scope.ts'

describe('a generation that was forgotten', () => {
  const made = (topic_id: string, position: number) => ({
    'generation:g1': generationText('g1', 1, { indices: { 'p-g1-payouts': `of ${topic_id}` }, topic_id }),
    'position:g1:0': positionText(position, 1_000),
  })

  test('is read again: with another log, its positions begin anew', async () => {
    const { documents, reader } = control(made('one', 10))
    const read = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position
    const before = await read()
    Object.assign(documents, made('two', 5))
    expect(await reasonOf(read())).toBe('position_went_back')
    reader.forget(before.generation)
    const after = await read()
    expect(after.publishedTo).toBe(5)
    expect(after.generation.id).not.toBe(before.generation.id)
    reader.forget(before.generation)
    expect(reader.liveBefore()).toBe(after.generation)
  })

  test('is read again, although an answer to an earlier request puts it back', async () => {
    const { documents, multiGet } = control(made('one', 10))
    const released = Promise.withResolvers<void>()
    let held = false
    const reader = createPositionReader(
      'p',
      async names => {
        const isLate = held
        const answer = await multiGet(names)
        if (isLate) await released.promise
        return answer
      },
      scheduleTimer,
    )
    const read = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position
    const before = await read()
    held = true
    const late = read()
    held = false
    Object.assign(documents, made('two', 10))
    reader.forget(before.generation)
    const { generation } = await read()
    released.resolve()
    await late
    expect(reader.liveBefore()?.id).toBe(before.generation.id)
    reader.forget(before.generation)
    expect((await read()).generation.id).toBe(generation.id)
  })

  test('is read again: its times begin anew, too', async () => {
    const times = JSON.stringify({ kind: 'times', body: { partitions: { 0: { position: 10, time: 9_000 } } } })
    const { documents, reader } = control({ ...made('one', 10), 'times:g1': times })
    const read = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position
    const before = await read()
    expect(before.time).toBe(9_000)
    // The new generation has no document of times yet: no partition stands still.
    delete documents['times:g1']
    Object.assign(documents, made('two', 12))
    reader.forget(before.generation)
    expect(await read()).toMatchObject({ publishedTo: 12, time: 1_000 })
  })

  test('has no positions of a generation of the former log that was live in its place', async () => {
    const { documents, reader } = control({
      live: liveText('g2'),
      'generation:g2': generationText('g2', 1, { indices: { 'p-g2-payouts': 'i' }, topic_id: 'one' }),
      'position:g2:0': positionText(10, 9_000),
    })
    const read = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position
    expect(await read()).toMatchObject({ publishedTo: 10, time: 9_000 })
    Object.assign(documents, { live: liveText('g1'), ...made('two', 5) })
    expect(await read()).toMatchObject({ publishedTo: 5, time: 1_000 })
  })

  test('with the same log: no position goes back', async () => {
    const { documents, reader } = control(made('one', 10))
    const read = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position
    const { generation } = await read()
    Object.assign(documents, made('one', 5))
    reader.forget(generation)
    expect(await reasonOf(read())).toBe('position_went_back')
  })
})
